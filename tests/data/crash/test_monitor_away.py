"""The server is away for more than two sweeps, or its clock is set: no false alert, none is lost."""

import signal
import time
from datetime import datetime

import pytest

from tests.kit.client import ask, checks_key, metric, new_check
from tests.kit.receiver import Receiver
from tests.kit.support import wait_until

OPTIONS = (
    "--data",
    "data",
    "--sweep-seconds",
    "1",
    "--allow-private-webhooks",
)
OUTAGE_SECONDS = 6
PERIOD_SECONDS = 4
HOUR = 3600


def deadline(check):
    return datetime.fromisoformat(check["deadline_at"]).timestamp()


def killed(start, server, faults, check):
    server.kill()
    time.sleep(OUTAGE_SECONDS)
    return start(*OPTIONS)


def stopped(start, server, faults, check):
    assert server.stop() == 0
    time.sleep(OUTAGE_SECONDS)
    return start(*OPTIONS)


def suspended(start, server, faults, check):
    server.process.send_signal(signal.SIGSTOP)
    time.sleep(OUTAGE_SECONDS)
    server.process.send_signal(signal.SIGCONT)
    return server


def unwritable(start, server, faults, check):
    with faults.failing_syncs():
        for _ in range(OUTAGE_SECONDS):
            assert (
                ask(server, "GET", f"/ping/{check['id']}").status == 503
            )
            time.sleep(1)
    return server


def set_forward(start, server, faults, check):
    faults.set_clock(HOUR)
    return server


def set_back(start, server, faults, check):
    faults.set_clock(-HOUR)
    return server


def swept(server):
    """How long the last sweep took: no two take the same time."""
    return metric(server, "cardbeat_sweep_duration_seconds")


def moved(server, check, key):
    """By how many seconds its deadline is later now."""
    return deadline(
        ask(server, "GET", f"/checks/{check['id']}", key=key).json[
            "check"
        ]
    ) - deadline(check)


@pytest.fixture
def watched(start, faults):
    """A server, its receiver, a key, and a steady and a silent check, which one sweep at least has seen."""
    faults.set_clock(0)
    with Receiver() as receiver:
        server = start(*OPTIONS)
        key = checks_key(server)
        fields = [
            {"period_seconds": HOUR},
            {
                "period_seconds": PERIOD_SECONDS,
                "webhook_url": receiver.url,
            },
        ]
        checks = [new_check(server, key, **each) for each in fields]
        before = swept(server)
        wait_until(lambda: swept(server) != before)
        yield server, receiver, key, *checks


@pytest.mark.parametrize(
    ("away", "by"),
    [
        *(
            (killed, OUTAGE_SECONDS),
            (stopped, OUTAGE_SECONDS),
            (suspended, OUTAGE_SECONDS),
        ),
        *(
            (unwritable, OUTAGE_SECONDS),
            (set_forward, HOUR),
            (set_back, -HOUR),
        ),
    ],
)
def test_deadlines_move_by_the_outage_and_a_real_lateness_is_told_once(
    start, faults, watched, away, by
):
    server, receiver, key, steady, silent = watched
    began = time.monotonic()
    server = away(start, server, faults, silent)
    longer = max(0, time.monotonic() - began - OUTAGE_SECONDS)
    wait_until(lambda: moved(server, steady, key))
    # The time since the last sweep before counts, and until the next one.
    assert by - 2 <= moved(server, steady, key) <= by + longer + 5
    wait_until(lambda: receiver.received)
    time.sleep(2.5)  # a second alert would come with one of these sweeps
    # That it is late says that it is no recovery.
    (told,) = (received.json["data"] for received in receiver.received)
    assert deadline(told["check"]) >= deadline(silent) + by - 2
    assert told["late_seconds"] > 0
