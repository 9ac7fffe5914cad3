"""Everything at once for a while: stored and new cards, pings, changes, sweeps and alerts.

    python -m tests.bench.mixed [MINUTES] [--tree DIR] [--beside DIR]

Prints what the server holds (memory, descriptors, threads) as it goes, and what it answered, and ends with 1 if there
was a 5xx. What it holds must level off after the caches have filled. Thirty minutes without an argument. A second
checkout is under the same load at the same time.
"""

import argparse
import contextlib
import http.server
import itertools
import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from tests.bench.checks import Client, create_checks_key
from tests.bench.running import Figures, Server, create_key, parser_of, percentiles_ms, serving, show_figures, trees_of

PAUSE_SECONDS = 0.005
CHECKS = 50
CARDS = 200
OPTIONS = ("--allow-private-webhooks", "--sweep-seconds", "1", "--store-mb", "50")


class Receiver(http.server.BaseHTTPRequestHandler):
    """Takes alerts, and counts them by type."""

    alerts: ClassVar[Counter[str]] = Counter()

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.alerts[body["type"]] += 1
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@dataclass
class Load:
    """The clients of one server, and what they were answered."""

    server: Server
    statuses: Counter[int] = field(default_factory=Counter)
    seconds: dict[str, list[float]] = field(default_factory=dict)
    threads: list[threading.Thread] = field(default_factory=list)

    def start(self, tree: Path, webhook_url: str, end: float) -> None:
        """Half of the checks are pinged too seldom, so that they fall silent and recover."""
        cards_key = create_key(tree, self.server.data, "--tier", "unlimited")
        owner = Client(self.server, create_checks_key(tree, self.server.data))
        check = {"name": "job", "period_seconds": 1, "grace_seconds": 0, "webhook_url": webhook_url}
        ids = [owner.ask("POST", "/checks", check)[1]["check"]["id"] for _ in range(CHECKS)]
        stored, new, pings, rare = (Client(self.server) for _ in range(4))
        card = f"/og?key={cards_key}&title="
        self._repeat(end, "stored card", lambda n: stored.ask("GET", f"{card}stored+{n % CARDS}"))
        self._repeat(end, "new card", lambda n: new.ask("GET", f"{card}new+{n}"), every=20)
        self._repeat(end, "ping", lambda n: pings.ask("GET", f"/ping/{ids[n % (CHECKS // 2)]}"))
        self._repeat(end, "rare ping", lambda n: rare.ask("GET", f"/ping/{ids[n // 200 % CHECKS]}"), every=200)
        self._repeat(end, "PATCH", lambda n: owner.ask("PATCH", f"/checks/{ids[n % CHECKS]}", {"name": f"job {n}"}))

    def _repeat(self, end: float, name: str, ask: Callable[[int], tuple[int, object]], every: int = 1) -> None:
        """Ask again and again, or at each `every`th turn only."""
        times = self.seconds[name] = []

        def run() -> None:
            for number in itertools.count():
                if time.monotonic() >= end:
                    return
                if number % every == 0:
                    started = time.perf_counter()
                    self.statuses[ask(number)[0]] += 1
                    times.append(time.perf_counter() - started)
                time.sleep(PAUSE_SECONDS)

        self.threads.append(threading.Thread(target=run))
        self.threads[-1].start()

    def held(self) -> str:
        server = self.server
        return (
            f"{server.memory_bytes() >> 20} MiB, {server.descriptors()} descriptors, {server.threads()} threads, "
            f"{sum(self.statuses.values())} answers"
        )

    def figures(self) -> Figures:
        times = {
            f"{name}, {what}": milliseconds
            for name, seconds in self.seconds.items()
            for what, milliseconds in percentiles_ms(seconds).items()
        }
        return {
            "answers": sum(self.statuses.values()),
            "5xx": sum(number for status, number in self.statuses.items() if status >= 500),
            **times,
            "memory, MiB": self.server.memory_bytes() / 2**20,
            "descriptors": self.server.descriptors(),
            "threads": self.server.threads(),
            "CPU, s": self.server.cpu_seconds(),
        }


def main(arguments: argparse.Namespace) -> None:
    receiver = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=receiver.serve_forever, daemon=True).start()
    webhook_url = f"http://127.0.0.1:{receiver.server_address[1]}"
    trees = trees_of(arguments)
    with contextlib.ExitStack() as stack:
        loads = {name: Load(stack.enter_context(serving(*OPTIONS, tree=tree))) for name, tree in trees.items()}
        started = time.monotonic()
        for name, load in loads.items():
            load.start(trees[name], webhook_url, started + arguments.minutes * 60)
        while any(thread.is_alive() for load in loads.values() for thread in load.threads):
            for name, load in loads.items():
                print(f"{time.monotonic() - started:5.0f} s, {name}: {load.held()}", flush=True)
            time.sleep(arguments.minutes * 3)
        figures = {name: load.figures() for name, load in loads.items()}
    show_figures(figures)
    for name, load in loads.items():
        print(f"{name}: answers by status {dict(load.statuses)}")
    print("alerts", dict(Receiver.alerts))
    sys.exit(any(found["5xx"] for found in figures.values()))


if __name__ == "__main__":
    parser = parser_of(__doc__)
    parser.add_argument("minutes", metavar="MINUTES", nargs="?", type=float, default=30, help="[30]")
    main(parser.parse_args())
