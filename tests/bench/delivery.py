"""How fast alerts are delivered: to one receiver, and to 500 hosts of which half hang.

    python tests/bench/delivery.py

The hosts are addresses in 127.0.0.0/8, served by a second process. Prints rates and the ratio that half the hosts
hanging makes for the healthy half.
"""

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from cardbeat.database import Database
from cardbeat.heartbeat.alerts import Alerts
from cardbeat.heartbeat.check import Check
from tests.heart import new_delivery

HOSTS = 500
SECRET = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="


def main() -> None:
    one = run(hosts=1, alerts=10_000, hanging=0)
    print(f"one receiver, 10,000 alerts: {one:.2f} s, {10_000 / one:,.0f} a second")
    none = run(hosts=HOSTS, alerts=5000, hanging=0)
    print(f"{HOSTS} hosts, none hanging, 5,000 alerts: {none:.2f} s")
    half = run(hosts=HOSTS, alerts=5000, hanging=HOSTS // 2)
    print(f"{HOSTS} hosts, half hanging: the healthy half's 2,500 alerts in {half:.2f} s, {half / none:.2f} times")


def run(hosts: int, alerts: int, hanging: int) -> float:
    """Seconds from the alerts' commit until every alert to a host that answers is recorded as delivered."""
    with receiver(hosts, hanging) as port, tempfile.TemporaryDirectory() as folder:
        database = Database(Path(folder))
        stored = Alerts(database, "http://localhost")
        deliverer = new_delivery(database, stored, time.time)
        expected = alerts * (hosts - hanging) // hosts
        fill(database, stored, [f"http://{address(number)}:{port}/" for number in range(hosts)], alerts)
        began = time.monotonic()
        deliverer.start()
        while deliverer.totals()["delivered"] < expected and time.monotonic() < began + 60:
            time.sleep(0.01)
        seconds = time.monotonic() - began
        if deliverer.totals()["delivered"] < expected:
            print("gave up:", deliverer.totals())
        deliverer.stop(0)
        database.close()
    return seconds


def fill(database: Database, stored: Alerts, urls: list[str], alerts: int) -> None:
    """One check for each alert, spread evenly over the hosts."""

    def insert(connection) -> None:
        connection.execute(
            "INSERT INTO keys (id, scope, tier, hash, prefix, webhook_secret, created_at)"
            " VALUES ('k', 'checks', 'free', x'00', 'sk_', ?, 1)",
            (SECRET,),
        )
        for number in range(alerts):
            row = connection.execute(
                "INSERT INTO checks (id, api_key_id, name, period_seconds, grace_seconds, webhook_url, clock_from,"
                " created_at, updated_at) VALUES (?, 'k', 'Nightly backup', 60, 60, ?, 1, 1, 1) RETURNING *",
                (f"check-{number}", urls[number % len(urls)]),
            ).fetchone()
            stored.record(connection, "check.overdue", [Check.from_row(row)], 1)

    database.write(insert)


@contextmanager
def receiver(hosts: int, hanging: int) -> Iterator[int]:
    command = [sys.executable, __file__, "receive", str(hosts), str(hanging)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield json.loads(process.stdout.readline())
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


async def receive(hosts: int, hanging: int) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        await reader.readexactly(length)
        writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
        writer.close()

    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    port = 0
    for number in range(hosts):
        server = await asyncio.start_server(hang if number < hanging else answer, address(number), port, backlog=1000)
        port = server.sockets[0].getsockname()[1]
    print(port, flush=True)
    await asyncio.sleep(120)


def address(number: int) -> str:
    return f"127.1.{number // 250}.{number % 250 + 1}"


if __name__ == "__main__":
    if sys.argv[1:2] == ["receive"]:
        asyncio.run(receive(int(sys.argv[2]), int(sys.argv[3])))
    else:
        main()
