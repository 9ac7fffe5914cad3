"""Durable pings beside the plain way of writing them: `python -m tests.bench.pings`.

Plain is one connection a thread and one commit a ping. Ours are taken as the server takes them: nobody waits in a
thread, and a client sends its next ping when the last one is on disk. The promise: at 16 clients at least 4 times
one connection a thread with `synchronous = FULL`, in the same run; at 64 clients 99 of 100 within 30 ms.
"""

import sqlite3
import tempfile
import threading
import time
from pathlib import Path

from cardbeat.database import Database
from tests.heart import Heart

SECONDS = 3
CHECKS = 1000


def load(clients, ping_of):
    """Each client pings as fast as it can; `ping_of()` makes a client's function. Durations in seconds, sorted."""
    durations = []
    ends = time.perf_counter() + SECONDS

    def client(number):
        ping = ping_of()
        while (started := time.perf_counter()) < ends:
            ping(number * 17 % CHECKS)
            durations.append(time.perf_counter() - started)
            number += 1

    threads = [threading.Thread(target=client, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(durations)


def plain_ping_of(path, ids):
    """One connection a thread, one commit a ping."""

    def make():
        connection = sqlite3.connect(path, isolation_level=None, timeout=30)
        connection.execute("PRAGMA synchronous = FULL")

        def ping(number):
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(
                "UPDATE checks SET clock_from = ?1, last_ping_at = ?1, ping_count = ping_count + 1 WHERE id = ?2",
                (int(time.time()), ids[number]),
            )
            connection.execute("COMMIT")

        return ping

    return make


def load_later(clients, checks, ids):
    """As `load`, through `ping_later`."""
    durations, over = [], threading.Semaphore(0)
    ends = time.perf_counter() + SECONDS

    def ping(number):
        started = time.perf_counter()

        def done(pinged):
            pinged.result()
            durations.append(time.perf_counter() - started)
            if time.perf_counter() < ends:
                ping(number + 1)
            else:
                over.release()

        checks.ping_later(ids[number * 17 % CHECKS]).then(done)

    for number in range(clients):
        ping(number)
    for _ in range(clients):
        over.acquire()
    return sorted(durations)


def show(name, clients, durations):
    rate = len(durations) / SECONDS
    middle, late = (durations[int(len(durations) * part)] * 1000 for part in (0.5, 0.99))
    print(
        f"{name:>10}, {clients:>2} clients: {rate:>7,.0f} pings/s, median {middle:.2f} ms, 99 of 100 within "
        f"{late:.2f} ms, longest {durations[-1] * 1000:.0f} ms"
    )
    return rate


def main():
    with tempfile.TemporaryDirectory() as folder:
        database = Database(Path(folder))
        heart = Heart(database, time.time)
        ids = [heart.create(period_seconds=100_000).id for _ in range(CHECKS)]
        rates = {}
        for clients in (1, 16, 64):
            plain = show("plain", clients, load(clients, plain_ping_of(database.path, ids)))
            ours = show("cardbeat", clients, load_later(clients, heart.checks, ids))
            rates[clients] = ours / plain
        print("cardbeat / plain: " + ", ".join(f"{rate:.1f} at {clients}" for clients, rate in rates.items()))
        database.close()


if __name__ == "__main__":
    main()
