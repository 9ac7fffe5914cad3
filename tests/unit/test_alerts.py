"""The rows of alerts: which are stored, which are shown, which are given up and which dropped."""

import dataclasses
import sqlite3

import pytest

from cardbeat.errors import TooMany
from cardbeat.heartbeat.alerts import KEPT, WAITING, WAITING_FOR_TESTS, Attempt
from tests.mail import Mail


@pytest.fixture
def mail(database, clock):
    return Mail(database, clock)


def test_a_check_without_webhook_has_no_alerts(mail):
    check = mail.heart.create(webhook_url=None)
    mail.record(check, "check.overdue", "check.test")
    assert mail.alerts.newest(check.id) == []


def test_an_outage_has_one_alert_of_each_kind_and_tests_are_always_new(mail):
    check = mail.heart.create()
    mail.record(check, *["check.overdue"] * 2, *["check.recovered"] * 2, *["check.test"] * 2)
    assert mail.heart.alert_types(check) == ["check.overdue", "check.recovered", "check.test", "check.test"]


def test_an_alert_for_a_check_that_is_gone_is_none(mail):
    check = mail.heart.create()
    mail.heart.checks.delete(mail.heart.key.id, check.id)
    mail.record(check)
    assert mail.alerts.newest(check.id) == []


def test_alerts_of_many_checks_are_stored_at_once_but_for_those_that_can_have_none(mail):
    checks = [mail.heart.create(), mail.heart.create(webhook_url=None), mail.heart.create(), mail.heart.create()]
    mail.heart.checks.delete(mail.heart.key.id, checks[2].id)
    for _ in range(2):
        mail.database.write(lambda connection: mail.alerts.record(connection, "check.overdue", checks, 1))
    assert [len(mail.alerts.newest(check.id)) for check in checks] == [1, 0, 0, 1]


def test_an_alert_is_undone_with_its_transaction(mail):
    check = mail.heart.create()

    def fail(connection):
        mail.alerts.record(connection, "check.overdue", [check], 1)
        raise sqlite3.IntegrityError

    with pytest.raises(sqlite3.IntegrityError):
        mail.database.write(fail)
    assert mail.alerts.newest(check.id) == []


def test_the_history_shows_the_newest_first(mail, clock):
    check = mail.heart.create()
    mail.record(check, "check.overdue", "check.recovered")
    newest, oldest = mail.alerts.newest(check.id)
    assert (oldest["type"], newest["type"]) == ("check.overdue", "check.recovered")
    del oldest["id"]
    assert oldest == {
        "type": "check.overdue",
        "state": "pending",
        "attempts": 0,
        "last_status": None,
        "last_error": None,
        "created_at": "2027-01-15 08:00:00",
        "next_attempt_at": "2027-01-15 08:00:00",
    }


def test_an_alert_behind_another_shows_when_that_one_is_tried(mail, clock):
    check = mail.heart.create()
    mail.record(check, "check.overdue", "check.recovered", "check.test")
    now = int(clock())
    mail.alerts.store([Attempt(1, "failed", 410, "gone", None), Attempt(2, "pending", 503, "busy", now + 3600)])
    times = [alert["next_attempt_at"] for alert in mail.alerts.newest(check.id)]
    assert times == [mail.in_text(3600), mail.in_text(3600), None]


def test_the_last_answers_status_stays_when_a_later_attempt_gets_none(mail):
    check = mail.heart.create()
    mail.record(check)
    mail.alerts.store([Attempt(1, "pending", 503, "busy", 1), Attempt(1, "pending", None, "refused", 2)])
    (shown,) = mail.alerts.newest(check.id)
    assert (shown["attempts"], shown["last_status"], shown["last_error"]) == (2, 503, "refused")


def store_outages(mail, check, numbers):
    outages = [dataclasses.replace(check, outage=number) for number in numbers]
    now = int(mail.clock())
    mail.database.write(lambda connection: mail.alerts.record(connection, "check.overdue", outages, now))


def fail_first(mail):
    """An attempt that fails gives the oldest of too many up."""
    mail.alerts.store([Attempt(1, "pending", 500, "The receiver answered 500.", int(mail.clock()) + 5)])


def seqs(mail, state):
    with mail.database.read() as connection:
        rows = connection.execute("SELECT seq FROM alerts WHERE state = ? ORDER BY seq", (state,))
        return [row["seq"] for row in rows]


def test_finished_alerts_beyond_the_newest_100_are_dropped(mail):
    other, check = mail.heart.create(), mail.heart.create()
    mail.record(other)
    store_outages(mail, check, range(1, KEPT + 21))
    mail.alerts.store([Attempt(seq, "delivered", 204, None, None) for seq in seqs(mail, "pending")[1:-5]])
    assert seqs(mail, "delivered") == list(range(22, 117))
    assert len(mail.alerts.newest(check.id)) == KEPT
    assert len(mail.alerts.newest(other.id)) == 1


def test_what_still_waits_is_kept_however_much_after_it_is_finished(mail):
    check = mail.heart.create()
    store_outages(mail, check, range(1, KEPT + 21))
    mail.alerts.store([Attempt(KEPT + 20, "delivered", 204, None, None)])
    assert seqs(mail, "pending") == list(range(1, KEPT + 20))


def test_what_waits_for_a_dead_receiver_is_bounded(mail):
    check = mail.heart.create()
    store_outages(mail, check, range(WAITING + 50))
    fail_first(mail)
    assert seqs(mail, "failed") == list(range(2, 51))
    assert seqs(mail, "pending") == [1, *range(51, WAITING + 51)]


def test_what_was_given_up_is_not_sent_any_more(mail):
    store_outages(mail, mail.heart.create(), range(WAITING + 2))
    assert mail.alerts.message(2).attempts == 0
    fail_first(mail)
    assert mail.alerts.message(2) is None


def test_tests_push_out_no_real_alert_and_are_refused_while_many_wait(mail):
    check = mail.heart.create()
    store_outages(mail, check, [0])
    mail.record(check, *["check.test"] * (WAITING_FOR_TESTS - 1))
    with pytest.raises(TooMany):
        mail.record(check)
    store_outages(mail, check, range(1, WAITING + 1))
    fail_first(mail)
    assert seqs(mail, "failed") == []
    assert seqs(mail, "pending") == list(range(1, WAITING + WAITING_FOR_TESTS + 1))
    store_outages(mail, check, [WAITING + 1])
    fail_first(mail)
    assert seqs(mail, "failed") == [WAITING_FOR_TESTS + 1]
