"""When an alert is tried again."""

import email.utils

import pytest

from cardbeat.heartbeat.delivery.retries import SCHEDULE_SECONDS, verdict
from cardbeat.heartbeat.outbox.alert import Outcome

NOW = 1_800_000_000
FAILURE = Outcome(500, "The receiver answered 500.")
DAY = 24 * 3600


def wait(retry_after, attempts=1):
    return verdict(Outcome(503, "busy", retry_after), attempts, NOW, 0).wait_seconds


def test_the_waits_are_those_of_the_readme():
    minute, hour = 60, 3600
    waits = [verdict(FAILURE, attempts, NOW, 0).wait_seconds for attempts in range(1, 10)]
    assert waits == [5, 30, 2 * minute, 10 * minute, 30 * minute, 2 * hour, 5 * hour, 10 * hour, 14 * hour]


def test_the_tenth_failure_is_the_last():
    assert verdict(FAILURE, len(SCHEDULE_SECONDS), NOW, 0).state == "pending"
    assert verdict(FAILURE, len(SCHEDULE_SECONDS) + 1, NOW, 0).state == "failed"


def test_jitter_only_adds():
    for attempts, seconds in enumerate(SCHEDULE_SECONDS, 1):
        assert verdict(FAILURE, attempts, NOW, 0.5).wait_seconds == pytest.approx(1.1 * seconds)
        assert verdict(FAILURE, attempts, NOW, 1).wait_seconds == pytest.approx(1.2 * seconds)


def test_2xx_is_the_end_and_so_is_410():
    assert verdict(Outcome(200), 1, NOW, 0).state == "delivered"
    assert verdict(Outcome(410, "gone", "60"), 1, NOW, 0).state == "failed"


def test_retry_after_puts_the_next_attempt_off_but_never_brings_it_near():
    assert wait("120") == 120
    assert wait(" 120 ") == 120
    assert wait("1") == 5
    assert wait("0") == 5
    assert wait("60", attempts=5) == 30 * 60


def test_retry_after_may_be_a_date():
    assert wait(email.utils.formatdate(NOW + 90, usegmt=True)) == 90
    assert wait(email.utils.formatdate(NOW - 90, usegmt=True)) == 5


def test_retry_after_is_honoured_up_to_a_day():
    assert wait(str(DAY)) == DAY
    assert wait(str(DAY + 1)) == DAY
    assert wait("9" * 1000) == DAY
    assert wait(email.utils.formatdate(NOW + 400 * DAY, usegmt=True)) == DAY


@pytest.mark.parametrize(
    "nonsense", ["", "soon", "-5", "1.5", "5 s", "٣", "Thu, 99 Foo 2026 99:99:99 GMT", "²", "\x00"]
)
def test_a_retry_after_of_nonsense_means_nothing(nonsense):
    assert wait(nonsense) == 5
