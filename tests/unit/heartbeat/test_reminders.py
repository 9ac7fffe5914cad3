"""Reminders: when one is due, when it gives way, and that none is sent for a check that is back or snoozed."""

import json
import math
import threading

import pytest

from cardbeat.heartbeat.delivery.allowance import HOUR_SECONDS, KEY_POSTS, REMINDER_SHARE
from cardbeat.heartbeat.outbox.alert import Outcome
from cardbeat.heartbeat.outbox.pending import PendingAlerts
from cardbeat.heartbeat.pings import Signal
from tests.heart import HOOK
from tests.mail import FAILED, Mail
from tests.postgresql import BOTH_ENGINES, SQLITE
from tests.support import wait_until

pytestmark = BOTH_ENGINES

REPEAT = 300
BUSY = Outcome(503, "The receiver answered 503.", "86400")
OVERDUE, REMINDER, RECOVERED = "check.overdue", "check.reminder", "check.recovered"


@pytest.fixture
def mail(database, clock):
    mail = Mail(database, clock)
    yield mail
    mail.delivery.stop(10)


@pytest.fixture
def heart(mail):
    return mail.heart


@pytest.fixture
def check(heart):
    """Overdue since now, and told."""
    check = heart.create(repeat_seconds=REPEAT)
    heart.pass_time(61)
    heart.sweep.sweep_once()
    take_all(heart)
    return check


def take_all(heart):
    """The receivers take what waits."""
    with heart.database.read() as connection:
        rows = connection.execute("SELECT seq FROM alerts WHERE state = 'pending'").fetchall()
    heart.alerts.store(
        [heart.attempt(row["seq"], "delivered", 204, None, None, HOOK, 0) for row in rows], int(heart.clock())
    )


def sweep(heart, seconds):
    """Let time pass, and sweep; returns how many checks were marked."""
    heart.pass_time(seconds)
    return heart.sweep.sweep_once(heart.sweep.credit.give_due(threading.Event()))


def waiting(heart, check):
    return [alert["type"] for alert in reversed(heart.alerts.newest(check.id)) if alert["state"] == "pending"]


def test_a_reminder_follows_each_time_the_span_passes_and_not_before(heart, check):
    for number in range(1, 4):
        sweep(heart, REPEAT - (number > 1))
        assert heart.alert_types(check) == [OVERDUE, *[REMINDER] * (number - 1)]
        sweep(heart, 1)
        assert heart.alert_types(check) == [OVERDUE, *[REMINDER] * number]
        take_all(heart)
    assert heart.read(check).outage == 1


def test_without_a_span_there_is_none(heart):
    check = heart.create()
    for _ in range(3):
        sweep(heart, 40 * 86_400)
    assert heart.alert_types(check) == [OVERDUE]


def test_an_outage_that_began_with_a_failure_is_reminded_of_too(heart):
    check = heart.create(period_seconds=86_400, repeat_seconds=REPEAT)
    heart.checks.signal(check.id, Signal.FAILURE).wait()
    take_all(heart)
    sweep(heart, REPEAT + 1)
    assert heart.alert_types(check) == [OVERDUE, REMINDER]


def test_after_a_downtime_there_is_one_and_the_next_in_the_same_rhythm(heart, check):
    heart.clock.advance(10 * REPEAT + 50)
    heart.sweep = heart.new_sweep()
    sweep(heart, 0)
    assert heart.alert_types(check) == [OVERDUE, REMINDER]
    take_all(heart)
    sweep(heart, REPEAT - 50)
    assert heart.alert_types(check) == [OVERDUE, REMINDER]
    sweep(heart, 1)
    assert heart.alert_types(check) == [OVERDUE, REMINDER, REMINDER]


def test_one_that_waits_gives_way_to_the_next(heart, check):
    for _ in range(5):
        sweep(heart, REPEAT + 1)
    assert waiting(heart, check) == [REMINDER]
    assert heart.alert_types(check) == [OVERDUE, REMINDER]


def test_one_that_waits_gives_way_to_the_recovery(heart, check):
    sweep(heart, REPEAT + 1)
    heart.ping(check)
    assert heart.alert_types(check) == [OVERDUE, RECOVERED]


def test_none_is_stored_while_the_overdue_alert_waits(heart):
    check = heart.create(repeat_seconds=REPEAT)
    sweep(heart, 61)
    sweep(heart, 2 * REPEAT)
    assert heart.alert_types(check) == [OVERDUE]
    take_all(heart)
    sweep(heart, REPEAT + 1)
    assert heart.alert_types(check) == [OVERDUE, REMINDER]


def test_a_test_alert_that_waits_is_not_in_the_way(heart, check):
    heart.checks.test_alert(heart.key.id, check.id).wait()
    sweep(heart, REPEAT + 1)
    assert waiting(heart, check) == ["check.test", REMINDER]


def test_one_is_sent_after_an_overdue_alert_that_was_given_up(heart):
    check = heart.create(repeat_seconds=REPEAT)
    sweep(heart, 61)
    heart.alerts.store([heart.attempt(1, "failed", 410, "gone", None, HOOK, 0)], int(heart.clock()))
    sweep(heart, REPEAT + 1)
    assert waiting(heart, check) == [REMINDER]


def test_after_a_recovery_there_is_none(heart, check):
    heart.ping(check)
    changed = heart.settings(check, period_seconds=86_400)
    heart.checks.update(heart.read(check), changed).wait()
    for _ in range(3):
        sweep(heart, REPEAT + 1)
    assert heart.alert_types(check) == [OVERDUE, RECOVERED]


def test_a_snooze_drops_the_one_that_waits_and_the_next_follows_a_span_after_it(heart, check):
    sweep(heart, REPEAT + 1)
    heart.checks.snooze(heart.key.id, check.id, 5000).wait()
    assert waiting(heart, check) == []
    sweep(heart, 5000 + REPEAT)
    assert waiting(heart, check) == []
    sweep(heart, 1)
    assert waiting(heart, check) == [REMINDER]


def test_the_end_of_a_snooze_starts_the_span(heart, check):
    heart.checks.snooze(heart.key.id, check.id, 5000).wait()
    heart.checks.snooze(heart.key.id, check.id, 0).wait()
    sweep(heart, REPEAT)
    assert waiting(heart, check) == []
    sweep(heart, 1)
    assert waiting(heart, check) == [REMINDER]


@pytest.mark.parametrize("repeat", [400, None])
def test_another_span_drops_the_one_that_waits_and_counts_from_now(heart, check, repeat):
    sweep(heart, REPEAT + 1)
    read = heart.read(check)
    heart.checks.update(read, heart.settings(read, repeat_seconds=repeat)).wait()
    assert waiting(heart, check) == []
    sweep(heart, 400)
    assert waiting(heart, check) == []
    sweep(heart, 1)
    assert waiting(heart, check) == ([] if repeat is None else [REMINDER])


def test_another_name_changes_nothing_of_them(heart, check):
    sweep(heart, REPEAT + 1)
    read = heart.read(check)
    heart.checks.update(read, heart.settings(read, name="b")).wait()
    assert waiting(heart, check) == [REMINDER]
    take_all(heart)
    sweep(heart, REPEAT)
    assert waiting(heart, check) == [REMINDER]


def test_a_span_that_is_set_during_an_outage_counts_from_then(heart):
    check = heart.create()
    sweep(heart, 61)
    take_all(heart)
    heart.pass_time(5000)
    read = heart.read(check)
    heart.checks.update(read, heart.settings(read, repeat_seconds=REPEAT)).wait()
    sweep(heart, REPEAT)
    assert heart.alert_types(check) == [OVERDUE]
    sweep(heart, 1)
    assert heart.alert_types(check) == [OVERDUE, REMINDER]


def test_without_a_webhook_none_waits_for_one(heart, check):
    sweep(heart, REPEAT + 1)
    read = heart.read(check)
    heart.checks.update(read, heart.settings(read, webhook_url=None)).wait()
    sweep(heart, REPEAT)
    assert waiting(heart, check) == []
    heart.ping(check)
    assert heart.alert_types(check) == [OVERDUE]


def test_many_checks_are_marked_and_reminded_of_in_the_steps_of_one_sweep(heart):
    heart.sweep = heart.sweep_every(60, monotonic=heart.monotonic, batch=4)
    reminded = [heart.create(repeat_seconds=REPEAT) for _ in range(7)]
    sweep(heart, 61)
    take_all(heart)
    marked = [heart.create() for _ in range(6)]
    # Not in one go, which would be a downtime and postpone deadlines.
    assert sum(sweep(heart, 61) for _ in range(5)) == 6
    assert all(heart.alert_types(check) == [OVERDUE, REMINDER] for check in reminded)
    assert all(heart.alert_types(check) == [OVERDUE] for check in marked)
    assert sweep(heart, 0) == 0


@SQLITE
def test_a_sweep_without_reminders_asks_the_alerts_for_none(heart):
    heart.create()
    heart.pass_time(61)
    statements = []
    heart.database.write(lambda connection: connection.set_trace_callback(statements.append))
    heart.sweep.sweep_once()
    heart.database.write(lambda connection: connection.set_trace_callback(None))
    assert not any("DELETE FROM alerts" in text for text in statements)
    # Which checks have alerts that wait.
    assert sum("alerts_waiting" in text for text in statements) == 1


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


def posted(mail):
    return [body.split(b'"')[3].decode() for _, _, body in mail.posted]


def test_the_recovery_does_not_wait_for_the_next_try_of_a_reminder(mail):
    check = deliver_outage(mail)
    mail.outcomes = [BUSY]
    pass_and_sweep(mail, REPEAT + 1)
    mail.settled(2)
    mail.heart.ping(check)
    mail.delivery.wake()
    mail.settled(3)
    assert posted(mail) == [OVERDUE, REMINDER, RECOVERED]
    assert mail.states(check) == ["delivered", "delivered"]


def test_the_next_reminder_does_not_wait_for_the_next_try_of_the_one_before(mail):
    check = deliver_outage(mail)
    mail.outcomes = [BUSY, BUSY]
    for number in (2, 3):
        pass_and_sweep(mail, REPEAT + 1)
        mail.settled(number)
    pass_and_sweep(mail, REPEAT + 1)
    mail.settled(4)
    assert posted(mail) == [OVERDUE, *[REMINDER] * 3]
    assert mail.states(check) == ["delivered", "delivered"]
    assert len(set(mail.ids)) == 4


@pytest.mark.parametrize("outcome", [FAILED, BUSY, Outcome(204)])
def test_the_recovery_follows_a_reminder_that_was_on_its_way(mail, outcome):
    check = deliver_outage(mail)
    mail.outcomes = [outcome]
    mail.held.set()
    pass_and_sweep(mail, REPEAT + 1)
    wait_until(lambda: len(mail.posted) == 2)
    mail.heart.ping(check)
    mail.delivery.wake()
    # Once more if a round was reading as the clock went on; the post still runs.
    wait_until(lambda: mail.elapsed.advance(1) or mail.delivery._dispatcher._newest[1] > 0)
    mail.held.clear()
    mail.settled(3)
    assert posted(mail) == [OVERDUE, REMINDER, RECOVERED]
    assert waiting(mail.heart, check) == []


def test_a_reminder_that_waits_for_its_turn_is_not_sent_once_the_check_is_snoozed(mail):
    check = deliver_outage(mail)
    mail.outcomes = [FAILED]
    pass_and_sweep(mail, REPEAT + 1)
    mail.settled(2)
    mail.heart.checks.snooze(mail.heart.key.id, check.id, 86_400).wait()
    mail.pass_time(3600)
    other = mail.heart.create()
    mail.record(other)
    mail.settled(3)
    assert posted(mail) == [OVERDUE, REMINDER, "check.test"]


def test_an_outage_is_told_at_once_beside_more_reminders_than_a_key_may_send(mail):
    checks = [mail.heart.create(repeat_seconds=REPEAT) for _ in range(100)]
    mail.delivery.start()
    pass_and_sweep(mail, 61)
    mail.settled(len(checks))
    pending = PendingAlerts(mail.database)
    for _ in range(10):
        pass_and_sweep(mail, REPEAT + 1)
        wait_until(lambda: (pending.first_due_at() or math.inf) > mail.clock())
    assert posted(mail).count(REMINDER) > KEY_POSTS * REMINDER_SHARE - len(checks)
    another = mail.heart.create()
    mail.heart.checks.signal(another.id, Signal.FAILURE).wait()
    mail.delivery.wake()
    wait_until(lambda: mail.states(another) == ["delivered"])


def test_each_try_of_a_reminder_counts_since_they_go_on_for_ever_also_to_a_receiver_that_is_gone(mail):
    checks = [mail.heart.create(repeat_seconds=REPEAT) for _ in range(30)]
    mail.delivery.start()
    pass_and_sweep(mail, 61)
    mail.settled(len(checks))
    mail.outcomes = [FAILED] * 10_000
    pending = PendingAlerts(mail.database)
    for _ in range(int(HOUR_SECONDS) // REPEAT):
        for seconds in (REPEAT - 46, 7, 40):
            pass_and_sweep(mail, seconds)
            wait_until(lambda: (pending.first_due_at() or math.inf) > mail.clock())
    assert KEY_POSTS <= len(mail.posted) - len(checks) <= KEY_POSTS * (1 + REMINDER_SHARE)


def test_a_reminder_after_a_snooze_names_the_deadline_that_was_missed(mail):
    check = deliver_outage(mail)
    mail.heart.checks.snooze(mail.heart.key.id, check.id, 86_400).wait()
    pass_and_sweep(mail, 86_400 + REPEAT + 1)
    mail.settled(2)
    told = json.loads(mail.posted[-1][2])
    assert (told["type"], told["data"]["check"]["snoozed_until"]) == (REMINDER, None)
    assert (
        '"check 1" is still overdue, for 1 day 5 minutes: late since 2027-01-15 08:01 UTC; no ping yet.' in told["text"]
    )


def test_a_reminder_survives_a_restart(mail):
    check = deliver_outage(mail)
    mail.delivery.stop(10)
    pass_and_sweep(mail, REPEAT + 1)
    mail.delivery = mail.another()
    mail.delivery.start()
    mail.settled(1)
    assert posted(mail) == [OVERDUE, REMINDER]
    assert mail.states(check) == ["delivered", "delivered"]
