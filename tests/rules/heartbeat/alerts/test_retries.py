"""When an alert is tried again."""

import email.utils

import pytest

from cardbeat.heartbeat.alerts.message import Outcome
from cardbeat.heartbeat.alerts.retries import (
    OLDEST_SECONDS,
    SCHEDULE_SECONDS,
    verdict,
)

NOW = 1_800_000_000
FAILURE = Outcome(500, "The receiver answered 500.")
DAY = 24 * 3600


def test_the_waits_are_those_of_the_readme_and_the_tenth_failure_is_the_last():
    waits = [
        verdict(FAILURE, attempts, NOW, NOW, 0).wait_seconds
        for attempts in range(1, 11)
    ]
    assert waits == [5, 30, 120, 600, 1800, 7200, 18_000, 36_000, 50_400, None]
    assert verdict(FAILURE, 10, NOW, NOW, 0).state == "failed"


def test_a_failure_at_the_age_of_4_days_is_the_last():
    """Each failure of a flapping check lets the alert be tried again at no cost to its schedule."""
    assert (
        verdict(FAILURE, 2, NOW, NOW - OLDEST_SECONDS + 1, 0).state
        == "pending"
    )
    assert verdict(FAILURE, 2, NOW, NOW - OLDEST_SECONDS, 0).state == "failed"


def test_jitter_only_adds():
    for attempts, seconds in enumerate(SCHEDULE_SECONDS, 1):
        assert verdict(
            FAILURE, attempts, NOW, NOW, 0.5
        ).wait_seconds == pytest.approx(1.1 * seconds)
        assert verdict(
            FAILURE, attempts, NOW, NOW, 1
        ).wait_seconds == pytest.approx(1.2 * seconds)


def test_2xx_is_the_end_and_so_is_410():
    assert verdict(Outcome(200), 1, NOW, NOW, 0).state == "delivered"
    assert (
        verdict(Outcome(410, "gone", "60"), 1, NOW, NOW, 0).state == "failed"
    )


@pytest.mark.parametrize(
    ("asked", "attempts", "seconds"),
    [
        *(
            ("120", 1, 120),
            (" 120 ", 1, 120),
            ("1", 1, 5),
            ("0", 1, 5),
            ("60", 5, 1800),
        ),
        *(
            (
                email.utils.formatdate(NOW + after, usegmt=True),
                1,
                90 if after > 0 else 5,
            )
            for after in (90, -90)
        ),
        *((str(DAY), 1, DAY), (str(DAY + 1), 1, DAY), ("9" * 1000, 1, DAY)),
        (email.utils.formatdate(NOW + 400 * DAY, usegmt=True), 1, DAY),
        *(
            (bad, 1, 5)
            for bad in (
                "",
                "soon",
                "-5",
                "1.5",
                "5 s",
                "٣",
                "Thu, 99 Foo 2026 99:99:99 GMT",
                "²",
                "\x00",
            )
        ),
    ],
)
def test_retry_after_only_puts_the_next_attempt_off_by_seconds_or_a_date_up_to_a_day(
    asked, attempts, seconds
):
    assert (
        verdict(
            Outcome(503, "busy", asked), attempts, NOW, NOW, 0
        ).wait_seconds
        == seconds
    )
