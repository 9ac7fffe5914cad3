"""The log lines of what turned overdue, recovered or was given up."""

import pytest

from cardbeat.heartbeat.transitions import GIVEN_UP, LINES, OVERDUE, RECOVERED, TransitionLog, subject_of
from tests.heart import Heart
from tests.postgresql import BOTH_ENGINES
from tests.support import wait_until

pytestmark = BOTH_ENGINES


class Written:
    def __init__(self):
        self.lines = []

    def __call__(self, line, *values):
        self.lines.append(line % values)


@pytest.fixture
def written():
    return Written()


def test_a_check_and_its_key_are_cut():
    assert subject_of("0123456789abcdef0123456789abcdef", "sk_3Vn0a") == "check 0123... of key sk_3Vn0a..."


def test_each_kind_has_its_line(written):
    log = TransitionLog(written)
    for kind in (OVERDUE, RECOVERED, GIVEN_UP):
        log.note(kind, ["check 0123... of key sk_3Vn0a..."])
    log.stop()
    assert written.lines == [
        "check 0123... of key sk_3Vn0a... is overdue",
        "check 0123... of key sk_3Vn0a... has recovered",
        "an alert of check 0123... of key sk_3Vn0a... was given up",
    ]


def test_of_thousands_at_once_only_the_number_is_told(written):
    log = TransitionLog(written)
    for _ in range(4):
        log.note(OVERDUE, [f"check {number}" for number in range(250)])
    log.note(RECOVERED, ["check 1"])
    log.stop()
    assert written.lines == [
        *(f"check {number} is overdue" for number in range(LINES)),
        "980 more checks are overdue",
        "check 1 has recovered",
    ]


def test_lines_are_written_while_it_runs_and_each_batch_has_its_own(written, monkeypatch):
    monkeypatch.setattr("cardbeat.heartbeat.transitions.BATCH_SECONDS", 0)
    log = TransitionLog(written)
    log.start()
    for number in range(2 * LINES):
        log.note(OVERDUE, [f"check {number}"])
        wait_until(lambda number=number: f"check {number} is overdue" in written.lines)
    log.stop()
    assert len(written.lines) == 2 * LINES


def test_who_notes_does_not_wait_for_a_slow_reader_and_the_lines_are_bounded():
    log = TransitionLog(lambda *_: pytest.fail("written by the thread that notes"))
    for number in range(10_000):
        log.note(RECOVERED, [f"check {number}"])
    assert len(log._shown[RECOVERED]) == LINES


def test_a_check_that_turns_overdue_and_back_has_a_line_for_each(database, clock):
    heart = Heart(database, clock)
    check = heart.create(webhook_url=None)
    heart.ping(check)
    heart.pass_time(61)
    heart.sweep.sweep_once()
    heart.sweep.sweep_once()
    heart.ping(check)
    heart.ping(check)
    heart.alerts.transitions.stop()
    subject = f"check {check.id[:4]}... of key {heart.key.prefix}..."
    assert heart.log_lines == [f"{subject} is overdue", f"{subject} has recovered"]
    assert check.id not in "".join(heart.log_lines)


def test_a_name_is_in_no_line(database, clock):
    heart = Heart(database, clock)
    check = heart.create()
    heart.checks.update(check, heart.settings(check, name="evil")).wait()
    heart.pass_time(61)
    heart.sweep.sweep_once()
    heart.alerts.transitions.stop()
    assert "evil" not in "".join(heart.log_lines)
