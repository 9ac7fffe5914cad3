"""The rows of alerts: which are stored, which are shown, which are given up and which dropped."""

import dataclasses
import json

import pytest

from cardbeat.heartbeat.outbox import attempts
from cardbeat.heartbeat.outbox.alerts import WAITING_OUTAGES
from cardbeat.heartbeat.outbox.attempts import KEPT
from tests.heart import HOOK
from tests.mail import Mail
from tests.postgresql import BOTH_ENGINES, SQLITE
from tests.support import wait_until

pytestmark = BOTH_ENGINES


@pytest.fixture
def mail(database, clock):
    return Mail(database, clock)


def test_a_check_without_webhook_has_no_alerts(mail):
    check = mail.heart.create(webhook_url=None)
    mail.record(check, "check.overdue", "check.test")
    assert mail.alerts.newest(check.id) == []


def test_the_end_of_an_outage_is_told_with_its_begin_though_the_check_has_no_url_then(mail):
    told, untold = mail.heart.create(), mail.heart.create(webhook_url=None)
    mail.heart.pass_time(61)
    mail.heart.sweep.sweep_once()
    read = mail.heart.read(told)
    mail.heart.checks.update(read, mail.heart.settings(read, webhook_url=None)).wait()
    for check in (told, untold):
        assert mail.heart.ping(check).recovered
    assert mail.heart.alert_types(told) == ["check.overdue", "check.recovered"]
    assert mail.heart.alert_types(untold) == []


def test_an_outage_has_one_alert_of_each_kind_and_tests_are_always_new(mail):
    check = mail.heart.create()
    mail.record(check, *["check.overdue"] * 2, *["check.recovered"] * 2, *["check.test"] * 2)
    assert mail.heart.alert_types(check) == ["check.overdue", "check.recovered", "check.test", "check.test"]


def test_an_alert_for_a_check_that_is_gone_is_none(mail):
    check = mail.heart.create()
    mail.heart.checks.delete(mail.heart.key.id, check.id).wait()
    mail.record(check)
    assert mail.alerts.newest(check.id) == []


def test_alerts_of_many_checks_are_stored_at_once_but_for_those_that_can_have_none(mail):
    checks = [mail.heart.create(), mail.heart.create(webhook_url=None), mail.heart.create(), mail.heart.create()]
    mail.heart.checks.delete(mail.heart.key.id, checks[2].id).wait()
    for _ in range(2):
        mail.database.write(lambda connection: mail.alerts.record(connection, "check.overdue", checks, 1))
    assert [len(mail.alerts.newest(check.id)) for check in checks] == [1, 0, 0, 1]


def test_an_alert_is_undone_with_its_transaction(mail):
    check = mail.heart.create()

    def fail(connection):
        mail.alerts.record(connection, "check.overdue", [check], 1)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
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
    mail.record(check, "check.overdue", "check.recovered")
    store_outages(mail, check, [2])
    mail.record(check, "check.test")
    now = int(clock())
    mail.alerts.store(
        [
            mail.heart.attempt(1, "failed", 410, "gone", None, HOOK, 0),
            mail.heart.attempt(2, "pending", 503, "busy", now + 3600, HOOK, 0),
        ]
    )
    store_outages(mail, check, [3])
    outage_3, test, outage_2, recovered, overdue = (alert["next_attempt_at"] for alert in mail.alerts.newest(check.id))
    assert outage_3 == outage_2 == recovered == mail.in_text(3600)
    assert (test, overdue) == (mail.in_text(0), None)


def test_the_last_answers_status_stays_when_a_later_attempt_gets_none(mail):
    check = mail.heart.create()
    mail.record(check)
    mail.alerts.store([mail.heart.attempt(1, "pending", 503, "busy", 1, HOOK, 0)])
    mail.alerts.store([mail.heart.attempt(1, "pending", None, "refused", 2, HOOK, 1)])
    (shown,) = mail.alerts.newest(check.id)
    assert (shown["attempts"], shown["last_status"], shown["last_error"]) == (2, 503, "refused")


def test_alerts_and_moves_are_numbered_behind_the_lock_that_orders_them_by_their_commits(mail, monkeypatch):
    counts = []

    def hold(transaction, name):
        tables = [transaction.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in ("alerts", "moves")]
        counts.append((name, *tables))

    monkeypatch.setattr(mail.database, "hold", hold)
    check = mail.heart.create()
    mail.record(check)
    moved = mail.heart.settings(check, webhook_url="https://new.example/x")
    mail.heart.checks.update(check, moved).wait()
    assert counts == [("alerts", 0, 0), ("alerts", 1, 0)]


def store_outages(mail, check, numbers):
    outages = [dataclasses.replace(check, outage=number) for number in numbers]
    now = int(mail.clock())
    mail.database.write(lambda connection: mail.alerts.record(connection, "check.overdue", outages, now))


def seqs(mail, state):
    with mail.database.read() as connection:
        rows = connection.execute("SELECT seq FROM alerts WHERE state = ? ORDER BY seq", (state,))
        return [row["seq"] for row in rows]


def test_finished_alerts_beyond_the_newest_100_are_dropped(mail):
    other, check = mail.heart.create(), mail.heart.create()
    mail.record(other)
    store_outages(mail, check, range(1, KEPT + 21))
    mail.alerts.store(
        [mail.heart.attempt(seq, "delivered", 204, None, None, HOOK, 0) for seq in seqs(mail, "pending")[1:-5]]
    )
    assert seqs(mail, "delivered") == list(range(22, 117))
    assert len(mail.alerts.newest(check.id)) == KEPT
    assert len(mail.alerts.newest(other.id)) == 1


def test_what_still_waits_is_kept_however_much_after_it_is_finished(mail):
    check = mail.heart.create()
    store_outages(mail, check, range(1, KEPT + 21))
    mail.alerts.store([mail.heart.attempt(KEPT + 20, "delivered", 204, None, None, HOOK, 0)])
    assert seqs(mail, "pending") == list(range(1, KEPT + 20))


def flap(mail, check, outages):
    """Let a check turn overdue and back so often, without any attempt to deliver."""
    for _ in range(outages):
        mail.heart.pass_time(61)
        mail.heart.sweep.sweep_once()
        mail.heart.ping(check)


def waiting(mail, check):
    """The outage and type of each alert that waits, oldest first."""
    with mail.database.read() as connection:
        sql = "SELECT outage, type FROM alerts WHERE check_id = ? AND state = 'pending' ORDER BY seq"
        return [tuple(row) for row in connection.execute(sql, (check.id,))]


def whole(*outages):
    return [(outage, kind) for outage in outages for kind in ("check.overdue", "check.recovered")]


def test_while_a_receiver_is_dead_the_newest_outages_wait_and_the_one_that_is_tried(mail):
    check = mail.heart.create()
    flap(mail, check, WAITING_OUTAGES + 5)
    assert waiting(mail, check) == whole(1, *range(6, WAITING_OUTAGES + 6))
    given_up = [alert for alert in mail.alerts.newest(check.id) if alert["state"] == "failed"]
    assert len(given_up) == 2 * 4
    sentence = "It was given up: alerts of 10 newer outages were waiting for the receiver."
    assert {(alert["last_error"], alert["next_attempt_at"], alert["attempts"]) for alert in given_up} == {
        (sentence, None, 0)
    }


def test_an_outage_that_lasts_is_kept_whole_too(mail):
    check = mail.heart.create()
    flap(mail, check, WAITING_OUTAGES + 5)
    mail.heart.pass_time(61)
    mail.heart.sweep.sweep_once()
    newest = WAITING_OUTAGES + 6
    assert waiting(mail, check) == [*whole(1, *range(7, newest)), (newest, "check.overdue")]


def test_without_a_webhook_for_a_while_what_waits_is_bounded_all_the_same(mail):
    check = mail.heart.create()
    for url in (HOOK, None) * 3:
        read = mail.heart.read(check)
        mail.heart.checks.update(read, mail.heart.settings(read, webhook_url=url)).wait()
        flap(mail, check, WAITING_OUTAGES)
    assert len(waiting(mail, check)) <= 2 * (WAITING_OUTAGES + 1)


def test_a_receiver_that_comes_back_hears_the_newest_outages_and_the_present_state_last(mail):
    check = mail.heart.create()
    mail.held.set()
    mail.delivery.start()
    flap(mail, check, 1)
    mail.delivery.wake()
    wait_until(lambda: mail.posted)
    flap(mail, check, WAITING_OUTAGES + 4)
    mail.held.clear()
    mail.delivery.wake()
    mail.settled(2 * (WAITING_OUTAGES + 1))
    mail.delivery.stop(10)
    told = [json.loads(body) for _, _, body in mail.posted]
    assert [alert["type"] for alert in told] == ["check.overdue", "check.recovered"] * (WAITING_OUTAGES + 1)
    assert told[-1]["data"]["check"]["status"] == "on_time"
    assert told[-1]["data"]["check"]["ping_count"] == WAITING_OUTAGES + 5
    assert waiting(mail, check) == []


def test_another_checks_alerts_are_not_given_up(mail):
    other, check = mail.heart.create(), mail.heart.create()
    flap(mail, other, 3)
    flap(mail, check, WAITING_OUTAGES + 5)
    assert waiting(mail, other)[: 2 * 3] == whole(1, 2, 3)


def test_what_was_given_up_is_not_sent_any_more_and_holds_no_body(mail):
    flap(mail, mail.heart.create(), WAITING_OUTAGES + 2)
    assert [mail.alerts.message(seq, 0) is None for seq in (2, 3, 4, 5)] == [False, True, True, False]


@SQLITE
def test_the_history_stays_at_its_length_while_nothing_is_ever_sent(mail):
    check = mail.heart.create()
    flap(mail, check, 2 * KEPT)
    assert len(waiting(mail, check)) == 2 * (WAITING_OUTAGES + 1)
    with mail.database.read() as connection:
        assert connection.execute("SELECT count(*) FROM alerts").fetchone()[0] <= KEPT + 3


@SQLITE
def test_giving_up_reads_only_what_waits(mail):
    statements = []
    check = mail.heart.create()
    flap(mail, check, WAITING_OUTAGES)
    mail.database.write(lambda connection: connection.set_trace_callback(statements.append))
    flap(mail, check, 1)
    mail.database.write(lambda connection: connection.set_trace_callback(None))
    (statement,) = [text for text in statements if text.startswith("UPDATE alerts SET state = 'failed'")]
    with mail.database.read() as connection:
        # Newer versions of SQLite call it covering.
        plan = [row["detail"].replace("COVERING ", "") for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}")]
    assert "SEARCH old USING INDEX alerts_waiting (check_id=? AND outage>? AND outage<?)" in plan
    assert not any("SCAN" in step for step in plan)


def test_an_alert_given_up_is_logged_with_its_check_and_key_cut(mail, caplog):
    caplog.set_level("INFO")
    check = mail.heart.create()
    mail.record(check)
    mail.alerts.store([mail.heart.attempt(1, "failed", 410, "gone", None, HOOK, 0)])
    assert caplog.messages == [f"an alert of check {check.id[:4]}... of key {mail.heart.key.prefix}... was given up"]


@pytest.mark.parametrize(("state", "shown"), [("delivered", "ok"), ("pending", "failing"), ("failed", "failing")])
def test_a_check_tells_what_came_of_the_last_attempt(mail, state, shown):
    check = mail.heart.create()
    mail.record(check)
    assert mail.heart.read(check).delivery is None
    mail.alerts.store([mail.heart.attempt(1, state, 204, None, None, HOOK, 0)])
    read = mail.heart.read(check)
    assert (read.delivery, read.version, read.updated_at) == (shown, check.version, check.updated_at)


def test_the_state_of_delivery_follows_each_attempt(mail):
    check = mail.heart.create()
    mail.record(check, "check.test", "check.test")
    seen = []
    for seq, state, before in ((1, "pending", 0), (1, "delivered", 1), (2, "pending", 0)):
        mail.alerts.store([mail.heart.attempt(seq, state, 500, None, None, HOOK, before)])
        seen.append(mail.heart.read(check).delivery)
    assert seen == ["failing", "ok", "failing"]


@pytest.mark.parametrize("url", [HOOK, "https://before.example/x"])
@pytest.mark.parametrize("late", ["delivered", "pending", "failed"])
@pytest.mark.parametrize("first", ["delivered", "pending", "failed"])
def test_a_result_that_comes_after_another_processs_overwrites_nothing(mail, first, late, url):
    check = mail.heart.create()
    mail.record(check)
    mail.alerts.store([mail.heart.attempt(1, first, 503, "busy", None, HOOK, 0)])
    stored = mail.heart.read(check), mail.alerts.newest(check.id)
    mail.alerts.store([mail.heart.attempt(1, late, 410, "gone", 9, url, 0)])
    assert (mail.heart.read(check), mail.alerts.newest(check.id)) == stored


@pytest.mark.parametrize(("url", "shown"), [("https://other.example/", "failing"), (None, None)])
def test_another_webhook_url_changes_nothing_about_the_last_attempt(mail, url, shown):
    check = mail.heart.create()
    mail.record(check)
    mail.alerts.store([mail.heart.attempt(1, "pending", 500, "busy", None, HOOK, 0)])
    changed = mail.heart.checks.update(check, mail.heart.settings(check, webhook_url=url)).wait()
    assert changed.as_json("")["delivery"] == shown
    # A post to the URL before may have been on its way, and says nothing of this one.
    mail.alerts.store([mail.heart.attempt(1, "delivered", 204, None, None, HOOK, 1)])
    assert mail.heart.read(check).as_json("")["delivery"] == shown


def test_a_change_of_another_field_keeps_the_state_of_delivery(mail):
    check = mail.heart.create()
    mail.record(check)
    mail.alerts.store([mail.heart.attempt(1, "pending", 500, "busy", None, HOOK, 0)])
    assert mail.heart.checks.update(check, mail.heart.settings(check, name="b")).wait().delivery == "failing"


@pytest.mark.parametrize("url", [HOOK, "https://before.example/x"])
@pytest.mark.parametrize("state", ["delivered", "pending"])
def test_a_result_is_not_stored_for_another_alert_that_has_its_number_now(mail, state, url):
    """As after a failover to a standby that lagged behind: it gives the same numbers once more."""
    check = mail.heart.create()
    mail.record(check)
    lost = dataclasses.replace(mail.heart.attempt(1, state, 503, "busy", None, url, 0), id="msg_lost")
    stored = mail.heart.read(check), mail.alerts.newest(check.id)
    assert mail.alerts.store([lost]) == set()
    assert (mail.heart.read(check), mail.alerts.newest(check.id)) == stored


class Counted:
    """A transaction that counts its statements."""

    def __init__(self, transaction):
        self._transaction = transaction
        self.statements = 0

    def execute(self, sql, values=()):
        self.statements += 1
        return self._transaction.execute(sql, values)


def test_many_results_are_stored_in_few_statements_each_as_if_it_were_the_only_one(mail):
    def results(numbers):
        later = int(mail.clock()) + 60
        came = [("pending", 503, "busy", later), ("delivered", 200, None, None), ("failed", 410, "gone", None)]
        return [mail.heart.attempt(number, *came[number % 3], HOOK, 0) for number in numbers]

    def shown(check):
        return [{**alert, "id": ""} for alert in mail.alerts.newest(check.id)], mail.heart.read(check).delivery

    def store(transaction):
        counted = Counted(transaction)
        return attempts.store(counted, many), counted.statements

    count = attempts.AT_ONCE + 20
    checks = [mail.heart.create() for _ in range(count + 3)]
    for kind in ("check.overdue", "check.recovered"):
        mail.database.write(lambda transaction, kind=kind: mail.alerts.record(transaction, kind, checks, 1))
    many = results(range(1, count + 1))
    # To another URL, and again what others have stored meanwhile.
    many[0] = dataclasses.replace(many[0], webhook_url="https://old.example/x", state="failed")
    many[1] = dataclasses.replace(many[1], before=1)
    (moved, failed), statements = mail.database.write(store)
    for one in results(range(count + 1, count + 4)):
        mail.alerts.store([one])
    assert statements <= 10
    assert moved == {1}
    assert failed == [checks[number].id for number in range(1, count) if (number + 1) % 3 == 2 and number != 1]
    alone = {number % 3: shown(checks[number - 1]) for number in range(count + 1, count + 4)}
    assert all(shown(checks[number - 1]) == alone[number % 3] for number in range(3, count + 1))
    assert [shown(checks[number])[0][1]["attempts"] for number in (0, 1)] == [1, 0]
