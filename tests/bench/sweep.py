"""What a sweep costs beside very many checks.

    python -m tests.bench.sweep [CHECKS] [--tree DIR] [--beside DIR] [--postgresql URL] [--due N ...] [--rounds N]

A server with 1,000 checks, and one with CHECKS (a million): how long a sweep of none takes by the server's own
metrics, and a ping, a read, a page of 100 and a PATCH by the client's clock. Then 1,000, 10,000 and 100,000 of the
checks come due in one moment: how long that sweep takes, and the longest ping beside it.

The promises on a machine of its own: none due of a million at most 2 ms, 1,000 due at most 150 ms, 10,000 within 2 s,
and the calls cost what they cost at 1,000 checks. With `--postgresql` the tree is measured over that database too, in
schemas of its own: there a sweep of none of 200,000 is to take at most 5 ms, and one of 20,000 that are due at most 3
times as long as over the file. Nothing is judged here. A million takes some minutes, most of them
waiting for the next sweep.
"""

import argparse
import re
import socket
import statistics
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from tests.bench.checks import (
    Check,
    Client,
    count,
    create_checks_key,
    database,
    database_options,
    insert,
    on_postgresql,
    pinging,
    wait_until,
)
from tests.bench.running import (
    Figures,
    Server,
    add_rounds,
    interleaved,
    parser_of,
    rounds_of,
    serving,
    show_figures,
    trees_of,
)

SMALL = 1000
DUE = (1000, 10_000, 100_000)
PERIOD_SECONDS = 100_000
SWEEPS = 20
CALLS = 200
PRIVATE = "--allow-private-webhooks"


def main(arguments: argparse.Namespace) -> None:
    sides = {name: partial(measure, arguments, tree, None) for name, tree in trees_of(arguments).items()}
    if arguments.postgresql:
        sides["postgresql"] = partial(measure, arguments, arguments.tree, arguments.postgresql)
    show_figures(interleaved(sides, rounds_of(arguments)))


def measure(arguments: argparse.Namespace, tree: Path, postgresql: str | None, _round: int) -> Figures:
    checks = arguments.checks
    figures = {}
    for size in (SMALL, checks):
        with tempfile.TemporaryDirectory() as folder, silent_receiver() as url:
            data = on_postgresql(Path(folder), postgresql) if postgresql else Path(folder)
            place = database_options(data)
            key = create_checks_key(tree, data)
            now = int(time.time())
            insert(data, (Check(f"check-{number}", PERIOD_SECONDS, url, now) for number in range(size)))
            with serving("--sweep-seconds", "0.2", PRIVATE, *place, tree=tree, data=data) as server:
                figures |= {f"{size:,} checks: {name}": number for name, number in calm(server, key, size).items()}
            if size == checks:
                # Longer than any sweep here should take, so that the metric read is that of the one meant.
                with serving("--sweep-seconds", "30", PRIVATE, *place, tree=tree, data=data) as server:
                    for due in [due for due in arguments.due if due < size]:
                        figures |= {f"{due:,} due: {name}": number for name, number in busy(server, due, size).items()}
    return figures


def calm(server: Server, key: str, size: int) -> Figures:
    """Medians of calls and of sweeps with nothing due, in milliseconds."""
    client = Client(server, key)
    path = f"/checks/check-{size // 2}"
    calls = {
        "ping, ms": ("GET", f"/ping/check-{size // 2}", None),
        "read, ms": ("GET", path, None),
        "page, ms": ("GET", "/checks?limit=100", None),
        "PATCH, ms": ("PATCH", path, {"name": "other"}),
    }
    times = {name: statistics.median(client.seconds(*call) for _ in range(CALLS)) for name, call in calls.items()}
    return {"sweep of none, ms": 1000 * sweep_of_none(server)} | {name: 1000 * time for name, time in times.items()}


def sweep_of_none(server: Server) -> float:
    durations = []
    while len(durations) < SWEEPS:
        durations.append(last_sweep_seconds(server))
        time.sleep(0.2)
    return statistics.median(durations)


def busy(server: Server, due: int, size: int) -> Figures:
    with database(server.data) as connection:
        before = count(connection, "alerts")
        make_due(server.data, due)
        wait_until(lambda: count(connection, "alerts") > before, f"the sweep of {due:,} to begin")
        began = time.monotonic()
        with pinging(server, f"check-{size - 1}", 0.001) as pings:
            wait_until(lambda: count(connection, "alerts") == before + due, f"the sweep of {due:,} to end")
            seconds = sweep_seconds(server, time.monotonic() - began)
    return {"sweep, ms": 1000 * seconds, "longest ping, ms": 1000 * max(pings.seconds)}


def sweep_seconds(server: Server, seen: float) -> float:
    """By the server's metrics, once they are of the sweep that was seen to take about so long from here.

    If it took longer than the time between two, the next one has followed at once, and what was seen must do.
    """
    ends = time.monotonic() + 1
    while time.monotonic() < ends:
        seconds = last_sweep_seconds(server)
        if seconds > seen / 2:
            return seconds
        time.sleep(0.02)
    return seen


def make_due(data: Path, due: int) -> None:
    """The first `due` checks come due together, at a moment that is still to come when the last one is written."""
    ahead = 2.0
    while True:
        moment = time.time() + ahead
        with database(data) as connection:
            for start in range(0, due, 10_000):
                connection.execute(
                    "UPDATE checks SET clock_from = ?, status = 'on_time' WHERE seq > ? AND seq <= ?",
                    (int(moment) - PERIOD_SECONDS, start, min(start + 10_000, due)),
                )
        if time.time() < moment - 1:
            return
        ahead *= 2


def last_sweep_seconds(server: Server) -> float:
    with urllib.request.urlopen(f"{server.url}/metrics", timeout=60) as answer:
        return float(re.search(r"^cardbeat_sweep_duration_seconds (\S+)$", answer.read().decode(), re.MULTILINE)[1])


@contextmanager
def silent_receiver() -> Iterator[str]:
    """A webhook address that takes connections and says nothing, so that hardly an alert is sent meanwhile."""
    with socket.create_server(("127.0.0.1", 0), backlog=1000) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"


if __name__ == "__main__":
    parser = parser_of(__doc__)
    parser.add_argument("checks", metavar="CHECKS", nargs="?", type=int, default=1_000_000, help="[1000000]")
    parser.add_argument("--due", metavar="N", nargs="+", type=int, default=DUE, help="how many come due [1000 ...]")
    parser.add_argument("--postgresql", metavar="URL", help="measure the tree over this database too")
    add_rounds(parser)
    main(parser.parse_args())
