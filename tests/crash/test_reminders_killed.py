"""`kill -9` between a snooze, a reminder and a recovery: what was answered holds, and nothing is told after its end."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.crash.client import ask, checks_key, new_check
from tests.receiver import Receiver
from tests.support import wait_until

ROOT = Path(__file__).resolve().parents[2]
BEGAN = 1_800_000_000

CHILD = """
import itertools, os, signal, sys, time
from pathlib import Path

from cardbeat.config import Tier
from cardbeat.database import open_database
from cardbeat.heartbeat.check import Settings
from cardbeat.heartbeat.checks import Checks
from cardbeat.heartbeat.delivery.courier import Courier
from cardbeat.heartbeat.delivery.delivery import Delivery
from cardbeat.heartbeat.outbox.alerts import Alerts
from cardbeat.heartbeat.sweep import Sweep
from cardbeat.heartbeat.webhooks.post import Sender
from cardbeat.keys.store import Keys

folder, url, times, owner, name, moment, calls = sys.argv[1:]
numbers, now = itertools.count(1), [0]


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


def settle():
    while any(alert["state"] == "pending" for check_id in known for alert in alerts.newest(check_id)):
        time.sleep(0.01)


if owner:
    dies_in(globals()[owner], name, moment)
clock = lambda: now[0]
database = open_database(Path(folder))
alerts = Alerts(database, "https://beats.example")
delivery = Delivery(alerts, Courier(alerts, Sender(allow_private=True).post, clock), clock)
keys = Keys(database, clock, {"free": Tier()})
checks = Checks(database, clock, alerts, delivery)
# So seldom that no time here counts as a downtime.
sweep = Sweep(database, clock, alerts, delivery.wake, 100_000, monotonic=clock)
now[0] = int(times.split(",")[0])
with database.read() as connection:
    known = [row["id"] for row in connection.execute("SELECT id FROM checks")]
if not known:
    key = keys.issue("ops@example.com").wait().key
    known = [checks.create(key, Settings(f"job {number}", 60, 0, url, 300)).wait().id for number in range(2)]
delivery.start()
for now[0] in map(int, times.split(",")):
    sweep.sweep_once()
    settle()
for check_id in known:
    checks.ping(check_id).wait()
settle()
delivery.stop(5)
database.close()
"""

POINTS = [
    ("Alerts", "record", "after"),
    ("Alerts", "drop_reminders", "after"),
    ("Sweep", "_mark_overdue", "after"),
    ("Sweep", "sweep_once", "after"),
    ("Alerts", "message", "before"),
    ("Sender", "post", "after"),
    ("Alerts", "store", "before"),
    ("Alerts", "store", "after"),
]


def run(folder, url, times, point=("", "", ""), call=0):
    shown = ",".join(str(BEGAN + seconds) for seconds in times)
    command = [sys.executable, "-c", CHILD, str(folder), url, shown, *point, str(call)]
    return subprocess.run(command, cwd=ROOT, timeout=60, check=False).returncode


@pytest.mark.parametrize("call", [2, 3, 4])
@pytest.mark.parametrize("point", POINTS, ids=" ".join)
def test_reminders_stand_between_an_outage_and_its_end_after_a_kill(tmp_path, point, call):
    with Receiver() as receiver:
        killed = run(tmp_path, receiver.url, (0, 61, 400, 700), point, call)
        assert run(tmp_path, receiver.url, (1000,)) == 0
    assert killed in (-signal.SIGKILL, 0)
    arrived = {received.id: received.json for received in receiver.received}
    for job in range(2):
        told = [alert["type"] for alert in arrived.values() if alert["data"]["check"]["name"] == f"job {job}"]
        rounds = [told[start : end + 1] for start, end in _rounds(told)]
        # Killed after a recovery, the second run finds another outage.
        assert len(rounds) in (1, 2)
        assert sum(map(len, rounds)) == len(told)
        for outage in rounds:
            assert outage[0] == "check.overdue"
            assert outage[-1] == "check.recovered"
            assert set(outage[1:-1]) <= {"check.reminder"}
            # At 400, at 700 and at 1,000.
            assert len(outage) <= 5


def _rounds(told):
    ends = [place for place, alert_type in enumerate(told) if alert_type == "check.recovered"]
    return list(zip([0, *(end + 1 for end in ends)], ends, strict=False))


def test_an_answered_snooze_holds_after_a_kill(start):
    with Receiver() as receiver:
        options = ("--data", "data", "--sweep-seconds", "0.2", "--allow-private-webhooks")
        server = start(*options)
        key = checks_key(server)
        snoozed = new_check(server, key, period_seconds=1, webhook_url=receiver.url)
        answered = ask(server, "PUT", f"/checks/{snoozed['id']}/snooze", {"seconds": 3600}, key).json
        server.process.kill()
        server.process.wait()
        again = start(*options, port=server.port)
        assert ask(again, "GET", f"/checks/{snoozed['id']}", key=key).json == answered
        other = new_check(again, key, period_seconds=1, webhook_url=receiver.url)
        wait_until(lambda: ask(again, "GET", f"/checks/{other['id']}", key=key).json["check"]["status"] == "overdue")
        assert ask(again, "GET", f"/checks/{snoozed['id']}", key=key).json["check"]["status"] == "on_time"
        wait_until(lambda: receiver.received)
    assert {received.json["data"]["check"]["id"] for received in receiver.received} == {other["id"]}
