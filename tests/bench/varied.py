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
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from tests.bench import wrk
from tests.bench.clients import header_blocks
from tests.bench.peers import PEERS, copy_for_peers, serving_peer
from tests.bench.running import Server, Trees, add_rounds, parser_of, serving, trees_of
from tests.bench.stock import STORE_MB, stock

CARDS = [120, 1000, 20_000]
CONNECTIONS = 32
CLOSING = 1 / 20
RATES = ("a second", "a CPU second")


@dataclass(frozen=True)
class Side:
    """One server with its cards: `paths[n]` is answered with the bytes of `files[n]`."""

    name: str
    cards: int
    server: Server
    paths: list[str]
    files: list[Path]


@dataclass(frozen=True)
class Measured:
    result: wrk.Result
    per_cpu_second: float


def main(arguments: argparse.Namespace) -> None:
    trees, clients = trees_of(arguments), header_blocks()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        sides = []
        for cards in arguments.cards:
            sides += start_all(stack, folder / str(cards), trees, cards, pinned=arguments.pinned)
        for side in sides:
            warm_up(side, clients)
        rounds = [measure_all(sides, clients, arguments.seconds, number) for number in range(arguments.rounds)]
    medians = [median(results) for results in zip(*rounds, strict=True)]
    report(dict(zip(((side.cards, side.name) for side in sides), medians, strict=True)), list(trees))


def start_all(stack: contextlib.ExitStack, folder: Path, trees: Trees, cards: int, *, pinned: bool) -> list[Side]:
    """Ours for each tree, and the peers with copies of the first tree's stored files."""
    sides = []
    for name, tree in trees.items():
        filled = stock(tree, folder / name, cards)
        server = serving("--store-mb", STORE_MB, tree=tree, data=filled.data, pinned=pinned)
        sides.append(Side(name, cards, stack.enter_context(server), filled.targets, filled.files))
    copies = copy_for_peers(sides[0].files, folder / "copies")
    paths = [f"/{path.name}" for path in copies]
    for name in PEERS:
        server = serving_peer(name, folder / "copies", pinned=pinned)
        sides.append(Side(name, cards, stack.enter_context(server), paths, copies))
    kilobytes = statistics.mean(path.stat().st_size for path in copies) / 1000
    print(f"{cards:,} different cards of {kilobytes:.1f} KB on average", flush=True)
    return sides


def warm_up(side: Side, clients: list[str]) -> None:
    """Ask for each card once; exits when an answer is not the card."""
    ours = side.paths[0].startswith("/og?")
    with side.server.connect() as client, client.makefile("rb") as answers:
        for number, (path, file) in enumerate(zip(side.paths, side.files, strict=True)):
            client.sendall(f"GET {path} HTTP/1.1\r\n{clients[number % len(clients)]}\r\n".encode())
            status, headers, body = read_answer(answers)
            if status != 200 or body != file.read_bytes() or (ours and headers["x-cache"] != "HIT"):
                raise SystemExit(f"{side.name} does not answer {path} with the stored card: {status} {headers}")


def read_answer(answers: BinaryIO) -> tuple[int, dict[str, str], bytes]:
    """The next answer of a kept connection: status, headers by lower-case name, and a body of known length."""
    status = int(answers.readline().split()[1])
    headers = {}
    while (line := answers.readline().decode("latin-1")) not in ("\r\n", ""):
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    return status, headers, answers.read(int(headers["content-length"]))


def measure_all(sides: list[Side], clients: list[str], seconds: float, number: int) -> list[Measured]:
    """One round: every side in turn. Each round asks in another order of its own."""
    measured = []
    for side in sides:
        load = wrk.Load([f"GET {path}" for path in side.paths], clients, CONNECTIONS, CLOSING)
        used = side.server.cpu_seconds()
        result = wrk.run(side.server.port, load, seconds, seed=number + 1)
        measured.append(Measured(result, result.requests / (side.server.cpu_seconds() - used)))
    return measured


def median(results: tuple[Measured, ...]) -> dict[str, float]:
    """The figures of one side over the rounds; failures are added up."""
    return {
        "a second": statistics.median(measured.result.per_second for measured in results),
        "a CPU second": statistics.median(measured.per_cpu_second for measured in results),
        "p50 ms": statistics.median(measured.result.p50_ms for measured in results),
        "p99 ms": statistics.median(measured.result.p99_ms for measured in results),
        "wrk": statistics.median(measured.result.wrk_cpu for measured in results),
        "not 2xx": sum(measured.result.not_2xx for measured in results),
        "socket errors": sum(measured.result.socket_errors for measured in results),
    }


def report(found: dict[tuple[int, str], dict[str, float]], trees: list[str]) -> None:
    """`found` holds the figures by number of cards and name of the side."""
    sizes = list(dict.fromkeys(cards for cards, _ in found))
    for size in sizes:
        figures = {name: values for (cards, name), values in found.items() if cards == size}
        print(f"\n{size:,} cards", *(f"{what:>13}" for what in figures["now"]))
        for name, values in figures.items():
            print(f"{name:>12}", *(f"{value:13,.{2 if value < 100 else 0}f}" for value in values.values()))
        for tree in trees:
            for peer in [name for name in figures if name not in (tree, "now")]:
                ratios = (f"{figures[tree][what] / figures[peer][what]:.2f} {what}" for what in RATES)
                print(f"{tree}/{peer}: {', '.join(ratios)}")
    for tree in trees:
        for fewer, more in itertools.pairwise(sizes):
            ratio = found[more, tree]["a second"] / found[fewer, tree]["a second"]
            print(f"{tree}: {more:,} cards/{fewer:,} cards: {ratio:.2f} a second")


if __name__ == "__main__":
    parser = parser_of(__doc__)
    parser.add_argument("cards", metavar="CARDS", nargs="*", type=int, default=CARDS, help="[120 1000 20000]")
    parser.add_argument("--seconds", metavar="N", type=float, default=5, help="for each server and round [5]")
    add_rounds(parser, 3)
    parser.add_argument("--pinned", action="store_true", help="every server on the first CPU")
    main(parser.parse_args())
