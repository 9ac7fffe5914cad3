"""10,000 checks turn overdue in one sweep of a running server, while pings go on.

    python tests/bench/burst.py

Prints how long the sweep took, the rate of alerts at one local receiver, and the pings' times meanwhile.
"""

import http.client
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from delivery import address, receiver

from cardbeat.config import Config
from cardbeat.database import Database
from cardbeat.database_file import FILE_NAME
from cardbeat.keys.store import Keys

ROOT = Path(__file__).parents[2]
CHECKS = 10_000


def main() -> None:
    with receiver(hosts=1, hanging=0) as port, tempfile.TemporaryDirectory() as folder:
        fill(Path(folder), f"http://{address(0)}:{port}/")
        server_port = free_port()
        options = ["--data", folder, "--port", str(server_port), "--allow-private-webhooks"]
        command = [sys.executable, "-m", "cardbeat", *options]
        server = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL)
        try:
            measure(Path(folder), server_port)
        finally:
            server.kill()
            server.wait()


def measure(folder: Path, port: int) -> None:
    connection = sqlite3.connect(folder / FILE_NAME, isolation_level=None)
    wait_for(connection, "SELECT count(*) > 0 FROM alerts", 30)
    began = time.monotonic()
    pings: list[float] = []
    done = threading.Event()
    pinging = threading.Thread(target=ping, args=(port, pings, done))
    pinging.start()
    wait_for(connection, f"SELECT count(*) = {CHECKS} FROM checks WHERE status = 'overdue'", 60)
    flipped = time.monotonic() - began
    wait_for(connection, f"SELECT count(*) = {CHECKS} FROM alerts WHERE state = 'delivered'", 60)
    seconds = time.monotonic() - began
    done.set()
    pinging.join()
    connection.close()
    pings.sort()
    p50, p99 = (1000 * pings[int(len(pings) * part)] for part in (0.5, 0.99))
    print(f"flipped in {flipped:.2f} s; {CHECKS / seconds:,.0f} alerts a second")
    print(f"{len(pings):,} pings meanwhile: p50 {p50:.1f} ms, p99 {p99:.1f} ms, worst {1000 * pings[-1]:.1f} ms")


def wait_for(connection: sqlite3.Connection, query: str, seconds: float) -> None:
    ends = time.monotonic() + seconds
    while not connection.execute(query).fetchone()[0]:
        if time.monotonic() > ends:
            sys.exit(f"gave up waiting for {query}")
        time.sleep(0.1)


def ping(port: int, pings: list[float], done: threading.Event) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    while not done.wait(0.002):
        began = time.monotonic()
        connection.request("GET", "/ping/pinged")
        connection.getresponse().read()
        pings.append(time.monotonic() - began)
    connection.close()


def fill(folder: Path, url: str) -> None:
    database = Database(folder)
    key = Keys(database, time.time, Config().tiers).issue("ops@example.com").key
    now = int(time.time())
    rows = [(f"check-{number}", key.id, 1, url, now - 3600) for number in range(CHECKS)]
    rows.append(("pinged", key.id, 3600, None, now))
    database.write(
        lambda connection: connection.executemany(
            "INSERT INTO checks (id, api_key_id, name, period_seconds, grace_seconds, webhook_url, clock_from,"
            " created_at, updated_at) VALUES (?1, ?2, 'Nightly backup', ?3, 0, ?4, ?5, ?5, ?5)",
            rows,
        )
    )
    database.close()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    main()
