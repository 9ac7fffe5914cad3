"""What a sweep costs beside very many checks: `python -m tests.bench.sweep [CHECKS]`.

The promises: none due of a million at most 2 ms, 1,000 due at most 150 ms, 10,000 due within 2 s, no write job
over 150 ms with 100,000 due; a ping, a PATCH and a read cost what they cost at 1,000 checks.
"""

import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

from cardbeat.config import UNLIMITED
from cardbeat.database import Database
from cardbeat.heartbeat.alerts import Alerts
from cardbeat.heartbeat.check import Settings
from cardbeat.heartbeat.checks import Checks
from cardbeat.heartbeat.sweep import Sweep
from cardbeat.keys.store import Keys
from tests.heart import BASE_URL, new_delivery
from tests.support import FakeClock

SMALL = 1000
PERIOD_SECONDS = 100_000


class JobTimes(Database):
    """A database that notes how long each write job ran."""

    def __init__(self, folder):
        super().__init__(folder)
        self.seconds = []

    def _run(self, job):
        started = time.perf_counter()
        super()._run(job)
        self.seconds.append(time.perf_counter() - started)


class Bench:
    def __init__(self, folder):
        self.clock = FakeClock()
        self.database = JobTimes(folder)
        alerts = Alerts(self.database, BASE_URL)
        delivery = new_delivery(self.database, alerts, self.clock)
        self.keys = Keys(self.database, self.clock, {"free": UNLIMITED})
        self.key = self.keys.issue("ops@example.com").key
        self.checks = Checks(self.database, self.clock, alerts, delivery)
        self.sweep = Sweep(self.database, self.clock, alerts, delivery.wake, 60)
        self.created = 0

    def fill(self, count):
        """Checks with ids `check-<n>`, none of them due for a long time."""
        for start in range(self.created, count, 50_000):
            rows = [(f"check-{n}", self.key.id, int(self.clock())) for n in range(start, min(start + 50_000, count))]
            self.database.write(lambda connection, rows=rows: connection.executemany(INSERT, rows))
        self.created = count

    def make_due(self, count):
        due = int(self.clock()) - PERIOD_SECONDS - 1
        for start in range(0, count, 10_000):
            ids = [(due, f"check-{n}") for n in range(start, min(start + 10_000, count))]
            self.database.write(
                lambda connection, ids=ids: connection.executemany(
                    "UPDATE checks SET clock_from = ?, status = 'on_time' WHERE id = ?", ids
                )
            )

    def show_sweep(self, due):
        self.make_due(due)
        self.database.seconds.clear()
        pings, stop = [], threading.Event()
        pinging = threading.Thread(target=self._ping_until, args=(stop, pings))
        pinging.start()
        started = time.perf_counter()
        turned = self.sweep.sweep_once()
        seconds = time.perf_counter() - started
        stop.set()
        pinging.join()
        assert turned == due, turned
        print(
            f"  sweep, {due:>7,} due: {ms(seconds)}; longest write job {ms(max(self.database.seconds))}; "
            f"longest ping beside it {ms(max(pings))}"
        )

    def _ping_until(self, stop, seconds):
        while not stop.wait(0.001) or not seconds:
            seconds.append(timed(lambda: self.checks.ping(f"check-{self.created - 1}")))

    def show_sweep_of_none(self):
        print(f"  sweep, none due: {ms(statistics.median(timed(self.sweep.sweep_once) for _ in range(50)))}")

    def show_others(self):
        check_id = f"check-{self.created // 2}"
        settings = Settings("other", PERIOD_SECONDS, 0, None)
        deeds = {
            "ping": lambda: self.checks.ping(check_id),
            "read": lambda: self.checks.get(self.key.id, check_id),
            "page": lambda: self.checks.page(self.key.id, 100, check_id),
            "PATCH": lambda: self.checks.update(self.checks.get(self.key.id, check_id), settings),
        }
        figures = (f"{name} {ms(statistics.median(timed(deed) for _ in range(200)))}" for name, deed in deeds.items())
        print(f"  {', '.join(figures)}")


INSERT = (
    "INSERT INTO checks (id, api_key_id, name, period_seconds, grace_seconds, webhook_url, clock_from, created_at, "
    f"updated_at) VALUES (?1, ?2, 'nightly backup', {PERIOD_SECONDS}, 0, 'https://hooks.example/x', ?3, ?3, ?3)"
)


def timed(deed):
    started = time.perf_counter()
    deed()
    return time.perf_counter() - started


def ms(seconds):
    return f"{seconds * 1000:.2f} ms"


def main(count):
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder))
        for size in (SMALL, count):
            bench.fill(size)
            print(f"{size:,} checks")
            bench.show_sweep_of_none()
            bench.show_others()
        for due in (1000, 10_000, 100_000):
            if due < count:
                bench.show_sweep(due)
        bench.database.close()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
