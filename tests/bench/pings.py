"""Durable pings over HTTP: how many, and how long they take.

    python -m tests.bench.pings [--tree DIR] [--beside DIR] [--postgresql URL] [--seconds N]
        [--rounds N]
    python -m tests.bench.pings --ci

1, 16, 64 and 256 clients ping 1,000 checks in random order over kept connections. Goals: as many
for each second of CPU as the commit before, and with 64 clients 99 of 100 pings within 15 ms. With
`--postgresql` the tree is measured over that database too, in a schema of its own: with 64 clients
it is to make 0.4 of the pings that it makes over its file.

`--ci` is for `.ci/run`: 64 clients with pauses of 20 ms, for five seconds, up to six times until
one is good. The exit status is 1 unless 99 of 100 pings take less than 50 ms, there are at least
500 a second and all are answered 200. An answer that does not wake the loop takes 500 ms, and tests of
what is answered do not find that. The database is in memory if there is room, so that a busy disk
is not taken for a slow server.

Needs `apt-get install wrk`.
"""

import argparse
import contextlib
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from tests.bench import wrk
from tests.bench.checks import Check, create_checks_key, insert, on_postgresql
from tests.bench.clients import header_blocks
from tests.bench.running import (
    Figures,
    Server,
    interleaved,
    serving,
    show_figures,
    trees_of,
)

CHECKS = 1000
CLIENTS = (1, 16, 64, 256)
CI_CLIENTS = 64
CI_PAUSE_MS = 20
CI_TRIES = 6
CI_P99_MS = 50
CI_A_SECOND = 500
"""64 clients make so many if a ping takes 108 ms. wrk knows no times of pings without an answer."""
MEMORY = Path("/dev/shm")
MEMORY_BYTES = 2**30
"""Room that the server's data needs there: the server keeps some of a disk free."""


def main(arguments: argparse.Namespace) -> int:
    if arguments.ci:
        with tempfile.TemporaryDirectory(dir=memory_folder()) as folder:
            return ci(arguments, Path(folder))
    with tempfile.TemporaryDirectory() as folder:
        compare_all(arguments, Path(folder))
    return 0


def memory_folder() -> Path | None:
    """A folder in memory; None where there is none or it is small."""
    if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > MEMORY_BYTES:
        return MEMORY
    return None


def compare_all(arguments: argparse.Namespace, folder: Path) -> None:
    with contextlib.ExitStack() as stack:
        servers = {}
        for name, tree in trees_of(arguments).items():
            servers[name] = stack.enter_context(
                serving_checks(tree, folder / name)
            )
        if arguments.postgresql:
            data = on_postgresql(folder / "postgresql", arguments.postgresql)
            servers["postgresql"] = stack.enter_context(
                serving_checks(arguments.tree, data)
            )
        for clients in CLIENTS:
            sides = {
                name: partial(ping_all, server, clients, arguments.seconds)
                for name, server in servers.items()
            }
            found = interleaved(sides, arguments.rounds)
            print(f"\n{clients} clients")
            show_figures(found)


def ci(arguments: argparse.Namespace, folder: Path) -> int:
    """The exit status. A busy machine gets further tries; a lost wake fails all of them."""
    with serving_checks(arguments.tree, folder) as server:
        # What the first answers did not need is loaded meanwhile.
        ping_all(server, CI_CLIENTS, 2, CI_PAUSE_MS)
        for _ in range(CI_TRIES):
            figures = ping_all(
                server, CI_CLIENTS, arguments.seconds, CI_PAUSE_MS
            )
            rate = figures["a second"]
            late = figures["p99 ms"]
            failed = figures["not 2xx"] + figures["socket errors"]
            print(
                f"{CI_CLIENTS} clients: {rate:,.0f} pings a second (at least {CI_A_SECOND}),"
                f" p99 {late:.1f} ms (less than {CI_P99_MS}), {failed:.0f} failed (none)",
                flush=True,
            )
            if rate >= CI_A_SECOND and late < CI_P99_MS and not failed:
                return 0
    return 1


@contextlib.contextmanager
def serving_checks(tree: Path, data: Path) -> Iterator[Server]:
    create_checks_key(tree, data)
    now = int(time.time())
    insert(
        data,
        [
            Check(f"check-{number}", 100_000, None, now)
            for number in range(CHECKS)
        ],
    )
    with serving(tree=tree, data=data) as server:
        yield server


def ping_all(
    server: Server, clients: int, seconds: float, pause_ms: int = 0
) -> Figures:
    targets = [f"GET /ping/check-{number}" for number in range(CHECKS)]
    load = wrk.Load(targets, header_blocks(), clients, pause_ms=pause_ms)
    return wrk.measure(server, load, seconds)


if __name__ == "__main__":
    parser = wrk.parser_of(__doc__)
    parser.add_argument(
        "--postgresql",
        metavar="URL",
        help="measure the tree over this database too",
    )
    parser.add_argument(
        "--ci",
        action="store_true",
        help="exit 1 if pings of 64 clients are late",
    )
    sys.exit(main(parser.parse_args()))
