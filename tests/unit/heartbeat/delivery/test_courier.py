"""One attempt at the first alert of a queue."""

import pytest

from cardbeat.errors import Unavailable
from cardbeat.heartbeat.delivery.courier import Courier, Result
from cardbeat.heartbeat.delivery.lanes import CheckQueue
from cardbeat.heartbeat.webhooks.permit import Postponed
from tests.mail import FAILED, Mail
from tests.receiver import Unlimited


@pytest.fixture
def mail(database, clock):
    return Mail(database, clock)


def attempt(mail, queue):
    return Courier(mail.alerts, mail.post, mail.clock).attempt(queue, Unlimited())


def test_an_alert_whose_url_leads_to_another_host_by_now_is_not_posted_before_it_counts_there(mail):
    mail.record(mail.heart.create(webhook_url="https://new.example/x"))
    queue = CheckQueue(1, "key", "old.example", 1)
    assert attempt(mail, queue) == Result(queue)
    assert mail.posted == []


def test_the_stored_time_of_the_next_attempt_is_never_too_early(mail, clock):
    clock.advance(0.5)
    mail.outcomes = [FAILED]
    mail.record(mail.heart.create(webhook_url="https://a.example/x"))
    result = attempt(mail, CheckQueue(1, "key", "a.example", 1))
    assert 0 <= result.attempt.next_attempt_at - (clock() + result.wait_seconds) < 1


@pytest.mark.parametrize("error", [Postponed(), Unavailable("busy")])
def test_a_post_that_is_postponed_is_no_attempt(mail, error):
    mail.outcomes = [error]
    mail.record(mail.heart.create(webhook_url="https://a.example/x"))
    with pytest.raises(type(error)):
        attempt(mail, CheckQueue(1, "key", "a.example", 1))
