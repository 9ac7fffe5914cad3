"""Delivery with posts and clocks under control: order, retries, trouble, restarts."""

import contextlib
import dataclasses
import errno
import json
import math
import resource
import sqlite3
import threading
import time

import pytest

from cardbeat.database import lock_file
from cardbeat.database.sqlite_file import DELIVERY_LOCK
from cardbeat.errors import Unavailable
from cardbeat.heartbeat import couriers, delivery, liveness
from cardbeat.heartbeat.alert import Outcome, signed_headers
from cardbeat.heartbeat.alerts import Alerts
from cardbeat.heartbeat.checks import Checks
from cardbeat.heartbeat.dispatcher import GONE_SECONDS
from cardbeat.heartbeat.lanes import COURIERS
from cardbeat.heartbeat.liveness import STALLED_SECONDS
from cardbeat.heartbeat.pending import PendingAlerts
from cardbeat.heartbeat.retries import SCHEDULE_SECONDS
from cardbeat.keys.webhook_secrets import OLD_SECRET_SECONDS, WebhookSecrets
from cardbeat.system import try_lock
from tests.heart import HOOK
from tests.mail import DELIVERED, FAILED, Mail
from tests.postgresql import BOTH_ENGINES, SQLITE
from tests.support import wait_until

pytestmark = BOTH_ENGINES


@pytest.fixture
def mail(database, clock):
    mail = Mail(database, clock)
    yield mail
    mail.held.clear()
    mail.delivery.stop(10)


@pytest.fixture
def check(mail):
    return mail.heart.create()


@pytest.fixture
def lock_tries(monkeypatch):
    """What came of each try to take the lock, of whichever process."""
    taken, tries = lock_file.try_lock, []
    monkeypatch.setattr(lock_file, "try_lock", lambda descriptor: tries.append(taken(descriptor)) or tries[-1])
    return tries


@pytest.fixture
def quick_poll(monkeypatch):
    """Who waits for the lock asks for it again at once."""
    monkeypatch.setattr(delivery, "POLL_SECONDS", 0.01)


def last(mail, check):
    """The check's oldest alert as it is shown."""
    return mail.alerts.newest(check.id)[-1]


def test_an_alert_is_posted_signed_and_recorded(mail, check):
    mail.delivery.start()
    mail.record(check)
    mail.settled(1)
    ((url, headers, body),) = mail.posted
    shown = last(mail, check)
    assert url == check.webhook_url
    assert headers["webhook-id"] == shown["id"]
    assert headers["webhook-timestamp"] == str(mail.clock())
    assert headers["webhook-signature"].startswith("v1,")
    assert headers["User-Agent"].startswith("cardbeat/")
    assert body.startswith(b'{"type":"check.test"')
    assert (shown["state"], shown["attempts"], shown["last_status"]) == ("delivered", 1, 204)
    assert shown["last_error"] is shown["next_attempt_at"] is None


def test_a_receiver_of_another_form_gets_it_signed_and_the_same_bytes_again(mail):
    mail.outcomes = [FAILED]
    check = mail.heart.create(webhook_url=f"https://chat.example/hooks/{'a1' * 13}")
    mail.delivery.start()
    mail.record(check)
    mail.settled(1)
    mail.pass_time(6)
    mail.settled(2)
    (_, first, body), (_, headers, again) = mail.posted
    assert json.loads(body).keys() == {"text"}
    assert (first["webhook-id"], body) == (headers["webhook-id"], again)
    with mail.database.read() as connection:
        (secret,) = connection.execute("SELECT webhook_secret FROM keys").fetchone()
    assert headers == signed_headers(headers["webhook-id"], int(headers["webhook-timestamp"]), body, secret)


def test_for_a_day_alerts_are_signed_by_the_new_secret_and_by_the_one_before(mail, check):
    secrets = WebhookSecrets(mail.database, mail.clock)
    with mail.database.read() as connection:
        (first,) = connection.execute("SELECT webhook_secret FROM keys").fetchone()
    mail.delivery.start()
    second = secrets.renew(mail.heart.key).wait()
    assert signers(mail, check, first, second) == [second, first]
    mail.pass_time(OLD_SECRET_SECONDS - 1)
    assert signers(mail, check, first, second) == [second, first]
    mail.pass_time(1)
    assert signers(mail, check, first, second) == [second]
    third, fourth = (secrets.renew(mail.heart.key).wait() for _ in range(2))
    assert signers(mail, check, first, second, third, fourth) == [fourth, third]


def signers(mail, check, *secrets):
    """Those of the secrets by which the next alert is signed, in the order of its signatures."""
    mail.record(check)
    mail.settled(len(mail.posted) + 1)
    _, headers, body = mail.posted[-1]
    named = (headers["webhook-id"], int(headers["webhook-timestamp"]), body)
    signatures = {signed_headers(*named, secret)["webhook-signature"]: secret for secret in secrets}
    return [signatures[signature] for signature in headers["webhook-signature"].split(" ")]


def test_what_was_stored_before_the_start_is_delivered(mail, check):
    mail.record(check, "check.overdue", "check.recovered")
    mail.delivery.start()
    mail.settled(2)
    assert mail.states(check) == ["delivered", "delivered"]


def test_an_alert_is_retried_on_schedule_with_the_same_id_then_failed(mail, check):
    mail.outcomes = [FAILED] * 10
    mail.delivery.start()
    mail.record(check)
    for attempts, seconds in enumerate(SCHEDULE_SECONDS, 1):
        mail.settled(attempts)
        shown = last(mail, check)
        assert (shown["state"], shown["attempts"], shown["last_status"]) == ("pending", attempts, 500)
        assert shown["last_error"] == FAILED.error
        assert mail.in_text(seconds) <= shown["next_attempt_at"] <= mail.in_text(math.ceil(1.2 * seconds))
        mail.pass_time(1.2 * seconds)
    mail.settled(10)
    shown = last(mail, check)
    assert (shown["state"], shown["attempts"], shown["next_attempt_at"]) == ("failed", 10, None)
    assert mail.ids == [shown["id"]] * 10
    assert mail.delivery.totals() == {"delivered": 0, "retried": 9, "failed": 1}


def test_nothing_is_retried_before_its_time(mail, check):
    mail.outcomes = [FAILED]
    mail.delivery.start()
    mail.record(check)
    mail.settled(1)
    mail.pass_time(4.9)
    mail.record(mail.heart.create())
    mail.settled(2)
    assert mail.states(check) == ["pending"]


def test_gone_fails_at_once(mail, check):
    mail.outcomes = [Outcome(410, "The receiver answered 410.")]
    mail.delivery.start()
    mail.record(check)
    mail.settled(1)
    assert mail.states(check) == ["failed"]


def test_a_checks_alerts_go_out_in_order_past_failures(mail, check):
    mail.outcomes = [FAILED, DELIVERED, Outcome(410, "gone"), DELIVERED]
    mail.delivery.start()
    mail.record(check, "check.overdue", "check.recovered")
    mail.settled(1)
    mail.record(dataclasses.replace(check, outage=1), "check.overdue")
    assert mail.states(check) == ["pending"] * 3
    mail.pass_time(6)
    mail.settled(4)
    assert mail.states(check) == ["delivered", "failed", "delivered"]
    ids = [alert["id"] for alert in reversed(mail.alerts.newest(check.id))]
    assert mail.ids == [ids[0], *ids]


def test_an_alert_that_waits_holds_back_no_other_check(mail, check):
    mail.outcomes = [FAILED]
    mail.delivery.start()
    mail.record(check)
    mail.settled(1)
    other = mail.heart.create()
    mail.record(other)
    mail.settled(2)
    assert mail.states(other) == ["delivered"]


def test_a_corrected_url_receives_what_is_pending(mail, check):
    mail.outcomes = [FAILED]
    mail.delivery.start()
    mail.record(check)
    mail.settled(1)
    set_url(mail, check, "https://other.example/y")
    mail.pass_time(6)
    mail.settled(2)
    assert [url for url, _, _ in mail.posted] == [check.webhook_url, "https://other.example/y"]


def test_another_url_gets_what_waits_at_once_and_the_attempts_made_still_count(mail, check):
    mail.outcomes = [Outcome(503, "busy", "86400"), FAILED]
    mail.delivery.start()
    mail.record(check, "check.overdue", "check.recovered")
    mail.settled(1)
    check = patch_url(mail, check, "https://other.example/y")
    mail.settled(2)
    assert [url for url, _, _ in mail.posted] == [HOOK, "https://other.example/y"]
    assert last(mail, check)["attempts"] == 2
    # What the first failure had planned is void, what the second has counts.
    mail.pass_time(29)
    mail.record(mail.heart.create())
    mail.settled(3)
    mail.pass_time(7)
    mail.settled(5)
    assert mail.states(check) == ["delivered", "delivered"]
    mail.pass_time(24 * 3600)
    mail.record(check)
    mail.settled(6)
    assert len(mail.posted) == 6


def test_another_url_is_not_forgotten_while_the_old_one_is_being_tried(mail, check):
    mail.outcomes = [FAILED]
    mail.held.set()
    mail.delivery.start()
    mail.record(check)
    wait_until(lambda: mail.posted)
    patch_url(mail, check, "https://other.example/y")
    mail.held.clear()
    mail.settled(2)
    assert mail.posted[1][0] == "https://other.example/y"


FINAL = [
    Outcome(410, "The receiver answered 410."),
    Outcome(302, "A redirect.", "86400"),
]


@pytest.mark.parametrize("outcome", FINAL)
def test_what_the_old_url_answers_after_a_move_ends_no_alert_that_has_a_new_one(mail, check, outcome):
    mail.outcomes = [outcome]
    mail.held.set()
    mail.delivery.start()
    mail.record(check, "check.overdue", "check.recovered")
    wait_until(lambda: mail.posted)
    patch_url(mail, check, "https://other.example/y")
    mail.held.clear()
    mail.settled(3)
    assert mail.states(check) == ["delivered", "delivered"]
    assert last(mail, check)["attempts"] == 2
    assert [url for url, _, _ in mail.posted] == [HOOK, "https://other.example/y", "https://other.example/y"]
    assert mail.delivery.totals() == {"delivered": 2, "retried": 1, "failed": 0}


def test_the_last_attempt_at_the_old_url_leaves_one_at_the_new_one(mail, check):
    mail.record(check)
    spend(mail, attempts=9)
    mail.outcomes = [FAILED, FAILED]
    mail.held.set()
    mail.delivery.start()
    wait_until(lambda: mail.posted)
    patch_url(mail, check, "https://other.example/y")
    mail.held.clear()
    mail.settled(2)
    assert (mail.states(check), last(mail, check)["attempts"]) == (["failed"], 11)


def spend(mail, attempts):
    sql = f"UPDATE alerts SET attempts = {attempts}"
    mail.database.write(lambda connection: connection.execute(sql))


def test_a_url_that_another_process_changed_gets_what_waits_within_a_second(mail, check):
    mail.outcomes = [Outcome(503, "busy", "86400")]
    mail.delivery.start()
    mail.record(check, "check.overdue", "check.recovered")
    mail.settled(1)
    # The delivery of the process that took the change, which has not got the lock.
    Checks(mail.database, mail.clock, mail.alerts, mail.another()).update(
        check, mail.heart.settings(check, webhook_url="https://other.example/y")
    ).wait()
    mail.elapsed.advance(delivery.POLL_SECONDS)
    mail.settled(3)
    assert mail.states(check) == ["delivered", "delivered"]
    assert {url for url, _, _ in mail.posted[1:]} == {"https://other.example/y"}


def test_a_test_alert_goes_out_at_once_while_an_outage_waits_for_its_retry(mail, check):
    mail.outcomes = [FAILED, Outcome(503, "busy", "86400")]
    mail.delivery.start()
    mail.record(check, "check.overdue", "check.recovered")
    mail.settled(1)
    mail.record(check, "check.test")
    mail.settled(2)
    assert mail.posted[1][2].startswith(b'{"type":"check.test"')
    # Nor do outages wait for a test.
    mail.pass_time(6)
    mail.settled(4)
    assert mail.states(check) == ["delivered", "delivered", "pending"]


def test_another_url_counts_after_a_restart_too(mail, check):
    mail.outcomes = [FAILED]
    mail.delivery.start()
    mail.record(check)
    mail.settled(1)
    mail.delivery.stop(10)
    patch_url(mail, check, "https://other.example/y")
    mail.delivery = mail.another()
    mail.delivery.start()
    mail.settled(1)
    assert mail.states(check) == ["delivered"]


@pytest.mark.parametrize("changes", [{"name": "b"}, {"webhook_url": None}])
def test_a_change_that_gives_no_other_url_hurries_nothing(mail, check, changes):
    mail.outcomes = [FAILED]
    mail.delivery.start()
    mail.record(check)
    mail.settled(1)
    checks = Checks(mail.database, mail.clock, mail.alerts, mail.delivery)
    checks.update(check, mail.heart.settings(check, **changes)).wait()
    mail.record(mail.heart.create())
    mail.settled(2)
    assert mail.states(check) == ["pending"]


def give_url(mail, check, webhook_url):
    """As a PATCH does."""
    read = mail.heart.read(check)
    checks = Checks(mail.database, mail.clock, mail.alerts, mail.delivery)
    checks.update(read, mail.heart.settings(read, webhook_url=webhook_url)).wait()


def test_without_a_url_what_is_pending_waits_until_there_is_one_again(mail, check):
    mail.outcomes = [FAILED]
    mail.delivery.start()
    mail.record(check)
    mail.settled(1)
    give_url(mail, check, None)
    for _ in range(3):
        mail.pass_time(24 * 3600)
        wait_until(lambda: mail.elapsed() < mail.delivery._dispatcher._schedule.next_due_at() < math.inf)
        assert (last(mail, check)["state"], last(mail, check)["attempts"]) == ("pending", 1)
    give_url(mail, check, "https://new.example/x")
    mail.settled(2)
    assert (last(mail, check)["state"], last(mail, check)["attempts"]) == ("delivered", 2)
    assert [url for url, _, _ in mail.posted] == [HOOK, "https://new.example/x"]


def test_without_a_url_at_the_start_what_is_pending_waits_too(mail, check):
    mail.record(check)
    set_url(mail, check, None)
    other = mail.heart.create()
    mail.record(other)
    mail.delivery.start()
    mail.settled(1)
    assert (mail.states(check), mail.states(other)) == (["pending"], ["delivered"])
    give_url(mail, check, HOOK)
    mail.settled(2)
    assert mail.states(check) == ["delivered"]


def test_a_url_that_comes_back_while_a_courier_finds_none_is_gone_to_at_once(mail, check):
    mail.outcomes = [FAILED]
    mail.delivery.start()
    mail.record(check)
    mail.settled(1)
    message = mail.alerts.message

    def message_and_then_a_url(seq):
        found = message(seq)
        mail.alerts.message = message
        give_url(mail, check, "https://new.example/x")
        wait_until(lambda: mail.delivery._dispatcher._schedule._queues[check.seq, True].is_moved)
        return found

    mail.alerts.message = message_and_then_a_url
    give_url(mail, check, None)
    mail.settled(2)
    assert [url for url, _, _ in mail.posted] == [HOOK, "https://new.example/x"]


def test_what_stands_in_line_for_a_silent_host_goes_to_another_at_once(mail):
    checks = [mail.heart.create(webhook_url="https://silent.example/x") for _ in range(3)]
    mail.held.set()
    mail.delivery.start()
    for check in checks:
        mail.record(check)
    wait_until(lambda: mail.posted)
    queues = mail.delivery._dispatcher._schedule._queues
    wait_until(lambda: len(queues) == len(checks) and all(queue.entry == 0 for queue in list(queues.values())))
    moved = next(check for check in checks if not queues[check.seq, True].is_taken)
    give_url(mail, moved, "https://new.example/x")
    wait_until(lambda: [url for url, _, _ in mail.posted] == ["https://silent.example/x", "https://new.example/x"])
    mail.held.clear()
    mail.settled(3)
    assert [mail.states(check) for check in checks] == [["delivered"]] * 3
    assert len(mail.posted) == 3


def test_what_waits_long_for_a_check_that_is_gone_is_forgotten(mail, check):
    mail.outcomes = [Outcome(503, "The receiver answered 503.", "86400")]
    mail.delivery.start()
    mail.record(check)
    mail.settled(1)
    mail.heart.checks.delete(mail.heart.key.id, check.id).wait()
    assert mail.delivery._dispatcher._schedule.waiting() == [check.seq]
    mail.pass_time(GONE_SECONDS)
    wait_until(lambda: mail.delivery._dispatcher._schedule.waiting() == [])


def test_the_alerts_of_a_deleted_check_are_forgotten(mail, check):
    mail.outcomes = [FAILED]
    mail.delivery.start()
    mail.record(check, "check.overdue", "check.recovered")
    mail.settled(1)
    mail.heart.checks.delete(mail.heart.key.id, check.id).wait()
    mail.pass_time(6)
    mail.record(mail.heart.create())
    mail.settled(2)
    assert len(mail.posted) == 2


def test_a_post_that_breaks_is_a_failed_attempt(mail, check, caplog):
    mail.outcomes = [ValueError("never seen")]
    mail.delivery.start()
    mail.record(check)
    mail.settled(1)
    assert last(mail, check)["last_error"] == "The alert could not be sent; the server's log says why."
    assert "never seen" in caplog.text


def test_no_secret_of_a_webhook_url_is_in_the_log_or_in_an_alerts_history(mail, caplog):
    caplog.set_level(0)
    secret = "/bot123:AAF-secret-token/sendMessage?chat_id=4711"
    check = mail.heart.create(webhook_url=f"https://chat.example{secret}")
    mail.outcomes = [ValueError(f"unknown url: {check.webhook_url}"), ValueError(f"GET {secret}"), FAILED]
    mail.delivery.start()
    mail.record(check)
    for attempts in (1, 2, 3):
        mail.settled(attempts)
        mail.pass_time(150)
    shown = f"{caplog.text} {mail.heart.log_lines} {mail.alerts.newest(check.id)}"
    assert "unknown url: https://chat.example/bot1..." in shown
    assert "secret-token" not in shown
    assert "4711" not in shown


def test_a_restart_resumes_where_it_was(mail, check):
    mail.outcomes = [FAILED]
    mail.delivery.start()
    mail.record(check)
    mail.settled(1)
    mail.delivery.stop(10)
    mail.delivery = mail.another()
    mail.delivery.start()
    mail.pass_time(6)
    mail.settled(1)
    assert last(mail, check)["attempts"] == 2
    assert len(set(mail.ids)) == 1


def test_a_day_that_a_receiver_asked_for_outlasts_a_quick_restart(mail, check, clock):
    clock.advance(0.5)
    mail.outcomes = [Outcome(503, "busy", "86400")]
    mail.delivery.start()
    mail.record(check)
    mail.settled(1)
    mail.delivery.stop(10)
    mail.delivery = mail.another()
    mail.delivery.start()
    mail.record(mail.heart.create())
    mail.settled(1)
    assert last(mail, check)["attempts"] == 1
    mail.pass_time(24 * 3600 + 1)
    mail.settled(2)
    assert mail.states(check) == ["delivered"]


@SQLITE
def test_of_two_processes_one_delivers_and_the_other_takes_over(mail, check, lock_tries):
    mail.delivery.start()
    wait_until(lambda: lock_tries)
    standby = mail.another()
    standby.start()
    wait_until(lambda: len(lock_tries) > 1)
    assert lock_tries[:2] == [True, False]
    mail.record(check)
    mail.settled(1)
    mail.delivery.stop(10)
    mail.delivery = standby
    mail.record(check)
    mail.settled(1)
    assert len(mail.posted) == 2


@SQLITE
def test_a_lock_that_can_not_be_asked_for_is_told_and_tried_again(mail, check, monkeypatch, caplog):
    refusals = [OSError(errno.ENOLCK, "No locks available")] * 2
    taken = lock_file.try_lock

    def refuse_first(descriptor):
        if refusals:
            raise refusals.pop()
        return taken(descriptor)

    monkeypatch.setattr(lock_file, "try_lock", refuse_first)
    monkeypatch.setattr(delivery, "TROUBLE_SECONDS", 0.01)
    mail.record(check)
    mail.delivery.start()
    mail.settled(1)
    assert mail.states(check) == ["delivered"]
    told = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert len(told) == 2
    assert "delivery.lock (No locks available)" in told[0]


@SQLITE
def test_a_stop_does_not_wait_for_a_lock_that_can_not_be_asked_for(mail, monkeypatch):
    tried = threading.Event()

    def refuse(_descriptor):
        tried.set()
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(lock_file, "try_lock", refuse)
    mail.delivery.start()
    assert tried.wait(10)
    began = time.monotonic()
    mail.delivery.stop(10)
    assert time.monotonic() - began < delivery.TROUBLE_SECONDS / 2


def test_an_alert_stored_by_another_process_is_seen(mail, check):
    mail.delivery.start()
    mail.database.write(lambda connection: mail.alerts.record_test(connection, check, 1))
    # As the poll does: time passes, but nobody wakes it.
    mail.elapsed.advance(2)
    mail.settled(1)


@SQLITE
def test_what_still_runs_after_a_stop_keeps_the_lock(mail, check, lock_tries):
    mail.held.set()
    mail.delivery.start()
    mail.record(check, "check.overdue", "check.recovered")
    wait_until(lambda: mail.posted)
    mail.delivery.stop(0)
    assert mail.states(check) == ["pending", "pending"]
    # Its post may still arrive, so nobody else may send it yet.
    standby = mail.another()
    standby.start()
    wait_until(lambda: len(lock_tries) > 1)
    standby.stop(0)
    assert not any(lock_tries[1:])
    assert len(mail.posted) == 1


def test_a_stop_records_what_ends_in_time(mail, check):
    mail.held.set()
    mail.delivery.start()
    mail.record(check, "check.overdue", "check.recovered")
    wait_until(lambda: mail.posted)
    end_while_stopping(mail)
    assert mail.states(check) == ["delivered", "pending"]


def test_a_stop_begins_no_post_in_the_place_of_one_that_ends(mail):
    for check in [mail.heart.create() for _ in range(5)]:
        mail.record(check)
    mail.held.set()
    mail.delivery.start()
    wait_until(lambda: mail.posted)
    end_while_stopping(mail)
    assert len(mail.posted) == 1


def test_a_clock_set_back_an_hour_delays_nothing(mail, check):
    mail.outcomes = [FAILED]
    mail.delivery.start()
    mail.record(check)
    mail.settled(1)
    mail.clock.advance(-3600)
    mail.elapsed.advance(6)
    mail.delivery.wake()
    mail.settled(2)
    mail.record(check)
    mail.settled(3)


def test_after_a_clock_was_set_far_back_the_next_start_does_not_wait(mail, check):
    mail.outcomes = [FAILED]
    mail.delivery.start()
    mail.record(check)
    mail.settled(1)
    mail.delivery.stop(10)
    mail.clock.advance(-30 * 24 * 3600)
    mail.delivery = mail.another()
    mail.delivery.start()
    mail.settled(1)


def test_results_that_cannot_be_written_are_kept_and_nothing_is_sent_twice(mail, check, monkeypatch):
    full = Unavailable("database_unavailable", "The disk is full.")
    store = mail.alerts.store
    tries = []

    def failing_store(attempts):
        tries.append(attempts)
        raise full

    monkeypatch.setattr(delivery, "TROUBLE_SECONDS", 0.05)
    monkeypatch.setattr(mail.alerts, "store", failing_store)
    mail.delivery.start()
    mail.record(check, "check.overdue", "check.recovered")
    other = mail.heart.create()
    mail.record(other)
    wait_until(lambda: len(tries) > 2 and len(mail.posted) == 2)
    monkeypatch.setattr(mail.alerts, "store", store)
    mail.settled(3)
    assert mail.states(check) == ["delivered", "delivered"]
    assert len(mail.posted) == 3


def test_while_no_result_can_be_written_the_alerts_of_other_checks_go_out(mail, check, monkeypatch):
    tries = []

    def failing_store(attempts):
        tries.append(attempts)
        raise Unavailable("database_unavailable", "The disk is full.")

    monkeypatch.setattr(delivery, "TROUBLE_SECONDS", 0.05)
    monkeypatch.setattr(mail.alerts, "store", failing_store)
    mail.delivery.start()
    mail.record(check)
    wait_until(lambda: tries)
    mail.record(mail.heart.create())
    wait_until(lambda: len(mail.posted) == 2)


@pytest.mark.parametrize(
    "method",
    [(Alerts, "message"), (PendingAlerts, "after"), (PendingAlerts, "between"), (PendingAlerts, "moves_after")],
)
@pytest.mark.parametrize("error", [Unavailable("x", "It can't be read."), sqlite3.ProgrammingError("broken")])
def test_what_cannot_be_read_is_tried_again(mail, check, monkeypatch, method, error):
    read = getattr(*method)
    errors = [error]

    def failing_read(*arguments):
        if errors:
            raise errors.pop()
        return read(*arguments)

    monkeypatch.setattr(delivery, "TROUBLE_SECONDS", 0.05)
    monkeypatch.setattr(*method, failing_read)
    mail.delivery.start()
    mail.record(check)
    wait_until(lambda: mail.pass_time(1) or mail.delivery.totals()["delivered"])
    assert (mail.states(check), last(mail, check)["attempts"]) == (["delivered"], 1)


def test_where_no_thread_can_start_the_alert_waits(mail, check, monkeypatch, caplog):
    def no_thread(work):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(couriers, "_start_small", no_thread)
    mail.delivery.start()
    mail.record(check)
    wait_until(lambda: "no more threads" in caplog.text)
    monkeypatch.undo()
    wait_until(lambda: mail.pass_time(1) or mail.delivery.totals()["delivered"])


@SQLITE
def test_a_process_that_waits_for_the_lock_of_one_that_does_nothing_is_not_healthy(mail, check, lock_tries, quick_poll):
    with holding(mail.database.path.with_name(DELIVERY_LOCK)):
        mail.delivery.start()
        mail.record(check)
        wait_until(lambda: lock_tries)
        assert mail.delivery.liveness.healthy()
        mail.elapsed.advance(STALLED_SECONDS + 1)
        wait_for_looks(lock_tries, 2)
        assert not mail.delivery.liveness.healthy()
        assert mail.delivery.liveness.reason == liveness.LOCKED_OUT
        assert mail.delivery.liveness.age_seconds() == STALLED_SECONDS + 1
    wait_until(mail.delivery.liveness.healthy)


@SQLITE
def test_a_process_that_waits_for_the_lock_sees_that_the_other_one_works(mail, lock_tries, quick_poll):
    mail.delivery.start()
    wait_until(lambda: lock_tries)
    standby = mail.another()
    standby.start()
    wait_for_looks(lock_tries, 2)
    for _ in range(3):
        mail.elapsed.advance(STALLED_SECONDS - 1)
        wait_until(lambda: standby.liveness.age_seconds() == 0)
    standby.stop(10)


def test_while_the_dispatcher_fails_in_a_loop_it_is_not_healthy(mail, monkeypatch):
    def fail(*_):
        raise MemoryError

    with monkeypatch.context() as patched:
        patched.setattr(delivery, "TROUBLE_SECONDS", 0.01)
        patched.setattr(PendingAlerts, "after", fail)
        mail.delivery.start()
        wait_until(lambda: mail.delivery.liveness.reason == liveness.FAILS)
        mail.elapsed.advance(STALLED_SECONDS + 1)
        assert not mail.delivery.liveness.healthy()
    wait_until(mail.delivery.liveness.healthy)


def test_where_no_thread_can_start_while_alerts_are_due_it_is_not_healthy(mail, check, monkeypatch):
    def no_thread(work):
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(couriers, "_start_small", no_thread)
        mail.delivery.start()
        mail.record(check)
        wait_until(lambda: mail.delivery.liveness.reason == liveness.NO_THREADS)
        mail.elapsed.advance(STALLED_SECONDS + 1)
        assert not mail.delivery.liveness.healthy()
    wait_until(lambda: mail.pass_time(1) or mail.delivery.liveness.healthy())
    wait_until(lambda: mail.pass_time(1) or mail.states(check) == ["delivered"])


def test_receivers_that_are_silent_do_not_make_it_look_stalled(mail):
    mail.held.set()
    for check in [mail.heart.create() for _ in range(5)]:
        mail.record(check)
    mail.delivery.start()
    wait_until(lambda: mail.posted)
    mail.pass_time(10 * STALLED_SECONDS)
    assert mail.delivery.oldest_due_seconds() == 10 * STALLED_SECONDS
    wait_until(mail.delivery.liveness.healthy)


def test_only_an_alert_whose_time_has_come_counts_as_due(mail, check):
    assert mail.delivery.oldest_due_seconds() == 0
    mail.outcomes = [FAILED]
    mail.delivery.start()
    mail.record(check, "check.overdue", "check.recovered")
    mail.settled(1)
    # One waits for its retry, the other behind it.
    mail.clock.advance(4)
    assert mail.delivery.oldest_due_seconds() == 0
    mail.record(dataclasses.replace(check, outage=1), "check.overdue")
    assert mail.delivery.oldest_due_seconds() == 0
    mail.clock.advance(60)
    assert mail.delivery.oldest_due_seconds() > 50


@contextlib.contextmanager
def holding(lock_path):
    """As a process does that has taken the lock and hangs."""
    lock_path.touch()
    with lock_path.open("r+b") as file:
        assert try_lock(file.fileno())
        yield


def wait_for_looks(lock_tries, more):
    """Until the lock was asked for so many times more."""
    count = len(lock_tries) + more
    wait_until(lambda: len(lock_tries) >= count)


@pytest.mark.parametrize(
    ("descriptors", "couriers"), [(400, 100), (1 << 20, COURIERS), (resource.RLIM_INFINITY, COURIERS)]
)
def test_posts_use_a_quarter_of_few_descriptors(monkeypatch, descriptors, couriers):
    monkeypatch.setattr(resource, "getrlimit", lambda _: (descriptors, descriptors))
    assert delivery._courier_limit() == couriers


def end_while_stopping(mail):
    """Let the posts that are held end once a stop has begun; it waits for them."""
    stop = threading.Thread(target=mail.delivery.stop, args=(10,))
    stop.start()
    wait_until(lambda: mail.delivery._dispatcher.couriers._stopping)
    mail.held.clear()
    stop.join()


def patch_url(mail, check, webhook_url):
    checks = Checks(mail.database, mail.clock, mail.alerts, mail.delivery)
    return checks.update(check, mail.heart.settings(check, webhook_url=webhook_url)).wait()


def set_url(mail, check, webhook_url):
    mail.database.write(
        lambda connection: connection.execute("UPDATE checks SET webhook_url = ? WHERE id = ?", (webhook_url, check.id))
    )
