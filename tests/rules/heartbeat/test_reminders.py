"""Reminders: when one is due, when it gives way, and that none is sent for a check that is back or snoozed."""

import json

import pytest

from cardbeat.heartbeat.alerts.message import Outcome
from tests.kit.lists import times
from tests.kit.mail import FAILED, Mail
from tests.kit.postgresql import BOTH_ENGINES
from tests.kit.support import wait_until

pytestmark = BOTH_ENGINES

REPEAT = 300
BUSY = Outcome(503, "The receiver answered 503.", "86400")
OVERDUE, REMINDER, RECOVERED = (
    "check.overdue",
    "check.reminder",
    "check.recovered",
)


@pytest.fixture
def mail(database, clock):
    mail = Mail(database, clock)
    yield mail
    mail.delivery.stop(60)


@pytest.fixture
def heart(mail):
    return mail.heart


@pytest.fixture
def check(heart):
    """Overdue since now, and told."""
    check = heart.create(repeat_seconds=REPEAT)
    heart.pass_time(61)
    heart.sweep.sweep_once()
    heart.take_all()
    return check


def sweep(heart, seconds):
    """Let time pass, and sweep; returns how many checks were marked."""
    heart.pass_time(seconds)
    return heart.sweep.sweep_once()


def waiting(heart, check):
    return [
        alert["type"]
        for alert in reversed(heart.alerts.newest(check.id))
        if alert["state"] == "pending"
    ]


def test_a_reminder_follows_each_time_the_span_passes_and_not_before(
    heart, check
):
    for number in range(1, 4):
        sweep(heart, REPEAT - (number > 1))
        assert heart.alert_types(check) == [
            OVERDUE,
            *[REMINDER] * (number - 1),
        ]
        sweep(heart, 1)
        assert heart.alert_types(check) == [OVERDUE, *[REMINDER] * number]
        heart.take_all()
    assert heart.read(check).outage == 1


def test_one_alert_at_most_tells_of_an_outage_that_waits_to_be_told(
    heart,
):
    check = heart.create(repeat_seconds=REPEAT)
    for seconds in (61, 2 * REPEAT):
        sweep(heart, seconds)
        assert heart.alert_types(check) == [OVERDUE]
    heart.take_all()
    for _ in range(5):
        sweep(heart, REPEAT + 1)
    assert heart.alert_types(check) == [OVERDUE, REMINDER]
    heart.ping(check)
    assert heart.alert_types(check) == [OVERDUE, RECOVERED]


def test_neither_a_test_nor_an_alert_that_was_given_up_is_in_the_way(
    heart,
):
    check = heart.create(repeat_seconds=REPEAT)
    sweep(heart, 61)
    heart.take_all("failed")
    heart.checks.test_alert(heart.key.id, check.id)
    sweep(heart, REPEAT + 1)
    assert waiting(heart, check) == ["check.test", REMINDER]


def test_without_a_webhook_none_waits_for_one(heart, check):
    sweep(heart, REPEAT + 1)
    read = heart.read(check)
    heart.checks.update(read, heart.settings(read, webhook_url=None))
    sweep(heart, REPEAT)
    assert waiting(heart, check) == []


def test_many_checks_are_marked_and_reminded_of_in_the_steps_of_one_sweep(
    heart,
):
    heart.sweep = heart.sweep_every(60, marked_at_once=4)
    reminded = times(7, heart.create, repeat_seconds=REPEAT)
    sweep(heart, 61)
    heart.take_all()
    marked = times(6, heart.create)
    # Not in one go, which would be a downtime and postpone deadlines.
    assert sum(times(5, sweep, heart, 61)) == 6
    assert all(
        heart.alert_types(check) == [OVERDUE, REMINDER]
        for check in reminded
    )
    assert all(heart.alert_types(check) == [OVERDUE] for check in marked)
    assert sweep(heart, 0) == 0


# What the receiver gets.


def deliver_outage(mail):
    """A check whose overdue alert was taken."""
    check = mail.heart.create(repeat_seconds=REPEAT)
    mail.delivery.start()
    pass_and_sweep(mail, 61)
    mail.settled(1)
    return check


def pass_and_sweep(mail, seconds):
    # The wall clock first: a post that is due by the other one must not be tried again from an earlier time.
    sweep(mail.heart, seconds)
    mail.elapsed.advance(seconds)
    mail.delivery.wake()


def test_the_next_reminder_does_not_wait_for_the_next_try_of_the_one_before(
    mail,
):
    check = deliver_outage(mail)
    mail.outcomes = [BUSY, BUSY]
    for number in (2, 3):
        pass_and_sweep(mail, REPEAT + 1)
        mail.settled(number)
    pass_and_sweep(mail, REPEAT + 1)
    mail.settled(4)
    assert mail.types == [OVERDUE, *[REMINDER] * 3]
    assert mail.states(check) == ["delivered", "delivered"]
    assert len(set(mail.ids)) == 4


@pytest.mark.parametrize("outcome", [FAILED, BUSY, Outcome(204)])
def test_the_recovery_follows_a_reminder_that_was_on_its_way(
    mail, outcome
):
    check = deliver_outage(mail)
    mail.outcomes = [outcome]
    mail.held.set()
    pass_and_sweep(mail, REPEAT + 1)
    wait_until(lambda: len(mail.posted) == 2)
    mail.heart.ping(check)
    mail.delivery.wake()
    mail.pass_time(1)
    assert len(mail.posted) == 2
    mail.held.clear()
    wait_until(lambda: mail.states(check) == ["delivered"] * 2)
    assert mail.types == [OVERDUE, REMINDER, RECOVERED]


def test_a_reminder_that_waits_for_its_turn_is_not_sent_once_the_check_is_snoozed(
    mail,
):
    check = deliver_outage(mail)
    mail.outcomes = [FAILED]
    pass_and_sweep(mail, REPEAT + 1)
    mail.settled(2)
    mail.heart.checks.snooze(mail.heart.key.id, check.id, 86_400)
    mail.pass_time(3600)
    other = mail.heart.create()
    mail.test(other)
    mail.settled(3)
    assert mail.types == [OVERDUE, REMINDER, "check.test"]


def test_a_reminder_after_a_snooze_names_the_deadline_that_was_missed(
    mail,
):
    check = deliver_outage(mail)
    mail.heart.checks.snooze(mail.heart.key.id, check.id, 86_400)
    pass_and_sweep(mail, 86_400 + REPEAT + 1)
    mail.settled(2)
    told = json.loads(mail.posted[-1][2])
    assert told["type"] == REMINDER
    assert told["data"]["check"]["snoozed_until"] is None
    assert (
        '"check 1" is still overdue, for 1 day 5 minutes: late since 2027-01-15 08:01 UTC; no ping yet.'
        in told["text"]
    )
