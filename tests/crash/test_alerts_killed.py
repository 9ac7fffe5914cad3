"""`kill -9` at every point between a change of status and its recorded delivery: each alert arrives."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.receiver import Receiver

ROOT = Path(__file__).resolve().parents[2]

CHILD = """
import itertools, os, signal, sys, time
from pathlib import Path

from cardbeat.config import Tier
from cardbeat.database import open_database
from cardbeat.heartbeat.outbox.alerts import Alerts
from cardbeat.heartbeat.check import Settings
from cardbeat.heartbeat.checks import Checks
from cardbeat.heartbeat.delivery.courier import Courier
from cardbeat.heartbeat.delivery.delivery import Delivery
from cardbeat.heartbeat.outbox.pending import PendingAlerts
from cardbeat.heartbeat.sweep import Sweep
from cardbeat.heartbeat.webhooks.post import Sender
from cardbeat.keys.store import Keys

folder, url, owner, name, moment, calls = sys.argv[1:]
numbers = itertools.count(1)


def dies_in(owner, name, moment):
    whole = getattr(owner, name)

    def part(*args, **options):
        last = next(numbers) == int(calls)
        if last and moment == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        result = whole(*args, **options)
        if last:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(owner, name, part)


if owner:
    dies_in(globals()[owner], name, moment)
database = open_database(Path(folder))
alerts = Alerts(database, "https://beats.example")
courier = Courier(alerts, Sender(allow_private=True).post, time.time)
delivery = Delivery(alerts, courier, time.time)
keys = Keys(database, time.time, {"free": Tier()})
checks = Checks(database, time.time, alerts, delivery)
with database.read() as connection:
    known = [row["id"] for row in connection.execute("SELECT id FROM checks")]
if not known:
    key = keys.issue("ops@example.com").wait().key
    long_ago = Checks(database, lambda: time.time() - 3600, alerts, delivery)
    known = [long_ago.create(key, Settings(f"job {number}", 60, 0, url)).wait().id for number in range(3)]
delivery.start()
Sweep(database, time.time, alerts, delivery.wake, 60).sweep_once()
for check_id in known:
    checks.ping(check_id).wait()
while any(alert["state"] == "pending" for check_id in known for alert in alerts.newest(check_id)):
    time.sleep(0.01)
delivery.stop(5)
database.close()
"""

POINTS = [
    ("Alerts", "record", "after"),  # stored, not committed: first by the sweep, then by a ping
    ("Sweep", "_mark_overdue", "after"),
    ("Sweep", "sweep_once", "after"),  # committed
    ("Checks", "_tell", "before"),  # a recovery committed
    ("PendingAlerts", "after", "before"),
    ("Alerts", "message", "before"),  # in a courier's hands
    ("Sender", "post", "before"),
    ("Sender", "post", "after"),  # sent, not recorded
    ("Alerts", "store", "before"),
    ("Alerts", "store", "after"),  # recorded
]


def run(folder, url, point=("", "", ""), call=0):
    command = [sys.executable, "-c", CHILD, str(folder), url, *point, str(call)]
    return subprocess.run(command, cwd=ROOT, timeout=60, check=False).returncode


@pytest.mark.parametrize(
    ("point", "call"), [(point, 1) for point in POINTS] + [(POINTS[0], 2)] + [(point, 3) for point in POINTS[5:9]]
)
def test_every_alert_arrives_after_a_kill(tmp_path, point, call):
    with Receiver() as receiver:
        killed = run(tmp_path, receiver.url, point, call)
        assert run(tmp_path, receiver.url) == 0
    assert killed == -signal.SIGKILL or (killed, call) == (0, 3)
    arrived = {received.id: received.json for received in receiver.received}
    told = [(alert["data"]["check"]["name"], alert["type"]) for alert in arrived.values()]
    expected = [(f"job {job}", f"check.{kind}") for job in range(3) for kind in ("overdue", "recovered")]
    # One id for each outage and kind, however often it was sent, and each check's in order.
    assert sorted(told) == expected
    for job in range(3):
        assert [kind for name, kind in told if name == f"job {job}"] == ["check.overdue", "check.recovered"]
    # At most what was under way at the kill was sent twice.
    assert len(receiver.received) <= len(expected) + 4
