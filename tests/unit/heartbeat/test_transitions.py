"""The log lines of what turned overdue, recovered or was given up."""

import pytest

from cardbeat.heartbeat.transitions import GIVEN_UP, LINES, OVERDUE, RECOVERED, note, subject_of
from cardbeat.log import BatchHandler
from tests.heart import Heart
from tests.postgresql import BOTH_ENGINES
from tests.unit.test_log import Stderr

pytestmark = BOTH_ENGINES


@pytest.fixture(autouse=True)
def log(caplog):
    caplog.set_level("INFO")
    return caplog


def test_a_check_and_its_key_are_cut():
    assert subject_of("0123456789abcdef0123456789abcdef", "sk_3Vn0a") == "check 0123... of key sk_3Vn0a..."


def test_each_transition_has_its_line(log):
    for transition in (OVERDUE, RECOVERED, GIVEN_UP):
        note(transition, ["check 0123... of key sk_3Vn0a..."])
    assert log.messages == [
        "check 0123... of key sk_3Vn0a... is overdue",
        "check 0123... of key sk_3Vn0a... has recovered",
        "an alert of check 0123... of key sk_3Vn0a... was given up",
    ]


def test_of_thousands_at_once_only_the_number_is_told(log):
    for _ in range(4):
        note(OVERDUE, [f"check {number}" for number in range(250)])
    note(RECOVERED, ["check 1"])
    stderr = Stderr()
    handler = BatchHandler(stderr)
    stderr.let_go.set()
    for record in log.records:
        handler.handle(record)
    assert handler.finish(10)
    assert stderr.lines == [
        *(f"check {number} is overdue" for number in range(LINES)),
        "check 1 has recovered",
        "980 more checks are overdue",
    ]


def test_a_check_that_turns_overdue_and_back_has_a_line_for_each(database, clock, log):
    heart = Heart(database, clock)
    check = heart.create(webhook_url=None)
    heart.ping(check)
    heart.pass_time(61)
    heart.sweep.sweep_once()
    heart.sweep.sweep_once()
    heart.ping(check)
    heart.ping(check)
    subject = f"check {check.id[:4]}... of key {heart.key.prefix}..."
    assert log.messages == [f"{subject} is overdue", f"{subject} has recovered"]


def test_a_name_is_in_no_line(database, clock, log):
    heart = Heart(database, clock)
    check = heart.create()
    heart.checks.update(check, heart.settings(check, name="evil")).wait()
    heart.pass_time(61)
    heart.sweep.sweep_once()
    assert log.messages
    assert "evil" not in log.text
