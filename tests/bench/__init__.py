"""Benchmarks, each run as `python -m tests.bench.NAME` from the top of the tree; `--help` says what it measures.

Those marked * start our server and take `--tree DIR` and, but for `kills`, `--beside DIR`: another checkout, measured
in the same run. Nothing here is collected by pytest, and no bench fails because a machine is slow.

Speed over HTTP:
    varied *          many different stored cards and eight kinds of client, beside uvicorn, waitress and nginx
    small *           a small answer, kept connections and one for each request, beside the same peers
    pings *           durable pings, beside one thread and one commit for each
    path *            the calls between socket and answer
    start *           the first answer after a start, and how long commands take
    thousand_cards *  drawing cards in ten scripts, and the memory after them
Checks and alerts:
    sweep *           what a sweep costs beside a million checks
    burst *           10,000 checks turn overdue at once
    delivery *        alerts to one receiver, and to 500 hosts of which half hang
    kills *           SIGKILL under load: nothing acknowledged is missing
    node_kills        the same of two nodes over PostgreSQL: a node, the primary or the standby is killed or stopped
    patroni           the same of a PostgreSQL that Patroni keeps alive; needs root
    wal *             how large SQLite's write-ahead log grows while readers always overlap
Clients that behave badly, and long runs:
    attacks *         strangers with every trick they know: how one victim fares alone and beside each attack
    slow_clients *    thousands of idle, half-sent and slow connections
    mixed *           everything at once for half an hour: memory, descriptors, threads
    behind_nginx      whether nginx and the server ever see a request differently
    fuzz              the request reader under damaged streams
Drawing, without a server:
    cards             one card beside other renderers
    site_cards        the cards of a site of 1,000 pages, beside a loop of `card` and Takumi
    hostile_cards     thousands of hostile texts
    contact_sheet     every template, theme and kind of content
    languages         302 texts of 68 languages beside Chromium with Noto: what differs, and why
    unicode_files     the order of text against all of Unicode's bidirectional test files

What they share: `running` (a server process, and measuring two in turn), `wrk` (the load), `clients` (their headers),
`peers` (the other servers), `stock` and `sealing` (stored cards), `checks` (checks in the database), `receivers`.
"""
