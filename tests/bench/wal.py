"""How large the write-ahead log grows while readers always overlap, and what pings cost meanwhile.

    python -m tests.bench.wal [CHECKS] [--seconds N] [--tree DIR] [--beside DIR] [--rounds N]

Four clients ask for `/metrics`, and after that for a page of 1,000 checks, each again and again on its connection,
while eight others ping checks in random order. SQLite writes to the beginning of its log again only at a moment without
readers. Nothing is judged here.
"""

import argparse
import random
import tempfile
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from tests.bench.checks import Calling, Check, Client, create_checks_key, insert
from tests.bench.running import Figures, Server, add_rounds, compare, parser_of, percentiles_ms, serving

PERIOD_SECONDS = 100_000
READERS = 4
PINGING = 8


def main(arguments: argparse.Namespace) -> None:
    compare(arguments, partial(measure, arguments.checks, arguments.seconds))


def measure(checks: int, seconds: float, tree: Path) -> Figures:
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder)
        key = create_checks_key(tree, data)
        now = int(time.time())
        insert(data, (Check(f"check-{number}", PERIOD_SECONDS, None, now) for number in range(checks)))
        with serving(tree=tree, data=data) as server:
            return attack(server, key, checks, seconds)


def attack(server: Server, key: str, checks: int, seconds: float) -> Figures:
    figures = {}
    for name, path in (("metrics", "/metrics"), ("pages", "/checks?limit=1000")):
        # It has its database open once it answers.
        Client(server, key).seconds("GET", path)
        figures |= {
            f"{name}: {what}": number for what, number in overlapping(server, key, path, checks, seconds).items()
        }
    return figures


def overlapping(server: Server, key: str, path: str, checks: int, seconds: float) -> Figures:
    """The log's size and the times of calls, with all clients at once."""
    largest, wal = 0, server.data / "cardbeat.db-wal"
    with ExitStack() as clients:
        reading = [clients.enter_context(Calling(Client(server, key), lambda: path)) for _ in range(READERS)]
        pinging = [clients.enter_context(Calling(Client(server), partial(some_ping, checks))) for _ in range(PINGING)]
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            largest = max(largest, wal.stat().st_size)
            time.sleep(0.01)
    return {
        "largest -wal, MB": largest / 1e6,
        "reads a second": len(times_of(reading)) / seconds,
        "pings a second": len(times_of(pinging)) / seconds,
        **{f"ping {name}": number for name, number in percentiles_ms(times_of(pinging)).items()},
    }


def some_ping(checks: int) -> str:
    return f"/ping/check-{random.randrange(checks)}"


def times_of(clients: list[Calling]) -> list[float]:
    return [seconds for client in clients for seconds in client.seconds]


if __name__ == "__main__":
    parser = parser_of(__doc__)
    parser.add_argument("checks", metavar="CHECKS", nargs="?", type=int, default=1_000_000, help="[1000000]")
    parser.add_argument("--seconds", metavar="N", type=float, default=60, help="[60]")
    add_rounds(parser)
    main(parser.parse_args())
