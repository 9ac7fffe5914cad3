"""Delivery with posts and clocks under control: order, retries, trouble, restarts."""

import errno
import gc
import json
import math
import os
import sqlite3
import threading
import time
from unittest.mock import Mock

import pytest

from cardbeat.database.sqlite import lock_file
from cardbeat.database.sqlite.database import DELIVERY_LOCK
from cardbeat.errors import Unavailable
from cardbeat.heartbeat.checks import Checks
from cardbeat.heartbeat.delivery import couriers, delivery
from cardbeat.heartbeat.delivery.dispatcher import EXTRA_SECONDS
from cardbeat.heartbeat.delivery.lanes import CheckQueue
from cardbeat.heartbeat.delivery.retries import SCHEDULE_SECONDS
from cardbeat.heartbeat.outbox.alert import Outcome, signed_headers
from cardbeat.heartbeat.outbox.alerts import Alerts
from cardbeat.heartbeat.outbox.pending import PAGE, PendingAlerts
from cardbeat.keys.webhook_secrets import OLD_SECRET_SECONDS, WebhookSecrets
from tests.heart import HOOK
from tests.mail import DELIVERED, FAILED, Mail
from tests.postgresql import BOTH_ENGINES, SQLITE
from tests.support import wait_until
from tests.systems import LIMITS, UNLIMITED

pytestmark = BOTH_ENGINES

HOSTS = 50


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
def lock_tries(monkeypatch, tmp_path):
    """The result of each try to take the lease's lock, by any process."""
    taken, tries = lock_file.try_lock, []

    def noted(descriptor):
        result = taken(descriptor)
        if is_of_the_lease(descriptor, tmp_path):
            tries.append(result)
        return result

    monkeypatch.setattr(lock_file, "try_lock", noted)
    return tries


def is_of_the_lease(descriptor, folder):
    """Whether an open lock file is that of the lease, not that of the writers."""
    path = folder / DELIVERY_LOCK
    return path.exists() and os.path.samestat(os.fstat(descriptor), path.stat())


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
    # As after a lost answer: receivers know the second.
    assert signers(mail, check, first, second, third, fourth) == [fourth, second]


def signers(mail, check, *secrets):
    """Those of the secrets by which the next alert is signed, in the order of its signatures."""
    count = len(mail.posted) + 1  # before the alert is recorded: it may be posted at once
    mail.record(check)
    mail.settled(count)
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


def test_an_overdue_alert_from_before_a_snooze_is_still_tried_during_it(mail, check):
    mail.outcomes = [FAILED]
    mail.delivery.start()
    mail.record(check, "check.overdue")
    mail.settled(1)
    mail.heart.checks.snooze(mail.heart.key.id, check.id, 3600).wait()
    mail.record(check, "check.recovered")
    mail.pass_time(1.2 * SCHEDULE_SECONDS[0])
    mail.settled(3)
    assert mail.states(check) == ["delivered", "delivered"]


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
    mail.record(check._replace(outage=1), "check.overdue")
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
    # Once more if a round was reading as the clock went on.
    wait_until(lambda: mail.elapsed.advance(delivery.POLL_SECONDS) or sum(mail.delivery.totals().values()) >= 3)
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


def fail_until_it_waits(mail, check, seconds, outcome=FAILED):
    """Its outage waits for so many seconds after the last try, and at most 20 % longer."""
    tries = SCHEDULE_SECONDS.index(seconds) + 1
    mail.outcomes = [outcome] * tries
    mail.delivery.start()
    mail.record(check, "check.overdue")
    for made, passed in enumerate(SCHEDULE_SECONDS[:tries], 1):
        mail.settled(made)
        if made < tries:
            mail.pass_time(1.2 * max(passed, int(outcome.retry_after or 0)))
    return tries


def test_a_new_alert_lets_the_one_before_it_be_tried_at_once_as_its_receiver_may_be_back(mail, check):
    tries = fail_until_it_waits(mail, check, 14 * 3600)
    mail.pass_time(1)
    mail.record(check, "check.recovered")
    mail.settled(tries + 2)
    assert mail.states(check) == ["delivered", "delivered"]
    assert [alert["attempts"] for alert in mail.alerts.newest(check.id)] == [1, tries + 1]


@pytest.mark.parametrize("seconds", [10 * 60, 14 * 3600])
@pytest.mark.parametrize("status", [503, None])
def test_a_try_before_its_time_that_fails_leaves_the_schedule_and_is_not_soon_made_again(mail, check, seconds, status):
    """The shorter wait is in memory, the longer is left in the database. The last try of all is never an extra one."""
    tries = fail_until_it_waits(mail, check, seconds)
    (before,) = mail.alerts.newest(check.id)
    mail.outcomes = [Outcome(status, "failed")]
    mail.record(check, "check.recovered")
    mail.settled(tries + 1)
    other = mail.heart.create()
    mail.record(check._replace(outage=1), "check.overdue")
    mail.record(other)
    mail.settled(tries + 2)
    assert mail.states(other) == ["delivered"]
    *waiting, oldest = mail.alerts.newest(check.id)
    assert oldest == before | {"last_status": status or 500, "last_error": "failed"}
    assert [alert["state"] for alert in waiting] == ["pending"] * 2
    # The next try is made once, and counts.
    mail.outcomes = [FAILED]
    mail.pass_time(1.2 * seconds)
    is_last = tries == len(SCHEDULE_SECONDS)
    mail.settled(tries + (5 if is_last else 3))
    assert mail.states(check) == (["failed", "delivered", "delivered"] if is_last else ["pending"] * 3)
    assert mail.alerts.newest(check.id)[-1]["attempts"] == tries + 1


def test_a_start_tries_what_others_wait_behind_at_once(mail, check):
    """A killed process may have had no time to do so after the last alert."""
    fail_until_it_waits(mail, check, 14 * 3600)
    mail.delivery.stop(10)
    mail.record(check, "check.recovered")
    mail.delivery = mail.another()
    mail.delivery.start()
    mail.settled(2)
    assert mail.states(check) == ["delivered", "delivered"]


def test_an_extra_try_that_meets_trouble_is_made_again(mail, check):
    """Such as a database that can't be read, or no free descriptor."""
    tries = fail_until_it_waits(mail, check, 14 * 3600)
    mail.outcomes = [Unavailable("database_unavailable")]
    mail.record(check, "check.recovered")
    wait_until(lambda: len(mail.posted) == tries + 1)
    wait_until(lambda: mail.elapsed.advance(0.01) or sum(mail.delivery.totals().values()) == tries + 2)
    assert mail.states(check) == ["delivered", "delivered"]


def test_ten_minutes_after_an_extra_try_there_may_be_another(mail, check):
    tries = fail_until_it_waits(mail, check, 14 * 3600)
    mail.outcomes = [FAILED]
    mail.record(check, "check.recovered")
    mail.settled(tries + 1)
    mail.pass_time(EXTRA_SECONDS)
    mail.record(check._replace(outage=1), "check.overdue")
    mail.settled(tries + 4)
    assert mail.states(check) == ["delivered"] * 3
    assert [alert["attempts"] for alert in mail.alerts.newest(check.id)] == [1, 1, tries + 1]


def test_what_a_receiver_has_asked_to_wait_is_not_tried_earlier(mail, check):
    """Also where the schedule's wait is longer."""
    fail_until_it_waits(mail, check, 2 * 3600, Outcome(500, "The receiver answered 500.", "3600"))
    tries, until = len(mail.posted), mail.in_text(3600)
    assert last(mail, check)["last_error"] == f"The receiver answered 500. It asked to wait until {until}."
    mail.pass_time(3599)
    mail.record(check, "check.recovered")
    mail.record(mail.heart.create())
    mail.settled(tries + 1)
    assert mail.states(check) == ["pending", "pending"]
    mail.pass_time(2)
    mail.record(check._replace(outage=1), "check.overdue")
    mail.settled(tries + 4)
    assert mail.states(check) == ["delivered"] * 3


@pytest.mark.parametrize(("retry_after", "asked"), [("900", 0), ("86400", 86400)])
def test_what_a_receiver_asks_for_at_an_extra_try_is_kept_and_costs_no_try(mail, check, retry_after, asked):
    tries = fail_until_it_waits(mail, check, 14 * 3600)
    planned = last(mail, check)["next_attempt_at"]
    mail.outcomes = [Outcome(503, "The receiver answered 503.", retry_after)]
    mail.record(check, "check.recovered")
    mail.settled(tries + 1)
    assert last(mail, check)["attempts"] == tries
    assert last(mail, check)["next_attempt_at"] == max(planned, mail.in_text(asked))
    mail.pass_time(EXTRA_SECONDS)
    mail.record(check._replace(outage=1), "check.overdue")
    mail.record(mail.heart.create())
    mail.settled(tries + 2)
    assert mail.states(check) == ["pending"] * 3


def test_an_extra_try_that_fails_does_not_undo_what_a_delivered_test_has_hurried(mail, check):
    tries = fail_until_it_waits(mail, check, 14 * 3600)
    mail.held.set()
    mail.outcomes = [FAILED, DELIVERED]
    mail.record(check, "check.recovered")
    wait_until(lambda: len(mail.posted) == tries + 1)
    (waiting,) = [alert["id"] for alert in mail.alerts.newest(check.id) if alert["attempts"]]
    hurry = "UPDATE alerts SET next_attempt_at = ? WHERE id = ?"
    mail.database.write(lambda transaction: transaction.execute(hurry, (int(mail.clock()), waiting)))
    mail.held.clear()
    mail.settled(tries + 3)
    assert mail.states(check) == ["delivered", "delivered"]


def test_an_extra_try_that_is_answered_410_ends_the_alert(mail, check):
    tries = fail_until_it_waits(mail, check, 14 * 3600)
    mail.outcomes = [Outcome(410, "The receiver answered 410.")]
    mail.record(check, "check.recovered")
    mail.settled(tries + 2)
    assert mail.states(check) == ["failed", "delivered"]


@pytest.mark.parametrize("retry_after", [None, "86400"])
def test_a_delivered_test_lets_the_outage_that_waits_for_a_retry_go_out_at_once(mail, check, retry_after):
    """Only its receiver may have been repaired. The longer wait is left in the database, the other is in memory."""
    other = mail.heart.create()
    mail.outcomes = [Outcome(503, "busy", retry_after)] * 2
    mail.delivery.start()
    mail.record(other, "check.overdue")
    mail.record(check, "check.overdue", "check.recovered")
    mail.settled(2)
    mail.outcomes = [FAILED]
    mail.record(check, "check.test")
    mail.settled(3)
    assert [alert["attempts"] for alert in mail.alerts.newest(check.id)] == [1, 0, 1]
    mail.record(check, "check.test")
    # Moves are read every moment of the clock that only the test moves.
    wait_until(lambda: mail.elapsed.advance(0.01) or sum(mail.delivery.totals().values()) >= 7)
    assert mail.states(check) == ["delivered"] * 4
    assert [alert["attempts"] for alert in mail.alerts.newest(check.id)] == [1, 2, 1, 2]
    assert [alert["attempts"] for alert in mail.alerts.newest(other.id)] == [1]


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
    for days in range(1, 4):
        mail.pass_time(24 * 3600)
        mail.record(mail.heart.create())
        mail.settled(1 + days)
        assert (last(mail, check)["state"], last(mail, check)["attempts"]) == ("pending", 1)
    give_url(mail, check, "https://new.example/x")
    mail.settled(5)
    assert (last(mail, check)["state"], last(mail, check)["attempts"]) == ("delivered", 2)
    assert [url for url, _, _ in mail.posted] == [HOOK] * 4 + ["https://new.example/x"]


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


def test_a_url_that_comes_back_while_a_courier_finds_none_is_gone_to_at_once(mail, check, monkeypatch):
    message, moves_after, moves = mail.alerts.message, PendingAlerts.moves_after, []

    def message_of_a_check_without_a_url(seq, now):
        mail.alerts.message = message
        give_url(mail, check, None)
        found = message(seq, now)
        give_url(mail, check, "https://new.example/x")
        wait_until(lambda: len(moves) > 0)
        return found

    monkeypatch.setattr(PendingAlerts, "moves_after", lambda *of: moves.extend(found := moves_after(*of)) or found)
    mail.alerts.message = message_of_a_check_without_a_url
    mail.delivery.start()
    mail.record(check)
    mail.settled(1)
    assert [url for url, _, _ in mail.posted] == ["https://new.example/x"]


def test_what_stands_in_line_for_a_silent_host_goes_to_another_at_once(mail):
    checks = [mail.heart.create(webhook_url="https://silent.example/x") for _ in range(3)]
    mail.held.set()
    mail.delivery.start()
    for check in checks:
        mail.record(check)
    # Behind them: once it is posted, they are in line.
    mail.record(mail.heart.create())
    wait_until(lambda: len(mail.posted) == 2)
    posted = {url for url, _, _ in mail.posted}
    assert posted == {"https://silent.example/x", HOOK}
    names = [body for url, _, body in mail.posted if url != HOOK]
    moved = next(check for check in checks if check.id.encode() not in names[0])
    give_url(mail, moved, "https://new.example/x")
    wait_until(lambda: mail.posted[-1][0] == "https://new.example/x")
    mail.held.clear()
    mail.settled(4)
    assert [mail.states(check) for check in checks] == [["delivered"]] * 3
    assert len(mail.posted) == 4


@pytest.mark.parametrize("is_gone", [False, True])
def test_what_waits_long_is_left_in_the_database(mail, check, is_gone):
    mail.outcomes = [Outcome(503, "The receiver answered 503.", "86400")]
    mail.delivery.start()
    mail.record(check)
    mail.settled(1)
    wait_until(lambda: queues_in_memory(mail) == 0)
    if is_gone:
        mail.heart.checks.delete(mail.heart.key.id, check.id).wait()
    for _ in range(24):
        mail.pass_time(3600)
        mail.record(mail.heart.create())
    mail.pass_time(1)
    mail.settled(25 if is_gone else 26)
    assert len(mail.posted) == (25 if is_gone else 26)
    wait_until(lambda: queues_in_memory(mail) == 0)


def queues_in_memory(mail):
    gc.collect()
    return sum(isinstance(one, CheckQueue) and one.key == mail.heart.key.id for one in gc.get_objects())


def test_beside_thousands_of_one_key_whose_receivers_are_silent_the_alerts_of_another_go_out(mail):
    """Those that were stored just before a start, and while the thousands are read."""
    stranger = mail.heart.keys.issue("stranger@example.com").wait().key
    checks = [mail.heart.create(webhook_url=f"https://good-{number}.example/x") for number in range(3)]
    mail.database.write(lambda connection: insert_due(connection, stranger.id, 6 * PAGE))
    mail.record(checks[0])
    mail.held.set()
    mail.delivery.start()
    for number, check in enumerate(checks):
        wait_until(lambda check=check: check.webhook_url in [url for url, _, _ in mail.posted])
        assert len(mail.posted) <= HOSTS + number + 1
        if number < 2:
            mail.record(checks[number + 1])


def insert_due(connection, key_id, count):
    """So many checks of a key at `HOSTS` hosts, each with an alert that is due."""
    for number in range(count):
        url = f"https://h{number % HOSTS}.example/x"
        connection.execute(
            "INSERT INTO checks (id, api_key_id, name, period_seconds, grace_seconds, webhook_url, clock_from,"
            " created_at, updated_at) VALUES (?, ?, 'x', 60, 0, ?, 0, 0, 0)",
            (f"check {number}", key_id, url),
        )
    connection.execute(
        "INSERT INTO alerts (id, check_id, type, outage, deadline_at, created_at, next_attempt_at)"
        " SELECT 'msg ' || id, id, 'check.overdue', 1, 0, 0, 0 FROM checks WHERE api_key_id = ?",
        (key_id,),
    )


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
    shown = f"{caplog.text} {mail.alerts.newest(check.id)}"
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
def test_a_lock_that_can_not_be_asked_for_is_told_and_tried_again(mail, check, monkeypatch, caplog, tmp_path):
    refusals = [OSError(errno.ENOLCK, "No locks available")] * 2
    taken = lock_file.try_lock

    def refuse_first(descriptor):
        if refusals and is_of_the_lease(descriptor, tmp_path):
            raise refusals.pop()
        return taken(descriptor)

    monkeypatch.setattr(lock_file, "try_lock", refuse_first)
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
    mail.delivery = mail.another(trouble_seconds=delivery.TROUBLE_SECONDS)
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

    def failing_store(attempts, _):
        tries.append(attempts)
        raise full

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

    def failing_store(attempts, _):
        tries.append(attempts)
        raise Unavailable("database_unavailable", "The disk is full.")

    monkeypatch.setattr(mail.alerts, "store", failing_store)
    mail.delivery.start()
    mail.record(check)
    wait_until(lambda: tries)
    mail.record(mail.heart.create())
    wait_until(lambda: len(mail.posted) == 2)
    # Else the stop waits for its whole time.
    monkeypatch.undo()


@pytest.mark.parametrize(
    "method",
    [(Alerts, "message"), (PendingAlerts, "after"), (PendingAlerts, "of_checks"), (PendingAlerts, "moves_after")],
)
@pytest.mark.parametrize(
    "error", [Unavailable("database_unavailable", "It can't be read."), sqlite3.ProgrammingError("broken")]
)
def test_what_cannot_be_read_is_tried_again(mail, check, monkeypatch, method, error):
    read = getattr(*method)
    errors = [error]

    def failing_read(*arguments):
        if errors:
            raise errors.pop()
        return read(*arguments)

    monkeypatch.setattr(*method, failing_read)
    mail.delivery.start()
    mail.record(check, "check.overdue", "check.recovered")
    wait_until(lambda: mail.pass_time(1) or mail.delivery.totals()["delivered"] == 2)
    assert [(it["state"], it["attempts"]) for it in mail.alerts.newest(check.id)] == [("delivered", 1)] * 2


def test_where_no_thread_can_start_the_alert_waits(mail, check, monkeypatch, caplog):
    mail.delivery.start()
    monkeypatch.setattr(threading.Thread, "start", Mock(side_effect=RuntimeError("can't start new thread")))
    mail.record(check)
    wait_until(lambda: "no more threads" in caplog.text)
    monkeypatch.undo()
    wait_until(lambda: mail.pass_time(1) or mail.delivery.totals()["delivered"])


def test_no_error_ends_the_thread_that_delivers(mail, check, monkeypatch):
    """Not even one that can't be logged."""
    failed = []

    def fail(*_, **__):
        failed.append(1)
        raise MemoryError

    with monkeypatch.context() as patched:
        patched.setattr(PendingAlerts, "after", fail)
        patched.setattr(couriers.log, "exception", fail)
        mail.record(check)
        mail.delivery.start()
        wait_until(lambda: len(failed) > 4)
    mail.settled(1)
    assert mail.states(check) == ["delivered"]


def test_an_alert_that_is_being_posted_counts_as_due(mail, check):
    mail.held.set()
    mail.record(check)
    mail.delivery.start()
    wait_until(lambda: mail.posted)
    mail.pass_time(3000)
    assert mail.delivery.oldest_due_seconds() == 3000


def test_only_an_alert_whose_time_has_come_counts_as_due(mail, check):
    assert mail.delivery.oldest_due_seconds() == 0
    mail.outcomes = [FAILED]
    mail.delivery.start()
    mail.record(check, "check.overdue", "check.recovered")
    mail.settled(1)
    # One waits for its retry, the other behind it.
    mail.clock.advance(4)
    assert mail.delivery.oldest_due_seconds() == 0
    mail.record(check._replace(outage=1), "check.overdue")
    assert mail.delivery.oldest_due_seconds() == 0
    mail.clock.advance(60)
    assert mail.delivery.oldest_due_seconds() > 50


@LIMITS
@pytest.mark.parametrize(("descriptors", "couriers"), [(400, 68), (1 << 20, 512), (UNLIMITED, 512)])
def test_posts_use_their_share_of_few_descriptors(mail, monkeypatch, descriptors, couriers):
    monkeypatch.setattr("resource.getrlimit", lambda _: (descriptors, descriptors))
    assert mail.another()._dispatcher.couriers._lanes._couriers == couriers


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
