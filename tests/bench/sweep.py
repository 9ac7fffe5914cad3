"""What a sweep costs beside very many checks.

    python -m tests.bench.sweep [CHECKS] [--tree DIR] [--beside DIR] [--postgresql URL] [--due N ...]
        [--rounds N]

A server with 1,000 checks, and one with CHECKS (a million): how long a sweep of none takes, by the
server's own metrics. Then 1,000, 10,000 and 100,000 of the checks come due in one moment: how long that
sweep takes, and the longest ping beside it.

The promises on a machine of its own: none due of a million at most 2 ms, 1,000 due at most 150 ms,
10,000 within 2 s. With `--postgresql` the tree is measured over that database too, in schemas of
its own: there a sweep of none of 200,000 is to take at most 5 ms, and one of 20,000 that are due at
most 3 times as long as over the file. Nothing is judged here.
"""

import statistics
import tempfile
import time
from functools import partial
from pathlib import Path

from tests.bench.checks import (
    Check,
    count,
    database,
    fill,
    on_postgresql,
    pinging,
    wait_long,
)
from tests.bench.running import arguments_of, compare, serving, trees_of
from tests.kit.client import metric
from tests.kit.receiver import Receiver, hang

SMALL = 1000
DUE = [1000, 10_000, 100_000]
PERIOD_SECONDS = 100_000
SWEEPS = 10
OFTEN = 1.0
"""Seconds between sweeps: a look at metrics and alerts is to end before the next, empty one."""


def main():
    arguments = arguments_of(
        __doc__,
        "checks",
        checks=1_000_000,
        due=DUE,
        postgresql=None,
        rounds=1,
    )
    sides = {}
    for name, tree in trees_of(arguments).items():
        sides[name] = partial(measure, arguments, tree, None)
    if arguments.postgresql:
        sides["postgresql"] = partial(
            measure, arguments, arguments.tree, arguments.postgresql
        )
    compare(sides, arguments.rounds)


def measure(arguments, tree, postgresql):
    figures = {}
    options = ("--allow-private-webhooks", f"--sweep-seconds={OFTEN}")
    for size in (SMALL, arguments.checks):
        with (
            tempfile.TemporaryDirectory() as folder,
            Receiver(hang) as receiver,
        ):
            data = Path(folder)
            if postgresql:
                on_postgresql(data, postgresql)
            now = int(time.time())
            rest = (PERIOD_SECONDS, receiver.url, now)
            fill(
                tree,
                data,
                (Check(f"check-{n}", *rest) for n in range(size)),
            )
            with serving(*options, tree=tree, data=data) as server:
                none = sweep_of_none(server)
                figures[f"{size:,} checks: sweep of none, ms"] = (
                    none * 1000
                )
                for due in arguments.due:
                    if due < size:
                        figures |= sweep_of_many(server, due, size)
    return figures


def sweep_seconds(server):
    return metric(server, "cardbeat_sweep_duration_seconds")


def sweep_of_none(server):
    durations = []
    while len(durations) < SWEEPS:
        durations.append(sweep_seconds(server))
        time.sleep(OFTEN)
    return statistics.median(durations)


def sweep_of_many(server, due, size):
    """The longest sweep while some checks come due, and the longest ping beside it."""
    durations = []
    with database(server.data) as connection:

        def is_swept():
            durations.append(sweep_seconds(server))
            return count(connection, "alerts") == before + due

        before = count(connection, "alerts")
        make_due(server.data, due)
        with pinging(server, f"check-{size - 1}", 0.001) as pings:
            wait_long(is_swept)
            # Until the next sweep the metric is that of this one.
            time.sleep(OFTEN / 4)
            is_swept()
    return {
        f"{due:,} due: sweep, ms": 1000 * max(durations),
        f"{due:,} due: longest ping, ms": 1000 * max(pings),
    }


def make_due(data, due):
    """The first `due` checks come due together, at a moment that is still to come."""
    ahead = 2.0
    while True:
        moment = time.time() + ahead
        with database(data) as connection:
            connection.execute(
                "UPDATE checks SET clock_from = ?, status = 'on_time' WHERE seq <= ?",
                (int(moment) - PERIOD_SECONDS, due),
            )
        if time.time() < moment - 1:
            return
        ahead *= 2


if __name__ == "__main__":
    main()
