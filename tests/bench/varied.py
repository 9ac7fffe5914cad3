"""Many different stored cards, asked for by many kinds of client: ours beside uvicorn, waitress and nginx.

    python -m tests.bench.varied [CARDS ...] [--tree DIR] [--beside DIR] [--seconds N] [--rounds N] [--pinned]

Every request is for a random one of CARDS different cards of about 55 KB, by a random one of 512 clients of eight
kinds (browsers, crawlers and proxies, with headers of their own: `clients.py`), over 32 kept connections; after one
request in twenty the client closes its connection and opens another. The peers serve as many different bodies, copies
of our stored files, under short paths: uvicorn and waitress from memory, nginx from files that it keeps open.

Each URL has been asked for once before and answered right. All servers run all the time and are measured in turn, a
few seconds each; the figures are medians of the rounds. Servers are started as their documents say and share the CPUs;
wrk has the second CPU. With --pinned every server has the first CPU to itself, where threads that share an
interpreter's lock, such as waitress's, are faster. On a shared machine the requests for each second of CPU are the
fairer figure. `wrk` is the share of its CPU that the load generator used: near 1 it set the pace itself.

Needs `apt-get install wrk nginx-light`, `pip install "uvicorn[standard]" starlette waitress`, and for each 10,000
cards about 2 GB of disk and 1.5 GB of memory.
"""

import argparse
import contextlib
import itertools
import statistics
import tempfile
from functools import partial
from pathlib import Path

from tests.bench import wrk
from tests.bench.clients import header_blocks, read_answer
from tests.bench.peers import PEERS, copy_for_peers, serving_peer
from tests.bench.running import Server, interleaved, parser_of, serving, trees_of
from tests.bench.stock import STORE_MB, stock

CARDS = [120, 1000, 20_000]
CONNECTIONS = 32
CLOSING = 1 / 20


def main(arguments: argparse.Namespace) -> None:
    trees = trees_of(arguments)
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        sides = {
            (title(cards), name): partial(wrk.measure, server, load, arguments.seconds)
            for cards in arguments.cards
            for name, (server, load) in start_all(stack, folder / str(cards), arguments, cards).items()
        }
        found = interleaved(sides, arguments.rounds)
    for cards in arguments.cards:
        wrk.show(title(cards), {name: figures for (of, name), figures in found.items() if of == title(cards)}, trees)
    for name in trees:
        for fewer, more in itertools.pairwise(map(title, arguments.cards)):
            ratio = found[more, name]["a second"] / found[fewer, name]["a second"]
            print(f"{name}: {more}/{fewer}: {ratio:.2f} a second")


def title(cards: int) -> str:
    return f"{cards:,} cards"


def start_all(
    stack: contextlib.ExitStack, folder: Path, arguments: argparse.Namespace, cards: int
) -> dict[str, tuple[Server, wrk.Load]]:
    """Ours for each tree, and the peers with copies of the first tree's stored files; all have answered all URLs."""
    loads: dict[str, tuple[Server, wrk.Load]] = {}
    files: list[Path] = []
    for name, tree in trees_of(arguments).items():
        filled = stock(tree, folder / name, cards)
        files = files or filled.files
        server = serving("--store-mb", STORE_MB, tree=tree, data=filled.data, pinned=arguments.pinned)
        loads[name] = warmed_up(stack.enter_context(server), filled.targets, filled.files, x_cache="HIT")
    copies = copy_for_peers(files, folder / "copies")
    for name in PEERS:
        server = serving_peer(name, folder / "copies", pinned=arguments.pinned)
        loads[name] = warmed_up(stack.enter_context(server), [f"/{path.name}" for path in copies], copies)
    kilobytes = statistics.mean(path.stat().st_size for path in copies) / 1000
    print(f"{title(cards)} of {kilobytes:.1f} KB on average", flush=True)
    return loads


def warmed_up(
    server: Server, targets: list[str], files: list[Path], x_cache: str | None = None
) -> tuple[Server, wrk.Load]:
    """Asks for each card once; exits when an answer is not the file, or not marked as it should be."""
    clients = header_blocks()
    with server.connect() as client, client.makefile("rb") as answers:
        for number, (target, file) in enumerate(zip(targets, files, strict=True)):
            client.sendall(f"GET {target} HTTP/1.1\r\n{clients[number % len(clients)]}\r\n".encode())
            status, headers, body = read_answer(answers)
            if status != 200 or body != file.read_bytes() or (x_cache and headers["x-cache"] != x_cache):
                raise SystemExit(f"{target} is not answered with the stored card: {status} {headers}")
    return server, wrk.Load([f"GET {target}" for target in targets], clients, CONNECTIONS, CLOSING)


if __name__ == "__main__":
    parser = parser_of(__doc__)
    parser.add_argument("cards", metavar="CARDS", nargs="*", type=int, default=CARDS, help="[120 1000 20000]")
    wrk.add_options(parser)
    main(parser.parse_args())
