"""Many different stored cards, asked for by many kinds of client: ours beside uvicorn and nginx.

    python -m tests.bench.varied [CARDS ...] [--kilobytes N ...] [--closing SHARE ...]
        [--tree DIR] [--beside DIR] [--seconds N] [--rounds N]

Every request is for a random one of CARDS different cards of N KB, by a random one of 512 clients
of eight kinds (browsers, crawlers and proxies, with headers of their own: `clients.py`), over 32
kept connections. After a SHARE of the requests, such as 0.05, the client closes its connection and
opens another. The peers serve as many different bodies, copies of our stored files, under short
paths: uvicorn, with uvloop and httptools, from memory, nginx from files that it keeps open.

Before that each card is asked for once after the server's start, when it is in no memory, and once
again. Its bytes must be right; how long that took is shown. All servers of a number and size of
cards run at the same time and are measured in turn, a few seconds each; the figures are medians of
the rounds. wrk has the second CPU. On a shared machine the requests for each second of CPU are the
fairer figure. `wrk` is the share of its CPU that the load generator used: near 1 it set the pace.

Goals: 3.5 times uvicorn with 120 cards, 3.1 times with 1,000, 2.6 times with a share of 0.05 that
closes, 0.7 of nginx; with 20,000 cards half of the commit before; p99 at most 20 ms.

Needs `apt-get install wrk nginx-light`, `pip install "uvicorn[standard]" starlette`, and for each
10,000 cards of 55 KB 2 GB of disk and 1.5 GB of memory.
"""

import contextlib
import os
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tests.bench import wrk
from tests.bench.clients import header_blocks
from tests.bench.peers import PEERS, copy_for_peers, serving_peer
from tests.bench.running import (
    Server,
    arguments_of,
    compare,
    percentiles_ms,
    serving,
    show_figures,
    trees_of,
)
from tests.bench.stock import STORE_MB, stock
from tests.kit.client import connect, exchange

CONNECTIONS = 32


class Side(NamedTuple):
    """A server, and the files that it answers these targets with."""

    server: Server
    targets: list[str]
    files: list[Path]


def main():
    arguments = arguments_of(
        __doc__,
        "cards",
        cards=[120, 1000, 20_000],
        kilobytes=[30.0, 55.0],
        closing=[0.0, 0.05],
        seconds=5.0,
        rounds=3,
    )
    for kilobytes in arguments.kilobytes:
        for cards in arguments.cards:
            with contextlib.ExitStack() as stack:
                sides = start_all(stack, arguments, cards, kilobytes)
                title = f"{cards:,} cards of {kilobytes:g} KB"
                measure(arguments, title, sides)


def measure(arguments, title, sides):
    print(f"\n{title}, asked for one after another")
    show_figures({name: ask_twice(side) for name, side in sides.items()})
    for closing in arguments.closing:
        print(f"\n{title}, {closing:.0%} of the requests close")
        loads = {}
        for name, side in sides.items():
            targets = [f"GET {target}" for target in side.targets]
            load = wrk.Load(
                targets, header_blocks(), CONNECTIONS, closing
            )
            loads[name] = partial(
                wrk.measure, side.server, load, arguments.seconds
            )
        compare(loads, arguments.rounds)


def start_all(stack, arguments, cards, kilobytes):
    """Ours for each tree, and the peers with copies of the first tree's stored files."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    sides = {}
    for name, tree in trees_of(arguments).items():
        targets, files = stock(tree, folder / name, cards, kilobytes)
        forget_files(files)
        options = ("--store-mb", STORE_MB)
        started = serving(*options, tree=tree, data=folder / name)
        server = stack.enter_context(started)
        sides[name] = Side(server, targets, files)
    copies = copy_for_peers(sides["now"].files, folder / "copies")
    forget_files(sides["now"].files)
    targets = [f"/{path.name}" for path in copies]
    for name in PEERS:
        server = stack.enter_context(
            serving_peer(name, folder / "copies")
        )
        sides[name] = Side(server, targets, copies)
    return sides


def forget_files(files):
    """Let the kernel read them from the disk when they are asked for."""
    os.sync()
    for path in files:
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def ask_twice(side):
    figures = {}
    for time_of in ("first time", "again"):
        for name, number in percentiles_ms(ask_all(side)).items():
            figures[f"{time_of}, {name}"] = number
    return figures


def ask_all(side):
    """How long each card takes. Exits when an answer is not the stored card."""
    times = []
    with contextlib.closing(connect(side.server)) as connection:
        for target, file in zip(side.targets, side.files, strict=True):
            began = time.perf_counter()
            answer = exchange(connection, "GET", target)
            times.append(time.perf_counter() - began)
            is_whole = len(answer.body) == file.stat().st_size
            if not is_whole or answer.headers["X-Cache"] == "MISS":
                raise SystemExit(f"{target}: {answer.headers}")
    return times


if __name__ == "__main__":
    main()
