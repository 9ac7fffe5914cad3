"""One attempt at the first alert of a line."""

import pytest

from cardbeat.heartbeat.courier import Courier, Report
from cardbeat.heartbeat.lanes import Line
from cardbeat.heartbeat.outbox import Outbox
from tests.mail import FAILED, Mail


@pytest.fixture
def mail(database, clock):
    return Mail(database, clock)


def attempt(mail, line):
    return Courier(Outbox(mail.database), mail.post, mail.clock).attempt(line)


def test_an_alert_whose_url_led_elsewhere_meanwhile_changes_its_line_first(mail):
    mail.record(mail.heart.create(webhook_url="https://new.example/x"))
    line = Line(1, "old.example", [1])
    assert attempt(mail, line) == Report(line, wait_seconds=0, host="new.example")
    assert mail.posted == []


def test_the_stored_time_of_the_next_attempt_is_never_too_early(mail, clock):
    clock.advance(0.5)
    mail.outcomes = [FAILED]
    mail.record(mail.heart.create(webhook_url="https://a.example/x"))
    report = attempt(mail, Line(1, "a.example", [1]))
    assert 0 <= report.attempt.next_attempt_at - (clock() + report.wait_seconds) < 1
