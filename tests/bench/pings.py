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

import contextlib
import shutil
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from tests.bench import wrk
from tests.bench.checks import Check, fill, on_postgresql
from tests.bench.clients import header_blocks
from tests.bench.running import arguments_of, compare, serving, trees_of

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


def main():
    arguments = arguments_of(
        __doc__, postgresql=None, seconds=5.0, rounds=3, ci=False
    )
    place = memory_folder() if arguments.ci else None
    with tempfile.TemporaryDirectory(dir=place) as folder:
        if arguments.ci:
            return ci(arguments, Path(folder))
        compare_all(arguments, Path(folder))
    return 0


def memory_folder():
    """A folder in memory; None where there is none or it is small."""
    if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > MEMORY_BYTES:
        return MEMORY
    return None


def compare_all(arguments, folder):
    with contextlib.ExitStack() as stack:
        servers = {}
        for name, tree in trees_of(arguments).items():
            started = serving_checks(tree, folder / name)
            servers[name] = stack.enter_context(started)
        if arguments.postgresql:
            data = on_postgresql(
                folder / "postgresql", arguments.postgresql
            )
            started = serving_checks(arguments.tree, data)
            servers["postgresql"] = stack.enter_context(started)
        for clients in CLIENTS:
            print(f"\n{clients} clients")
            sides = {}
            for name, server in servers.items():
                sides[name] = partial(
                    ping_all, server, clients, arguments.seconds
                )
            compare(sides, arguments.rounds)


def ci(arguments, folder):
    """The exit status. A busy machine gets further tries; a lost wake fails all of them."""
    with serving_checks(arguments.tree, folder) as server:
        # What the first answers did not need is loaded meanwhile.
        ping_all(server, CI_CLIENTS, 2, CI_PAUSE_MS)
        for _ in range(CI_TRIES):
            found = ping_all(
                server, CI_CLIENTS, arguments.seconds, CI_PAUSE_MS
            )
            rate = found["a second"]
            late = found["p99 ms"]
            failed = found["not 2xx"] + found["socket errors"]
            print(
                f"{CI_CLIENTS} clients: {rate:,.0f} pings a second (at least {CI_A_SECOND}),"
                f" p99 {late:.1f} ms (less than {CI_P99_MS}), {failed:.0f} failed (none)",
                flush=True,
            )
            if rate >= CI_A_SECOND and late < CI_P99_MS and not failed:
                return 0
    return 1


@contextlib.contextmanager
def serving_checks(tree, data):
    now = int(time.time())
    checks = []
    for number in range(CHECKS):
        checks.append(Check(f"check-{number}", 100_000, None, now))
    fill(tree, data, checks)
    with serving(tree=tree, data=data) as server:
        yield server


def ping_all(server, clients, seconds, pause_ms=0):
    targets = [f"GET /ping/check-{number}" for number in range(CHECKS)]
    load = wrk.Load(targets, header_blocks(), clients, pause_ms=pause_ms)
    return wrk.measure(server, load, seconds)


if __name__ == "__main__":
    sys.exit(main())
