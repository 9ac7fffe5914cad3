"""The rows of alerts: which are stored, which are shown, which are merged and which dropped."""

import json

import pytest

from cardbeat.heartbeat.outbox import attempts
from cardbeat.heartbeat.outbox.alert import OVERDUE, RECOVERED, TEST
from cardbeat.heartbeat.outbox.alerts import WAITING_ALERTS
from cardbeat.heartbeat.outbox.attempts import KEPT
from cardbeat.heartbeat.outbox.pending import PendingAlerts
from cardbeat.heartbeat.pings import Signal
from tests.heart import BASE_URL, HOOK
from tests.mail import Mail
from tests.postgresql import BOTH_ENGINES, POSTGRESQL, SQLITE
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
        ],
        int(mail.clock()),
    )
    mail.record(check._replace(outage=3), "check.overdue")
    outage_3, test, outage_2, recovered, overdue = (alert["next_attempt_at"] for alert in mail.alerts.newest(check.id))
    assert outage_3 == outage_2 == recovered == mail.in_text(3600)
    assert (test, overdue) == (mail.in_text(0), None)


def stored_times(mail):
    """When each alert is stored as due, in their order; of one that waits behind another it is None."""
    with mail.database.read() as connection:
        return [row[0] for row in connection.execute("SELECT next_attempt_at FROM alerts ORDER BY seq")]


def test_the_result_of_an_alert_changes_no_row_of_those_that_wait_behind_it_but_the_next(mail):
    """A stranger may let hundreds of alerts be tried at once, each with 19 behind it; all pings wait for that write."""
    check = mail.heart.create()
    mail.record(check, OVERDUE, RECOVERED)
    store_outages(mail, check, range(2, 11))
    now, later = int(mail.clock()), int(mail.clock()) + 60
    mail.alerts.store([mail.heart.attempt(1, "pending", 503, "busy", later, HOOK, 0)], now)
    mail.alerts.put_off({1: later + 60})
    assert stored_times(mail) == [later + 60] + [None] * 10
    assert len({alert["next_attempt_at"] for alert in mail.alerts.newest(check.id)}) == 1
    mail.alerts.store([mail.heart.attempt(1, "failed", 410, "gone", None, HOOK, 1)], later)
    assert stored_times(mail) == [None, later] + [None] * 9


def test_what_waits_behind_an_alert_that_ended_where_the_url_is_gone_is_due_once_there_is_one(mail):
    check = mail.heart.create()
    mail.record(check, OVERDUE, RECOVERED, TEST, TEST)
    found = mail.heart.read(check)
    mail.heart.checks.update(found, mail.heart.settings(found, webhook_url=None)).wait()
    mail.alerts.store([mail.heart.attempt(1, "delivered", 204, None, None, HOOK, 0)], 5)
    assert stored_times(mail) == [None] * 4
    found = mail.heart.read(check)
    mail.heart.checks.update(found, mail.heart.settings(found, webhook_url=HOOK)).wait()
    now = int(mail.clock())
    assert stored_times(mail) == [None, now, now, None]


def test_the_last_answers_status_stays_when_a_later_attempt_gets_none(mail):
    check = mail.heart.create()
    mail.record(check)
    mail.alerts.store([mail.heart.attempt(1, "pending", 503, "busy", 1, HOOK, 0)], int(mail.clock()))
    mail.alerts.store([mail.heart.attempt(1, "pending", None, "refused", 2, HOOK, 1)], int(mail.clock()))
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
    """An overdue alert of each outage, which waits behind another; not by `record`, which would merge some."""
    now = int(mail.clock())

    def insert(connection):
        for number in numbers:
            connection.execute(
                "INSERT INTO alerts (id, check_id, type, outage, created_at) VALUES (?, ?, 'check.overdue', ?, ?)",
                (f"msg_{number}", check.id, number, now),
            )

    mail.database.write(insert)


def seqs(mail, state):
    with mail.database.read() as connection:
        rows = connection.execute("SELECT seq FROM alerts WHERE state = ? ORDER BY seq", (state,))
        return [row["seq"] for row in rows]


def test_finished_alerts_beyond_the_newest_100_are_dropped(mail):
    other, check = mail.heart.create(), mail.heart.create()
    mail.record(other)
    store_outages(mail, check, range(1, KEPT + 21))
    mail.alerts.store(
        [mail.heart.attempt(seq, "delivered", 204, None, None, HOOK, 0) for seq in seqs(mail, "pending")[1:-5]],
        int(mail.clock()),
    )
    assert seqs(mail, "delivered") == list(range(22, 117))
    assert len(mail.alerts.newest(check.id)) == KEPT
    assert len(mail.alerts.newest(other.id)) == 1


def test_what_still_waits_is_kept_however_much_after_it_is_finished(mail):
    check = mail.heart.create()
    store_outages(mail, check, range(1, KEPT + 21))
    mail.alerts.store([mail.heart.attempt(KEPT + 20, "delivered", 204, None, None, HOOK, 0)], int(mail.clock()))
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


def told_by_the_last(mail, check):
    """The body of the newest alert that waits."""
    seq = max(alert.seq for alert in PendingAlerts(mail.database).after(0))
    return json.loads(mail.alerts.message(seq, int(mail.clock())).body)


def test_an_alert_tells_how_late_for_how_long_and_why_as_of_when_it_was_stored_and_links_to_the_check(mail):
    check = mail.heart.create()
    mail.heart.pass_time(70)
    mail.heart.sweep.sweep_once()
    late = told_by_the_last(mail, check)["data"]
    mail.heart.pass_time(20)
    mail.heart.ping(check)
    recovered = told_by_the_last(mail, check)["data"]
    mail.heart.pass_time(10)
    mail.heart.checks.signal(check.id, Signal.FAILURE).wait()
    failed = told_by_the_last(mail, check)["data"]
    mail.heart.pass_time(90)
    mail.heart.ping(check)
    better = told_by_the_last(mail, check)["data"]
    mail.record(mail.heart.read(check))
    values = [
        tuple(data[name] for name in ("reason", "late_seconds", "overdue_seconds"))
        for data in (late, recovered, failed, better, told_by_the_last(mail, check)["data"])
    ]
    assert values == [("late", 10, 0), ("late", 30, 20), ("failed", 0, 0), ("failed", 40, 90), (None, 0, 0)]
    assert late["url"] == better["url"] == f"{BASE_URL}/dashboard#{check.id[:8]}"


def test_a_reminder_tells_of_its_outage_though_a_snooze_has_moved_the_deadline(mail):
    check = mail.heart.create(repeat_seconds=600)
    late_at = mail.in_text(60)
    mail.heart.pass_time(70)
    mail.heart.sweep.sweep_once()
    mail.alerts.store([mail.heart.attempt(1, "delivered", 204, None, None, HOOK, 0)], int(mail.clock()))
    mail.heart.checks.snooze(mail.heart.key.id, check.id, 86_400, None).wait()
    mail.heart.checks.snooze(mail.heart.key.id, check.id, 0, None).wait()
    for _ in range(11):
        mail.heart.pass_time(60)
        mail.heart.sweep.sweep_once()
    told = told_by_the_last(mail, check)
    values = [told["data"][name] for name in ("reason", "late_seconds", "overdue_seconds")]
    assert (told["type"], values) == ("check.reminder", ["late", 670, 660])
    assert f"is still overdue, for 11 minutes: late since {late_at[:16]} UTC; no ping yet." in told["text"]


def test_what_an_alert_tells_does_not_change_while_it_waits(mail):
    check = mail.heart.create()
    mail.heart.pass_time(70)
    mail.heart.sweep.sweep_once()
    first = told_by_the_last(mail, check)
    mail.heart.pass_time(7000)
    assert told_by_the_last(mail, check) == first


def test_beyond_12_alerts_in_an_hour_the_newest_that_waits_tells_what_follows(mail):
    check = mail.heart.create()
    flap(mail, check, 6)
    began = mail.in_text(61)
    assert waiting(mail, check) == whole(1, 2, 3, 4, 5, 6)
    flap(mail, check, 4)
    assert waiting(mail, check) == [*whole(1, 2, 3, 4, 5), (6, "check.overdue"), (10, "check.recovered")]
    told = told_by_the_last(mail, check)
    # Outage 6 is told by an alert of its own.
    assert (told["data"]["outages"], told["data"]["check"]["status"]) == (4, "on_time")
    assert told["timestamp"].startswith(began.replace(" ", "T"))
    assert told["data"]["check"]["ping_count"] == 10
    assert f" 4 outages since {began[:16]} UTC are told together. https://" in told["text"]
    mail.heart.pass_time(61)
    mail.heart.sweep.sweep_once()
    assert waiting(mail, check)[-1] == (11, "check.overdue")
    assert told_by_the_last(mail, check)["data"]["check"]["status"] == "overdue"


def test_in_the_next_hour_alerts_are_added_again_until_20_wait(mail):
    check = mail.heart.create()
    flap(mail, check, 7)
    for _ in range(72):
        mail.heart.pass_time(50)
        mail.heart.ping(check)
        mail.heart.sweep.sweep_once()
    flap(mail, check, 7)
    # The 12 of the first hour, and 8 more: those of outages 8 to 11, the last of which tells 12, 13 and 14 too.
    assert waiting(mail, check) == [
        *whole(1, 2, 3, 4, 5),
        (6, "check.overdue"),
        (7, "check.recovered"),
        *whole(8, 9, 10),
        (11, "check.overdue"),
        (14, "check.recovered"),
    ]


def test_alerts_that_were_taken_count_in_the_hour_and_one_that_waits_tells_what_follows(mail):
    check = mail.heart.create()
    mail.delivery.start()
    flap(mail, check, 6)
    mail.delivery.wake()
    mail.settled(12)
    mail.delivery.stop(10)
    flap(mail, check, 3)
    assert waiting(mail, check) == [(7, "check.overdue"), (9, "check.recovered")]
    assert told_by_the_last(mail, check)["data"]["outages"] == 2


def test_alerts_of_other_checks_and_tests_do_not_count(mail):
    other, check = mail.heart.create(), mail.heart.create()
    mail.record(check, *["check.test"] * 4)
    flap(mail, other, 7)
    flap(mail, check, 5)
    assert waiting(mail, check)[4:] == whole(1, 2, 3, 4, 5)


def test_an_alert_that_is_under_way_is_told_as_it_is_and_once(mail):
    check = mail.heart.create()
    flap(mail, check, 6)
    mail.delivery.start()
    mail.settled(12)
    # So that delivery does not hold them back.
    mail.elapsed.advance(3600)
    mail.held.set()
    mail.heart.pass_time(61)
    mail.heart.sweep.sweep_once()
    mail.delivery.wake()
    wait_until(lambda: len(mail.posted) == 13)
    mail.heart.ping(check)
    flap(mail, check, 2)
    mail.held.clear()
    mail.settled(14)
    mail.delivery.stop(10)
    told = [json.loads(body) for _, _, body in mail.posted[12:]]
    assert [alert["type"] for alert in told] == ["check.overdue", "check.recovered"]
    assert [alert["data"]["check"]["ping_count"] for alert in told] == [6, 9]
    assert [alert["data"].get("outages") for alert in told] == [None, 2]
    assert waiting(mail, check) == []


def test_a_recovery_that_is_merged_into_the_begin_of_its_outage_says_since_when(mail):
    check = mail.heart.create()
    flap(mail, check, 6)
    mail.heart.pass_time(61)
    mail.heart.sweep.sweep_once()
    assert waiting(mail, check)[-1] == (7, "check.overdue")
    began = mail.in_text(0)
    mail.heart.pass_time(5)
    mail.heart.ping(check)
    told = told_by_the_last(mail, check)
    assert waiting(mail, check)[-2:] == [(6, "check.overdue"), (7, "check.recovered")]
    assert told["data"]["outages"] == 1
    assert told["data"]["overdue_seconds"] == 5
    assert f" has recovered after 5 seconds: overdue since {began[:16]} UTC; " in told["text"]


def test_without_a_webhook_for_a_while_what_waits_is_bounded_all_the_same(mail):
    check = mail.heart.create()
    for url in (HOOK, None) * 3:
        read = mail.heart.read(check)
        mail.heart.checks.update(read, mail.heart.settings(read, webhook_url=url)).wait()
        mail.heart.pass_time(3600)
        flap(mail, check, WAITING_ALERTS)
    assert len(waiting(mail, check)) <= WAITING_ALERTS


def low(mail, monkeypatch):
    monkeypatch.setattr(mail.database.reserve, "is_low", lambda: True)


@POSTGRESQL
def test_a_low_disk_of_a_node_is_not_that_of_postgresql(mail, monkeypatch):
    check = mail.heart.create()
    low(mail, monkeypatch)
    flap(mail, check, 4)
    assert len(waiting(mail, check)) == 8


@SQLITE
def test_while_the_disk_is_low_two_alerts_of_a_check_wait_and_tell_all(mail, monkeypatch):
    check = mail.heart.create()
    low(mail, monkeypatch)
    flap(mail, check, 4)
    assert waiting(mail, check) == [(1, "check.overdue"), (4, "check.recovered")]
    assert told_by_the_last(mail, check)["data"]["outages"] == 3


@SQLITE
def test_while_the_disk_is_low_a_new_alert_takes_the_place_of_the_checks_oldest(mail, monkeypatch):
    check, other = mail.heart.create(), mail.heart.create()
    mail.record(other, "check.overdue")
    mail.delivery.start()
    flap(mail, check, 1)
    mail.delivery.wake()
    mail.settled(4)
    low(mail, monkeypatch)
    flap(mail, check, 1)
    mail.delivery.wake()
    mail.settled(5)
    mail.delivery.stop(10)
    assert len(mail.alerts.newest(check.id)) == 2
    assert mail.alerts.newest(other.id)


@SQLITE
def test_the_history_stays_at_its_length_while_nothing_is_ever_sent(mail):
    check = mail.heart.create()
    flap(mail, check, 2 * KEPT)
    assert len(waiting(mail, check)) == WAITING_ALERTS
    with mail.database.read() as connection:
        assert connection.execute("SELECT count(*) FROM alerts").fetchone()[0] <= WAITING_ALERTS


def test_a_key_with_more_than_20_checks_keeps_20_alerts_of_each(mail):
    check, *_ = [mail.heart.create() for _ in range(21)]
    store_outages(mail, check, range(1, 31))
    mail.alerts.store([finished(mail, number) for number in range(1, 31)], int(mail.clock()))
    assert len(mail.alerts.newest(check.id)) == 20


def finished(mail, number):
    return mail.heart.attempt(number, "delivered", 204, None, None, HOOK, 0)._replace(id=f"msg_{number}")


@SQLITE
def test_merging_reads_only_what_waits_and_the_newest_alerts(mail):
    statements = []
    check = mail.heart.create()
    flap(mail, check, 6)
    mail.database.write(lambda connection: connection.set_trace_callback(statements.append))
    flap(mail, check, 1)
    mail.database.write(lambda connection: connection.set_trace_callback(None))
    statement, *_ = [text for text in statements if "UPDATE alerts SET type = new.type" in text]
    with mail.database.read() as connection:
        plan = [row["detail"] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}")]
    assert not [step for step in plan if step.startswith("SCAN") and "new" not in step and "CONSTANT" not in step], plan


def test_an_alert_given_up_is_logged_with_its_check_and_key_cut(mail, caplog):
    caplog.set_level("INFO")
    check = mail.heart.create()
    mail.record(check)
    mail.alerts.store([mail.heart.attempt(1, "failed", 410, "gone", None, HOOK, 0)], int(mail.clock()))
    assert caplog.messages == [f"an alert of check {check.id[:4]}... of key {mail.heart.key.prefix}... was given up"]


@pytest.mark.parametrize(("state", "shown"), [("delivered", "ok"), ("pending", "failing"), ("failed", "failing")])
def test_a_check_tells_what_came_of_the_last_attempt(mail, state, shown):
    check = mail.heart.create()
    mail.record(check)
    assert mail.heart.read(check).delivery is None
    mail.alerts.store([mail.heart.attempt(1, state, 204, None, None, HOOK, 0)], int(mail.clock()))
    read = mail.heart.read(check)
    assert (read.delivery, read.version, read.updated_at) == (shown, check.version, check.updated_at)


def test_the_state_of_delivery_follows_each_attempt(mail):
    check = mail.heart.create()
    mail.record(check, "check.test", "check.test")
    seen = []
    for seq, state, before in ((1, "pending", 0), (1, "delivered", 1), (2, "pending", 0)):
        mail.alerts.store([mail.heart.attempt(seq, state, 500, None, None, HOOK, before)], int(mail.clock()))
        seen.append(mail.heart.read(check).delivery)
    assert seen == ["failing", "ok", "failing"]


@pytest.mark.parametrize("url", [HOOK, "https://before.example/x"])
@pytest.mark.parametrize("late", ["delivered", "pending", "failed"])
@pytest.mark.parametrize("first", ["delivered", "pending", "failed"])
def test_a_result_that_comes_after_another_processs_overwrites_nothing(mail, first, late, url):
    check = mail.heart.create()
    mail.record(check)
    mail.alerts.store([mail.heart.attempt(1, first, 503, "busy", None, HOOK, 0)], int(mail.clock()))
    stored = mail.heart.read(check), mail.alerts.newest(check.id)
    mail.alerts.store([mail.heart.attempt(1, late, 410, "gone", 9, url, 0)], int(mail.clock()))
    assert (mail.heart.read(check), mail.alerts.newest(check.id)) == stored


@pytest.mark.parametrize(("url", "shown"), [("https://other.example/", "failing"), (None, None)])
def test_another_webhook_url_changes_nothing_about_the_last_attempt(mail, url, shown):
    check = mail.heart.create()
    mail.record(check)
    mail.alerts.store([mail.heart.attempt(1, "pending", 500, "busy", None, HOOK, 0)], int(mail.clock()))
    changed = mail.heart.checks.update(check, mail.heart.settings(check, webhook_url=url)).wait()
    assert changed.as_json("")["delivery"] == shown
    # A post to the URL before may have been on its way, and says nothing of this one.
    mail.alerts.store([mail.heart.attempt(1, "delivered", 204, None, None, HOOK, 1)], int(mail.clock()))
    assert mail.heart.read(check).as_json("")["delivery"] == shown


def test_a_change_of_another_field_keeps_the_state_of_delivery(mail):
    check = mail.heart.create()
    mail.record(check)
    mail.alerts.store([mail.heart.attempt(1, "pending", 500, "busy", None, HOOK, 0)], int(mail.clock()))
    assert mail.heart.checks.update(check, mail.heart.settings(check, name="b")).wait().delivery == "failing"


@pytest.mark.parametrize("url", [HOOK, "https://before.example/x"])
@pytest.mark.parametrize("state", ["delivered", "pending"])
def test_a_result_is_not_stored_for_another_alert_that_has_its_number_now(mail, state, url):
    """As after a failover to a standby that lagged behind: it gives the same numbers once more."""
    check = mail.heart.create()
    mail.record(check)
    lost = mail.heart.attempt(1, state, 503, "busy", None, url, 0)._replace(id="msg_lost")
    stored = mail.heart.read(check), mail.alerts.newest(check.id)
    assert mail.alerts.store([lost], int(mail.clock())) == (set(), set())
    assert (mail.heart.read(check), mail.alerts.newest(check.id)) == stored


class Counted:
    """A transaction that counts its statements."""

    def __init__(self, transaction):
        self._transaction = transaction
        self.statements = 0

    def execute(self, sql, values=()):
        self.statements += 1
        return self._transaction.execute(sql, values)


def test_the_end_of_many_outages_takes_as_many_statements_as_that_of_one(mail):
    def statements_to_end(checks):
        def end(transaction):
            counted = Counted(transaction)
            mail.alerts.record(counted, "check.recovered", checks, 1)
            return counted.statements

        return mail.database.write(end)

    checks = [mail.heart.create(webhook_url=None) for _ in range(12)]
    told, *others = [mail.heart.create() for _ in range(12)]
    told_too = mail.heart.create()
    mail.record(told, "check.overdue")
    mail.record(told_too, "check.overdue")
    for check in (told, told_too):
        mail.heart.checks.update(mail.heart.read(check), mail.heart.settings(check, webhook_url=None)).wait()
    assert statements_to_end([mail.heart.read(told), checks[0], others[0]]) >= statements_to_end(
        [mail.heart.read(told_too), *checks, *others]
    )
    assert mail.heart.alert_types(told_too) == ["check.overdue", "check.recovered"]
    assert [mail.heart.alert_types(check) for check in checks] == [[]] * 12


def test_many_results_are_stored_in_few_statements_each_as_if_it_were_the_only_one(mail):
    def results(numbers):
        later = int(mail.clock()) + 60
        came = [("pending", 503, "busy", later), ("delivered", 200, None, None), ("failed", 410, "gone", None)]
        return [mail.heart.attempt(number, *came[number % 3], HOOK, 0) for number in numbers]

    def shown(check):
        return [{**alert, "id": ""} for alert in mail.alerts.newest(check.id)], mail.heart.read(check).delivery

    def store(transaction):
        counted = Counted(transaction)
        return attempts.store(counted, many, int(mail.clock())), counted.statements

    count = attempts.AT_ONCE + 20
    checks = [mail.heart.create() for _ in range(count + 3)]
    for kind in ("check.overdue", "check.recovered"):
        mail.database.write(lambda transaction, kind=kind: mail.alerts.record(transaction, kind, checks, 1))
    # PostgreSQL numbers alerts of one statement in any order.
    with mail.database.read() as connection:
        sql = "SELECT check_id FROM alerts WHERE type = 'check.overdue' ORDER BY seq"
        numbers = {row[0]: number for number, row in enumerate(connection.execute(sql))}
    checks.sort(key=lambda check: numbers[check.id])
    many = results(range(1, count + 1))
    # To another URL, and again what others have stored meanwhile.
    many[0] = many[0]._replace(webhook_url="https://old.example/x", state="failed")
    many[1] = many[1]._replace(before=1)
    (moved, failed, _), statements = mail.database.write(store)
    for one in results(range(count + 1, count + 4)):
        mail.alerts.store([one], int(mail.clock()))
    assert statements <= 12
    assert moved == {1}
    assert failed == [checks[number].id for number in range(1, count) if (number + 1) % 3 == 2 and number != 1]
    alone = {number % 3: shown(checks[number - 1]) for number in range(count + 1, count + 4)}
    assert all(shown(checks[number - 1]) == alone[number % 3] for number in range(3, count + 1))
    assert [shown(checks[number])[0][1]["attempts"] for number in (0, 1)] == [1, 0]
