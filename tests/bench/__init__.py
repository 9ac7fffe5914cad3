"""Benchmarks, each run as `python -m tests.bench.NAME` from the top of the tree; `--help` says what it measures.

Those marked * start our server and take `--tree DIR` and, but for `kills`, `--beside DIR`: another
checkout, measured in the same run. Nothing here is collected by pytest, and no bench fails because
a machine is slow, but for `pings --ci`, which `.ci/run` runs, and the demands of `attacks`.

Speed over HTTP:
    varied *          many different stored cards and eight kinds of client, beside uvicorn and nginx
    pings *           durable pings of 1 to 256 clients
    attacks *         strangers who attack, and how a victim fares beside them
    start *           the first answer after a start, and how long commands take
    memory *          the server's memory, and that of the process that draws
Checks and alerts:
    sweep *           what a sweep costs beside a million checks
    burst *           10,000 checks turn overdue at once
    delivery *        alerts to one receiver, and to 500 hosts of which half hang
    kills *           SIGKILL under load: nothing acknowledged is missing
    node_kills        the same of two nodes over PostgreSQL: a node, the primary or the standby is killed or stopped
Drawing, without a server:
    cards             one card beside other renderers
    site_cards        the cards of a site of 1,000 pages, beside Takumi
    titles            200 titles in ten languages: sizes, ragged lines, small words at line ends
    languages         302 texts of 68 languages beside Chromium with Noto: what differs, and why

What they share: `running` (a server process, and measuring two in turn), `wrk` (the load), `clients` (their headers),
`peers` (the other servers), `stock` and `sealing` (stored cards), `checks` (checks in the database), `receivers`.
"""
