"""The log lines of what turned overdue, recovered or was given up."""

import pytest

from cardbeat.heartbeat.check import LINES, NOW_OVERDUE, note
from tests.kit.heart import Heart
from tests.kit.lists import numbered
from tests.kit.postgresql import BOTH_ENGINES

pytestmark = BOTH_ENGINES


@pytest.fixture(autouse=True)
def log(caplog):
    caplog.set_level("INFO")
    return caplog


def test_of_thousands_at_once_only_the_number_is_told(log):
    note(NOW_OVERDUE, numbered("check {}", 1000))
    assert log.messages == [
        *numbered("check {} is overdue", LINES),
        "each of 980 more checks is overdue",
    ]


def test_a_check_that_turns_or_whose_alert_is_given_up_has_a_line_without_its_name_and_whole_id(
    database, clock, log
):
    heart = Heart(database, clock)
    check = heart.create()
    heart.checks.update(check, heart.settings(check, name="evil"))
    heart.pass_time(61)
    for _ in range(2):
        heart.sweep.sweep_once()
    heart.take_all("failed")
    for _ in range(2):
        heart.ping(check)
    subject = f"check {check.id[:4]}... of key {heart.key.id}"
    given_up = f"an alert of {subject} was given up"
    assert log.messages == [
        f"{subject} is overdue",
        given_up,
        f"{subject} has recovered",
    ]
