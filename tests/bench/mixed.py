"""Everything at once for a while: stored and new cards, pings, changes, sweeps and alerts.

    python -m tests.bench.mixed [MINUTES]

Prints what the server holds (memory, descriptors, threads) as it goes, and what it answered. It must level off
after the caches have filled, and there must be no 5xx. Thirty minutes without an argument.
"""

import http.client
import http.server
import itertools
import json
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from tests.bench.running import Server, serving

PAUSE_SECONDS = 0.005
CHECKS = 50
CARDS = 200
TIERS = "[free]\nrenders_per_minute = 1000000\n"


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


class Client:
    """One kept connection, and the statuses that came over it."""

    def __init__(self, server: Server, statuses: Counter[int], key: str = "") -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
        self._statuses = statuses
        self._headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}

    def ask(self, method: str, path: str, value: object = None) -> dict:
        body = None if value is None else json.dumps(value)
        self._connection.request(method, path, body, self._headers if body else {})
        response = self._connection.getresponse()
        self._statuses[response.status] += 1
        data = response.read()
        return json.loads(data) if response.headers["Content-Type"] == "application/json" else {}


def repeat(end: float, act: Callable[[int], object]) -> threading.Thread:
    def run() -> None:
        for number in itertools.count():
            if time.monotonic() >= end:
                return
            act(number)
            time.sleep(PAUSE_SECONDS)

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def load(server: Server, webhook_url: str, end: float, statuses: Counter[int]) -> list[threading.Thread]:
    """Starts the clients. Half of the checks are pinged too seldom, so that they fall silent and recover."""
    setup = Client(server, statuses)
    cards_key = setup.ask("POST", "/register")["key"]
    checks_key = setup.ask("POST", "/register", {"email": "owner@example.org"})["key"]
    owner = Client(server, statuses, checks_key)
    check = {"name": "job", "period_seconds": 1, "grace_seconds": 0, "webhook_url": webhook_url}
    ids = [owner.ask("POST", "/checks", check)["check"]["id"] for _ in range(CHECKS)]
    stored, new, pings, rare = (Client(server, statuses) for _ in range(4))
    card = f"/og?key={cards_key}&title="
    return [
        repeat(end, lambda n: stored.ask("GET", f"{card}stored+{n % CARDS}")),
        repeat(end, lambda n: new.ask("GET", f"{card}new+{n}") if n % 20 == 0 else None),
        repeat(end, lambda n: pings.ask("GET", f"/ping/{ids[n % (CHECKS // 2)]}")),
        repeat(end, lambda n: rare.ask("GET", f"/ping/{ids[n // 200 % CHECKS]}") if n % 200 == 0 else None),
        repeat(end, lambda n: owner.ask("PATCH", f"/checks/{ids[n % CHECKS]}", {"name": f"job {n}"})),
    ]


def main(minutes: float) -> None:
    receiver = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=receiver.serve_forever, daemon=True).start()
    statuses: Counter[int] = Counter()
    with tempfile.NamedTemporaryFile("w") as tiers:
        Path(tiers.name).write_text(TIERS)
        options = ("--allow-private-webhooks", "--sweep-seconds", "1", "--store-mb", "50", "--tiers", tiers.name)
        with serving(*options) as server:
            started = time.monotonic()
            clients = load(server, f"http://127.0.0.1:{receiver.server_address[1]}", started + minutes * 60, statuses)
            while any(client.is_alive() for client in clients):
                held = (
                    f"{server.memory_bytes() >> 20} MiB, {server.descriptors()} descriptors, {server.threads()} threads"
                )
                print(f"{time.monotonic() - started:5.0f} s: {held}, {sum(statuses.values())} answers", flush=True)
                time.sleep(minutes * 3)
    print("answers by status", dict(statuses), "alerts", dict(Receiver.alerts))
    sys.exit(any(status >= 500 for status in statuses))


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 30)
