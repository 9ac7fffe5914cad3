"""When an alert is tried again."""

import email.utils

import pytest

from cardbeat.heartbeat.alerts.message import Outcome
from cardbeat.heartbeat.alerts.retries import OLDEST_SECONDS, verdict

NOW = 1_800_000_000
FAILURE = Outcome(500, "The receiver answered 500.")
DAY = 24 * 3600
WAITS = [5, 30, 120, 600, 1800, 7200, 18_000, 36_000, 50_400]


def wait(outcome, attempts=1, luck=0):
    """The seconds until the next attempt; the state if there is none."""
    told = verdict(outcome, attempts, NOW, NOW, luck)
    if told.state != "pending":
        return told.state
    return told.next_attempt_at - NOW


def test_the_waits_are_those_of_the_readme_and_the_tenth_failure_is_the_last():
    waits = [wait(FAILURE, attempts) for attempts in range(1, 11)]
    assert waits == [*WAITS, "failed"]


def test_a_failure_at_the_age_of_4_days_is_the_last():
    """Each failure of a flapping check lets the alert be tried again at no cost to its schedule."""
    states = [
        verdict(FAILURE, 2, NOW, NOW - age, 0).state
        for age in (OLDEST_SECONDS - 1, OLDEST_SECONDS)
    ]
    assert states == ["pending", "failed"]


def test_jitter_adds_up_to_a_fifth():
    for attempts, seconds in enumerate(WAITS, 1):
        assert wait(FAILURE, attempts, 0.5) == round(1.1 * seconds + 0.4)
        assert wait(FAILURE, attempts, 1) == round(1.2 * seconds)


def test_2xx_is_the_end_and_so_is_410():
    assert wait(Outcome(200)) == "delivered"
    assert wait(Outcome(410, "gone", "60")) == "failed"


def date(seconds):
    return email.utils.formatdate(NOW + seconds, usegmt=True)


ASKED = {"120": 120, " 120 ": 120, "1": 5, date(90): 90, date(-90): 5}
ASKED |= dict.fromkeys((str(DAY), str(DAY + 1), "9" * 1000), DAY)
ASKED |= dict.fromkeys(
    ("", "soon", "-5", "1.5", "5 s", "\u0663", "\u00b2"), 5
)
ASKED |= {
    date(400 * DAY): DAY,
    "Thu, 99 Foo 2026 99:99:99 GMT": 5,
    "\x00": 5,
}


@pytest.mark.parametrize(("asked", "seconds"), ASKED.items(), ids=ascii)
def test_retry_after_only_puts_the_next_attempt_off_by_seconds_or_a_date_up_to_a_day(
    asked, seconds
):
    assert wait(Outcome(503, "busy", asked)) == seconds


def test_a_wait_of_the_schedule_is_not_shortened():
    assert wait(Outcome(503, "busy", "60"), 5) == 1800
