"""Alerts that wait because their key has caused enough posts, or their address has got enough."""

import json
from collections import Counter
from unittest.mock import Mock

import pytest

from cardbeat.heartbeat.delivery import allowance
from cardbeat.heartbeat.delivery.dispatcher import Dispatcher
from cardbeat.heartbeat.outbox.alert import OVERDUE, RECOVERED
from cardbeat.heartbeat.pings import Signal
from cardbeat.heartbeat.webhooks.permit import Postponed
from tests.heart import HOOK
from tests.mail import FAILED, Mail
from tests.postgresql import BOTH_ENGINES
from tests.support import wait_until

pytestmark = BOTH_ENGINES

EVERY_SECONDS = 1200
"""After its first three, a key has one more alert in this time."""
FADED_SECONDS = 5000
"""Two posts at an address count as one after this time."""


@pytest.fixture
def mail(database, clock, monkeypatch):
    monkeypatch.setattr(allowance, "KEY_POSTS", 3)
    mail = Mail(database, clock)
    yield mail
    mail.delivery.stop(10)


@pytest.fixture
def check(mail):
    return mail.heart.create()


def is_held(mail, check):
    """Whether the check's oldest waiting alert is stored as due in the future."""
    waiting = [alert for alert in mail.alerts.newest(check.id) if alert["state"] == "pending"]
    return bool(waiting) and waiting[-1]["next_attempt_at"] > mail.in_text(0)


def send_until_one_is_held(mail, check, tests):
    """Deliver the three of some test alerts that the key may have."""
    mail.record(check, *["check.test"] * tests)
    mail.delivery.start()
    mail.settled(3)
    wait_until(lambda: is_held(mail, check))


def send_all_but_the_recovery(mail, check, monkeypatch):
    """Deliver the one alert that the check may have in an hour; that of its recovery is held."""
    monkeypatch.setattr(allowance, "ALERTS_AN_HOUR", 1)
    mail.delivery.start()
    mail.record(check, OVERDUE, RECOVERED)
    mail.settled(1)
    wait_until(lambda: is_held(mail, check))


def test_beyond_its_limit_an_alert_of_a_key_waits_is_not_overdue_and_goes_out_later(mail, check):
    send_until_one_is_held(mail, check, 5)
    assert [alert["attempts"] for alert in mail.alerts.newest(check.id)] == [0, 0, 1, 1, 1]
    mail.pass_time(EVERY_SECONDS - 1)
    assert mail.delivery.oldest_due_seconds() == 0
    assert len(mail.posted) == 3
    mail.pass_time(1)
    mail.settled(4)
    wait_until(lambda: is_held(mail, check))
    mail.pass_time(EVERY_SECONDS)
    mail.settled(5)
    assert len(set(mail.ids)) == 5


def test_when_many_that_wait_are_due_is_stored_in_short_writes(mail, monkeypatch):
    put_off, stored = mail.alerts.put_off, []
    monkeypatch.setattr(mail.alerts, "put_off", lambda due_at: stored.append(len(due_at)) or put_off(due_at))
    dispatcher = Dispatcher(mail.alerts, Mock(), Counter(), mail.clock, mail.elapsed)
    dispatcher._held = dict.fromkeys(range(1, 721), 1)
    for _ in range(3):
        dispatcher._store_held()
    assert stored == [100] * 7 + [20]


def test_when_an_alert_of_a_locked_check_is_due_is_stored_later_and_after_those_of_others(mail, monkeypatch):
    stored = []
    monkeypatch.setattr(mail.alerts, "put_off", lambda due_at: stored.append(list(due_at)) or {2}.intersection(due_at))
    dispatcher = Dispatcher(mail.alerts, Mock(), Counter(), mail.clock, mail.elapsed)
    dispatcher._held = {1: 5, 2: 6, 3: 7}
    dispatcher._store_held()
    assert dispatcher._held == {2: 6}
    dispatcher._held[4] = 8
    dispatcher._store_held()
    assert stored == [[1, 2, 3], [2, 4]]
    assert dispatcher._held == {2: 6}


def test_an_alert_that_waits_for_its_turn_is_not_counted_again_at_another_url(mail, check, monkeypatch):
    send_all_but_the_recovery(mail, check, monkeypatch)
    for number in (1, 2):
        mail.pass_time(1200)
        found = mail.heart.read(check)
        mail.heart.checks.update(found, mail.heart.settings(found, webhook_url=f"{HOOK}/{number}")).wait()
        mail.delivery.wake()
        wait_until(lambda: is_held(mail, check))
    mail.pass_time(1200)
    mail.settled(2)
    assert [url for url, _, _ in mail.posted] == [HOOK, f"{HOOK}/2"]


def test_an_alert_that_waits_for_its_turn_goes_on_waiting_when_a_test_is_delivered(mail, check, monkeypatch):
    send_all_but_the_recovery(mail, check, monkeypatch)
    mail.pass_time(1200)
    mail.record(check, "check.test")
    mail.settled(2)
    assert is_held(mail, check)
    mail.pass_time(2399)
    assert len(mail.posted) == 2
    mail.pass_time(1)
    mail.settled(3)
    assert mail.states(check) == ["delivered"] * 3


def test_an_alert_that_waits_for_its_turn_is_not_counted_again_when_delivery_begins_again(mail, check, monkeypatch):
    send_until_one_is_held(mail, check, 4)
    for server in ("the standby", "another one"):
        before = mail.delivery._dispatcher
        monkeypatch.setattr(mail.database, "server", lambda server=server: server)
        mail.delivery.wake()
        wait_until(lambda before=before: mail.delivery._dispatcher is not before)
        read = mail.delivery._dispatcher
        wait_until(lambda read=read: read._schedule.knows(1, True))
    mail.pass_time(EVERY_SECONDS)
    mail.settled(4)


def check_of_another_key(mail):
    mail.heart.key = mail.heart.keys.issue("other@example.com").wait().key
    return mail.heart.create()


def change(mail, sql, *values):
    mail.database.write(lambda transaction: transaction.execute(sql, values))


def test_an_alert_that_another_server_gives_the_number_of_a_lost_one_does_not_wait_for_its_turn(
    mail, check, monkeypatch
):
    send_until_one_is_held(mail, check, 4)
    new = check_of_another_key(mail)
    change(mail, "UPDATE alerts SET id = 'msg_new', check_id = ? WHERE state = 'pending'", new.id)
    monkeypatch.setattr(mail.database, "server", lambda: "the standby")
    mail.delivery.wake()
    mail.settled(4)
    assert mail.states(new) == ["delivered"]


def test_a_check_that_gets_the_number_of_a_lost_one_does_not_wait_for_the_alerts_of_that(mail, check, monkeypatch):
    monkeypatch.setattr(allowance, "ALERTS_AN_HOUR", 1)
    mail.delivery.start()
    mail.record(check, OVERDUE)
    mail.settled(1)
    mail.heart.checks.delete(mail.heart.key.id, check.id).wait()
    new = check_of_another_key(mail)
    change(mail, "UPDATE checks SET seq = 1 WHERE id = ?", new.id)
    mail.record(new, OVERDUE)
    mail.settled(2)


def test_a_test_that_waits_for_its_turn_is_not_counted_again_when_another_is_asked_for(mail, check):
    send_until_one_is_held(mail, check, 4)
    mail.pass_time(EVERY_SECONDS / 2)
    mail.record(check)
    wait_until(lambda: is_held(mail, check))
    mail.pass_time(EVERY_SECONDS / 2)
    mail.settled(4)
    wait_until(lambda: is_held(mail, check))
    mail.pass_time(EVERY_SECONDS)
    mail.settled(5)


def test_alerts_of_other_keys_do_not_wait_for_it(mail, check):
    mail.record(check, *["check.test"] * 5)
    mail.delivery.start()
    mail.settled(3)
    mail.record(check_of_another_key(mail))
    mail.settled(4)


def test_a_retry_needs_no_other_turn(mail, check):
    mail.outcomes = [FAILED] * 3
    mail.record(check)
    mail.delivery.start()
    for attempts in (1, 2, 3, 4):
        mail.settled(attempts)
        mail.pass_time(1000)
    assert mail.states(check) == ["delivered"]


def test_a_key_with_more_checks_may_cause_two_alerts_for_each(mail):
    checks = [mail.heart.create() for _ in range(6)]
    for check in checks:
        mail.record(check, OVERDUE, "check.test")
    mail.delivery.start()
    mail.settled(12)


def test_a_key_with_more_checks_may_send_a_reminder_for_each(mail):
    """Not only where so many alerts went out before that its checks were counted."""
    checks = [mail.heart.create(86_400, repeat_seconds=300) for _ in range(6)]
    for check in checks[:2]:
        mail.heart.checks.signal(check.id, Signal.FAILURE).wait()
    mail.delivery.start()
    mail.settled(2)
    mail.pass_time(301)
    mail.heart.sweep.sweep_once()
    mail.delivery.wake()
    mail.settled(4)


def test_after_a_restart_what_waited_goes_out_at_once(mail, check):
    send_until_one_is_held(mail, check, 5)
    mail.delivery.stop(10)
    mail.delivery = mail.another()
    mail.delivery.start()
    mail.settled(2)
    assert mail.states(check) == ["delivered"] * 5


@pytest.fixture
def one_address(mail, monkeypatch):
    """All posts go to one address, which gets two at once and one more in `FADED_SECONDS`."""
    for name, posts in {"KEY_POSTS": 100, "ADDRESS_POSTS": 2, "OWN_POSTS": 2}.items():
        monkeypatch.setattr(allowance, name, posts)
    deliver = mail.post

    def post(url, headers, body, permit):
        if not permit.enter("192.0.2.1"):
            raise Postponed
        return deliver(url, headers, body, permit)

    monkeypatch.setattr(mail, "post", post)
    mail.delivery = mail.another()


@pytest.mark.usefixtures("one_address")
def test_beyond_the_limit_of_an_address_an_alert_waits_counts_no_attempt_and_goes_out_later(mail, check):
    mail.record(check, *["check.test"] * 3)
    mail.delivery.start()
    mail.settled(2)
    wait_until(lambda: is_held(mail, check))
    assert mail.delivery.oldest_due_seconds() == 0
    assert mail.alerts.newest(check.id)[0]["attempts"] == 0
    mail.pass_time(FADED_SECONDS)
    mail.settled(3)
    assert mail.states(check) == ["delivered"] * 3


@pytest.mark.usefixtures("one_address")
def test_the_retries_at_an_address_are_counted_too(mail, check):
    mail.outcomes = [FAILED] * 2
    mail.record(check)
    mail.delivery.start()
    mail.settled(1)
    mail.pass_time(10)
    mail.settled(2)
    mail.pass_time(40)
    wait_until(lambda: is_held(mail, check))
    assert len(mail.posted) == 2
    mail.pass_time(FADED_SECONDS)
    mail.settled(3)
    assert mail.states(check) == ["delivered"]


@pytest.mark.usefixtures("one_address")
def test_another_webhook_url_does_not_wait_for_the_address_of_the_old_one(mail, check, monkeypatch):
    mail.record(check, *["check.test"] * 3)
    mail.delivery.start()
    mail.settled(2)
    wait_until(lambda: is_held(mail, check))
    monkeypatch.setattr(allowance, "ADDRESS_POSTS", 100)
    found = mail.heart.read(check)
    mail.heart.checks.update(found, mail.heart.settings(found, webhook_url=f"{HOOK}/new")).wait()
    mail.delivery.wake()
    mail.settled(3)
    assert mail.posted[-1][0].endswith("/new")


@pytest.mark.usefixtures("one_address")
def test_a_key_does_not_wait_for_others_once_the_operator_gave_it_a_tier(mail, check, monkeypatch):
    monkeypatch.setattr(allowance, "MOST_POSTS", 4)
    mail.record(check, *["check.test"] * 2)
    mail.delivery.start()
    mail.settled(1)
    wait_until(lambda: is_held(mail, check))
    issued = mail.heart.keys.issue("other@example.com", "unlimited").wait()
    mail.heart.key = issued.key
    mail.record(mail.heart.create(), *["check.test"] * 2)
    mail.settled(3)


@pytest.mark.usefixtures("one_address")
def test_an_outage_goes_out_where_a_test_must_wait_and_that_of_a_key_in_use_where_one_of_a_new_key_must(
    mail, check, monkeypatch
):
    monkeypatch.setattr(allowance, "MOST_POSTS", 8)
    monkeypatch.setattr(allowance, "OWN_POSTS", 8)

    def goes_out(check, *types):
        """Whether an alert of these types is posted at once."""
        posted = len(mail.posted)
        mail.record(check, *types)
        wait_until(lambda: is_held(mail, check) or mail.states(check) == ["delivered"])
        return len(mail.posted) > posted

    mail.pass_time(allowance.GROWN_SECONDS)
    mail.delivery.start()
    assert [goes_out(check_of_another_key(mail)) for _ in range(5)] == [True] * 4 + [False]
    assert [goes_out(check_of_another_key(mail), OVERDUE) for _ in range(3)] == [True] * 2 + [False]
    assert goes_out(check, OVERDUE)


def test_beyond_12_in_an_hour_an_alert_of_a_check_waits_and_tells_what_follows(mail, check, monkeypatch):
    monkeypatch.setattr(allowance, "KEY_POSTS", 240)
    mail.delivery.start()

    def flap():
        """Let the check turn overdue and back."""
        mail.heart.pass_time(61)
        mail.heart.sweep.sweep_once()
        mail.heart.ping(check)
        mail.delivery.wake()

    for outages in range(1, 7):
        flap()
        mail.settled(2 * outages)
    flap()
    wait_until(lambda: is_held(mail, check))
    flap()
    other = mail.heart.create()
    mail.record(other)
    mail.settled(13)
    assert len(mail.posted) == 13
    for number, outages in ((14, None), (15, 1)):
        mail.pass_time(300)
        mail.settled(number)
        assert json.loads(mail.posted[-1][2])["data"].get("outages") == outages
    assert mail.states(check) == ["delivered"] * 14
