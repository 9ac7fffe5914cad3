"""`kill -9` at every point between a change of status and its recorded delivery: each alert arrives, in order."""

import re
import signal
import sqlite3
import sys

import pytest

from cardbeat.database.sqlite.file import FILE_NAME
from tests.artifact import ROOT, ran
from tests.receiver import Receiver

CHILD = """
import itertools, os, signal, sys, time
from pathlib import Path

from cardbeat.config import Tier
from cardbeat.database import open_database
from cardbeat.heartbeat.check import Settings
from cardbeat.heartbeat.checks import Checks
from cardbeat.heartbeat.pings import Pings
from cardbeat.heartbeat.alerts import recording
from cardbeat.heartbeat.alerts.delivery import Delivery
from cardbeat.heartbeat.alerts.outbox import Outbox
from cardbeat.heartbeat.alerts.post import Sender
from cardbeat.heartbeat.sweep import Sweep
from cardbeat.keys.store import Keys

folder, url, times, point, call = sys.argv[1:]
numbers, now = itertools.count(1), 0


def dies_in(owner, name, moment):
    whole = getattr(owner, name)

    def part(*args, **options):
        last = next(numbers) == int(call)
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


if point:
    owner, name, moment = point.split()
    dies_in(globals()[owner], name, moment)
clock = lambda: now
database = open_database(Path(folder))
alerts = Outbox(database, "https://beats.example")
delivery = Delivery(alerts, Sender(allow_private=True).post, clock)
checks = Checks(database, clock, delivery.wake)
pings = Pings(database, clock, delivery.wake)
# So seldom that no time here counts as a downtime.
sweep = Sweep(database, clock, delivery.wake, 100_000, monotonic=clock)
with database.read() as connection:
    known = [row["id"] for row in connection.execute("SELECT id FROM checks")]
if not known:
    key = Keys(database, clock, {"free": Tier()}).issue("ops@example.com").key
    known = [checks.create(key, Settings(str(job), 60, 0, url, 300)).id for job in range(2)]
delivery.start()
for now in map(int, times.split(",")):
    sweep.sweep_once()
    settle()
for check_id in known:
    pings.ping(check_id).wait()
settle()
delivery.stop(5)
database.close()
"""
POINTS = (
    "recording record after",  # stored, not committed: by the sweep or by a ping
    "recording drop_reminders after",
    "Sweep sweep_once after",  # committed
    "Pings ping after",
    "Outbox queues before",
    "Outbox messages before",  # in a sender's hands
    "Sender post before",
    "Sender post after",  # sent, not recorded
    "Outbox store before",
    "Outbox store after",  # recorded
)
JOBS = 2


def run(folder, url, times, point="", call=0):
    return ran(sys.executable, "-c", CHILD, folder, url, times, point, str(call), cwd=ROOT).returncode


@pytest.mark.parametrize("call", [1, 2, 4])
@pytest.mark.parametrize("point", POINTS)
def test_each_outage_is_told_once_and_reminders_stand_within_it(tmp_path, point, call):
    with Receiver() as receiver:
        killed = run(tmp_path, receiver.url, "0,61,400,700", point, call)
        assert run(tmp_path, receiver.url, "1000") == 0
    assert killed in (-signal.SIGKILL, 0)
    told = {received.id: received.json for received in receiver.received}
    with sqlite3.connect(tmp_path / FILE_NAME) as connection:
        outages = dict(connection.execute("SELECT name, outage FROM checks"))
    for job in map(str, range(JOBS)):
        types = [alert["type"][6:] for alert in told.values() if alert["data"]["check"]["name"] == job]
        # Reminders are due at 400, at 700 and at 1,000.
        assert re.fullmatch(r"(overdue (reminder ){0,3}recovered ?){1,2}", " ".join(types))
        # One id for each outage and kind, however often it was sent.
        assert types.count("overdue") == outages[job]
    # At most what was under way at the kill was sent twice.
    assert len(receiver.received) <= len(told) + 2 * JOBS
