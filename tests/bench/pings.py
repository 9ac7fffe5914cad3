"""Durable pings over HTTP, beside the plain way of writing them.

    python -m tests.bench.pings [--tree DIR] [--beside DIR] [--postgresql URL] [--seconds N] [--rounds N] [--pinned]

1, 16, 64 and 256 clients ping 1,000 checks in random order over kept connections. Plain is one thread and one
connection to SQLite for each client and one commit with `synchronous = FULL` for each ping, without any HTTP: how much
slower it is with many clients, and how long its longest ping takes, differs widely between disks. The promise: with 64
clients 99 of 100 pings within 30 ms.
With `--postgresql` the tree is measured over that database too, in a schema of its own: with 64 clients it is to make
0.4 of the pings that it makes over its file.

Needs `apt-get install wrk`.
"""

import argparse
import contextlib
import sqlite3
import tempfile
import threading
import time
from functools import partial
from pathlib import Path

from tests.bench import wrk
from tests.bench.checks import (
    Check,
    create_checks_key,
    database,
    database_options,
    insert,
    on_postgresql,
)
from tests.bench.clients import header_blocks
from tests.bench.running import Figures, Server, interleaved, parser_of, percentiles_ms, serving, trees_of

CHECKS = 1000
CLIENTS = (1, 16, 64, 256)


def main(arguments: argparse.Namespace) -> None:
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        servers = {
            name: stack.enter_context(filled_and_serving(tree, folder / name, arguments.pinned))
            for name, tree in trees_of(arguments).items()
        }
        if arguments.postgresql:
            data = on_postgresql(folder / "postgresql", arguments.postgresql)
            servers["postgresql"] = stack.enter_context(filled_and_serving(arguments.tree, data, arguments.pinned))
        plain = folder / "plain.db"
        with database(folder / "now") as source, contextlib.closing(sqlite3.connect(plain)) as copy:
            source.backup(copy)
        sides = {}
        for clients in CLIENTS:
            for name, server in servers.items():
                sides[clients, name] = partial(ours, server, clients, arguments.seconds)
            sides[clients, "plain"] = partial(written_plainly, plain, clients, arguments.seconds)
        found = interleaved(sides, arguments.rounds)
    for clients in CLIENTS:
        figures = {name: figures for (number, name), figures in found.items() if number == clients}
        wrk.show(f"{clients} clients", figures, trees_of(arguments))


def filled_and_serving(tree: Path, data: Path, pinned: bool) -> contextlib.AbstractContextManager[Server]:
    create_checks_key(tree, data)
    insert(data, [Check(f"check-{number}", 100_000, None, int(time.time())) for number in range(CHECKS)])
    return serving(*database_options(data), tree=tree, data=data, pinned=pinned)


def ours(server: Server, clients: int, seconds: float, seed: int) -> Figures:
    targets = [f"GET /ping/check-{number}" for number in range(CHECKS)]
    return wrk.measure(server, wrk.Load(targets, header_blocks(), clients), seconds, seed)


def written_plainly(path: Path, clients: int, seconds: float, _: int) -> Figures:
    """A thread, a connection and a commit of its own for each client's ping."""
    durations: list[float] = []
    started, used = time.monotonic(), time.process_time()

    def work(number: int) -> None:
        with contextlib.closing(sqlite3.connect(path, isolation_level=None, timeout=60)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            while time.monotonic() < started + seconds:
                began = time.perf_counter()
                ping(connection, f"check-{number * 17 % CHECKS}")
                durations.append(time.perf_counter() - began)
                number += 1

    threads = [threading.Thread(target=work, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {
        "a second": len(durations) / (time.monotonic() - started),
        "a CPU second": len(durations) / (time.process_time() - used),
        **percentiles_ms(durations),
    }


def ping(connection: sqlite3.Connection, check_id: str) -> None:
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(
        "UPDATE checks SET clock_from = ?1, last_ping_at = ?1, ping_count = ping_count + 1 WHERE id = ?2",
        (int(time.time()), check_id),
    )
    connection.execute("COMMIT")


if __name__ == "__main__":
    parser = parser_of(__doc__)
    parser.add_argument("--postgresql", metavar="URL", help="measure the tree over this database too")
    wrk.add_options(parser)
    main(parser.parse_args())
