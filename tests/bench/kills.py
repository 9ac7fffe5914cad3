"""A server under load killed with SIGKILL again and again: nothing that it acknowledged may be missing.

    python -m tests.bench.kills [KILLS] [--tree DIR]

Clients ping, PATCH and order test alerts while checks go overdue and recover. In the end every acknowledged ping and
change is stored, every acknowledged alert has arrived, and each check's outages were told in order, once.
"""

import argparse
import http.client
import json
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from pathlib import Path

from tests.bench.checks import database
from tests.bench.running import free_port, parser_of
from tests.receiver import Receiver

CLIENTS = 8


def main(arguments: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as folder, Arrivals() as arrivals:
        server = Server(arguments.tree, Path(folder))
        server.start()
        clients = [Client(server, arrivals.url, number) for number in range(CLIENTS)]
        for number in range(arguments.kills):
            # In a long life checks go overdue and recover.
            server.survive(clients, 4 if number % 4 == 0 else random.uniform(0.1, 1))
        server.start()
        settle(server, clients)
        server.kill()
        report(Path(folder), server, clients, arrivals)


class Server:
    def __init__(self, tree: Path, folder: Path) -> None:
        self.tree = tree
        self.folder = folder
        self.starts: list[float] = []
        self.port = free_port()

    def start(self) -> None:
        options = ["--data", str(self.folder), "--port", str(self.port), "--sweep-seconds", "0.2"]
        command = [sys.executable, "-m", "cardbeat", *options, "--allow-private-webhooks"]
        began = time.monotonic()
        self.process = subprocess.Popen(command, cwd=self.tree, stderr=subprocess.DEVNULL)
        while not self.answers():
            if self.process.poll() is not None or time.monotonic() > began + 300:
                sys.exit("the server did not start")
            time.sleep(0.005)
        self.starts.append(time.monotonic() - began)

    def answers(self) -> bool:
        try:
            self.call("GET", "/healthz")
        except OSError:
            return False
        return True

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def survive(self, clients: "list[Client]", seconds: float) -> None:
        if self.process.poll() is not None:
            self.start()
        threads = [threading.Thread(target=client.work) for client in clients]
        for thread in threads:
            thread.start()
        time.sleep(seconds)
        self.kill()
        for thread in threads:
            thread.join()

    def call(self, method: str, path: str, body: object = None, key: str = "") -> dict:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            headers = {"Content-Type": "application/json"} if body is not None else {}
            if key:
                headers["Authorization"] = f"Bearer {key}"
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            content = json.loads(answer.read())
            # A key has so many test alerts an hour, and no more; a sweep may be late on a busy machine.
            if answer.status >= 400 and answer.status != 429 and path != "/healthz":
                sys.exit(f"{method} {path}: {answer.status} {content}")
            return content
        finally:
            connection.close()


class Client:
    """Works on a check and with a key of its own, and remembers what was acknowledged."""

    def __init__(self, server: Server, url: str, number: int) -> None:
        self.server = server
        self.key = server.call("POST", "/register", {"email": "ops@example.com"})["key"]
        body = {"name": f"{number}", "period_seconds": 1, "grace_seconds": 0, "webhook_url": url}
        self.check = server.call("POST", "/checks", body, self.key)["check"]
        self.path = f"/checks/{self.check['id']}"
        self.acknowledged: Counter[str] = Counter(pings=0, tests=0)
        self.version = 1

    def work(self) -> None:
        try:
            while True:
                self.server.call("GET", f"/ping/{self.check['id']}")
                self.acknowledged["pings"] += 1
                self.acknowledged["tests"] += "check" in self.server.call(
                    "POST", f"{self.path}/test-alert", key=self.key
                )
                self.version = self.server.call("PATCH", self.path, {}, self.key)["check"]["version"]
                time.sleep(random.choice((0, 0.1, 2.5)))
        except (OSError, http.client.HTTPException, ValueError):
            pass


class Arrivals:
    """The first arrival of each alert, by check, in order."""

    def __init__(self) -> None:
        self._receiver = Receiver()
        self.url = self._receiver.url

    def __enter__(self) -> "Arrivals":
        return self

    def __exit__(self, *_: object) -> None:
        self._receiver.__exit__()

    def by_check(self) -> dict[str, list[str]]:
        first = {received.id: received.json for received in self._receiver.received}
        kinds = defaultdict(list)
        for alert in first.values():
            kinds[alert["data"]["check"]["id"]].append(alert["type"])
        return kinds

    def doubles(self) -> int:
        return len(self._receiver.received) - len(set(self._receiver.ids))


def settle(server: Server, clients: list[Client]) -> None:
    """Wait until nothing is pending any more."""
    ends = time.monotonic() + 900
    for client in clients:
        while "pending" in [
            alert["state"] for alert in server.call("GET", f"{client.path}/alerts", key=client.key)["alerts"]
        ]:
            if time.monotonic() > ends:
                sys.exit("alerts are still pending")
            time.sleep(0.1)
        stored = server.call("GET", client.path, key=client.key)["check"]
        if stored["ping_count"] < client.acknowledged["pings"] or stored["version"] < client.version:
            sys.exit(f"an acknowledged ping or change is missing: {stored}")


def report(folder: Path, server: Server, clients: list[Client], arrivals: Arrivals) -> None:
    with database(folder) as connection:
        problems = connection.execute("PRAGMA integrity_check").fetchall()
    if problems != [("ok",)]:
        sys.exit(f"the database is damaged: {problems}")
    outages = 0
    kinds = arrivals.by_check()
    for client in clients:
        told = kinds[client.check["id"]]
        if told.count("check.test") < client.acknowledged["tests"]:
            sys.exit(f"an acknowledged alert is missing: {client.acknowledged}, {Counter(told)}")
        turns = [kind for kind in told if kind != "check.test"]
        if turns != (["check.overdue", "check.recovered"] * len(turns))[: len(turns)]:
            sys.exit(f"outages were not told once and in order: {turns}")
        outages += turns.count("check.overdue")
    totals = sum((client.acknowledged for client in clients), Counter())
    starts = sorted(server.starts)
    print(f"{len(starts) - 1} kills; {totals['pings']:,} pings, {totals['tests']:,} alerts acknowledged, none missing")
    print(f"{outages:,} outages told once, in order; {arrivals.doubles()} alerts arrived twice under one id")
    print(f"restart: median {starts[len(starts) // 2]:.2f} s, worst {starts[-1]:.2f} s; integrity ok")


if __name__ == "__main__":
    parser = parser_of(__doc__, beside=False)
    parser.add_argument("kills", metavar="KILLS", nargs="?", type=int, default=100, help="[100]")
    main(parser.parse_args())
