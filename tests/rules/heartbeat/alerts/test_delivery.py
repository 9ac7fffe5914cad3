"""Delivery with posts and clocks under control: order, retries, limits, trouble, restarts."""

import contextlib
import math
import threading
import time

import pytest

from cardbeat.config import FREE, UNLIMITED
from cardbeat.errors import Unavailable
from cardbeat.heartbeat.alerts.delivery import RUN
from cardbeat.heartbeat.alerts.limits import (
    EACH,
    FIRST_POSTS,
    FIRST_POSTS_TO_ADDRESS,
    FURTHER_SHARE,
    KEPT_SHARE,
    SENDERS,
)
from cardbeat.heartbeat.alerts.message import Outcome
from cardbeat.heartbeat.alerts.retries import SCHEDULE_SECONDS
from tests.kit.heart import Heart
from tests.kit.lists import each, numbered, times
from tests.kit.mail import FAILED, Mail
from tests.kit.postgresql import BOTH_ENGINES, POSTGRESQL, SQLITE
from tests.kit.support import wait_until

pytestmark = BOTH_ENGINES

OVERDUE, RECOVERED, TEST = (
    "check.overdue",
    "check.recovered",
    "check.test",
)
GONE = Outcome(410, "The receiver answered 410.")
MINUTES = 60


@pytest.fixture
def mail(database, clock):
    mail = Mail(database, clock)
    mail.delivery.start()
    yield mail
    let_go(mail)


@pytest.fixture(params=[FREE])
def limited(request, database, clock):
    """With keys in the tier `free` as it is, or in another one."""
    mail = Mail(database, clock, Heart(database, clock, request.param))
    mail.delivery.start()
    yield mail
    let_go(mail)


def let_go(mail):
    mail.held.clear()
    mail.hung.clear()
    mail.delivery.stop(60)


@pytest.fixture
def check(mail):
    return mail.heart.create()


@pytest.fixture
def refused(mail, check):
    """A check whose overdue alert was refused once, and whose all-clear waits behind it."""
    mail.outcomes = [FAILED]
    mail.flap(check)
    mail.settled(1)
    return check


def attempts(mail, check):
    return each(reversed(mail.outbox.newest(check.id)), "attempts")


def waits_until(mail, check):
    """When the oldest alert of a check is tried next."""
    return mail.outbox.newest(check.id)[-1]["next_attempt_at"]


# One alert.


def test_one_that_is_not_is_tried_ten_times_under_one_id_and_then_failed(
    mail, check, caplog
):
    caplog.set_level("INFO")
    mail.outcomes = [FAILED] * 10
    mail.fail(check)
    for attempt, seconds in enumerate(SCHEDULE_SECONDS, 1):
        mail.settled(attempt)
        assert mail.heart.read(check).delivery == "failing"
        mail.pass_time(seconds - 1)
        assert (
            mail.in_text(1)
            <= waits_until(mail, check)
            <= mail.in_text(math.ceil(1.2 * seconds))
        )
        assert len(mail.posted) == attempt
        mail.pass_time(math.ceil(0.2 * seconds) + 2)
    mail.settled(10)
    assert mail.states(check) == ["failed"]
    assert attempts(mail, check) == [10]
    assert len(set(mail.ids)) == 1
    assert mail.delivery.totals() == {
        "delivered": 0,
        "retried": 9,
        "failed": 1,
    }
    assert [
        line
        for line in caplog.messages
        if "given up" in line and check.id not in line
    ]


def test_410_ends_an_alert_at_once_and_the_next_one_goes(mail, check):
    mail.outcomes = [GONE]
    mail.held.set()
    mail.flap(check)
    mail.held.clear()
    mail.settled(2)
    assert mail.states(check) == ["failed", "delivered"]


def test_retry_after_is_kept_also_against_a_new_alert(mail, check):
    mail.outcomes = [Outcome(503, "The receiver answered 503.", "7200")]
    mail.fail(check)
    mail.settled(1)
    mail.pass_time(30 * MINUTES)
    mail.ping(check)
    assert waits_until(mail, check) == mail.in_text(90 * MINUTES)
    mail.pass_time(90 * MINUTES)
    mail.settled(3)
    assert mail.types == [OVERDUE, OVERDUE, RECOVERED]


# The alerts of one check.


def test_tests_and_outages_do_not_wait_for_each_other(mail, check):
    mail.outcomes = [FAILED]
    mail.test(check)
    mail.settled(1)
    mail.fail(check)
    mail.settled(2)
    assert mail.types == [TEST, OVERDUE]
    assert mail.states(check) == ["pending", "delivered"]


def test_a_delivered_test_lets_the_outage_be_tried_and_a_new_test_the_one_before_it(
    mail, check
):
    mail.outcomes = [FAILED] * 5
    mail.fail(check)
    mail.settled(1)
    mail.pass_time(7)
    mail.settled(2)
    mail.pass_time(37)
    mail.settled(3)
    mail.test(check)
    mail.settled(4)
    mail.pass_time(7)
    mail.settled(5)
    assert mail.states(check) == ["pending", "pending"]
    mail.pass_time(1)
    mail.test(check)
    mail.pass_time(40)
    mail.settled(8)
    assert mail.states(check) == ["delivered"] * 3


def test_a_new_alert_lets_the_one_before_it_be_tried_at_no_cost_to_its_schedule(
    mail, check
):
    mail.outcomes = [FAILED] * 6
    mail.fail(check)
    for attempt, seconds in enumerate((7, 37, 145, 722), 1):
        mail.settled(attempt)
        mail.pass_time(seconds)
    mail.settled(5)
    # The sixth attempt is due in 30 minutes. Now it is due ten minutes after the fifth.
    mail.pass_time(8 * MINUTES)
    mail.ping(check)
    mail.fail(check)
    mail.pass_time(1 * MINUTES)
    assert len(mail.posted) == 5
    mail.pass_time(2 * MINUTES)
    mail.settled(6)
    assert attempts(mail, check) == [5, 0, 0]
    assert (
        mail.in_text(30 * MINUTES)
        <= waits_until(mail, check)
        <= mail.in_text(36 * MINUTES + 1)
    )


def test_outages_behind_20_waiting_alerts_are_counted_for_the_next_that_is_sent(
    mail, refused
):
    mail.flap(refused, 39)
    assert len(mail.states(refused)) == 20
    mail.fail(refused)
    mail.pass_time(7)
    mail.settled(22)
    mail.ping(refused)
    mail.settled(23)
    told = mail.told[1:]
    assert each(told, "type") == [OVERDUE, RECOVERED] * 11
    assert [body["data"].get("outages") for body in told] == [
        30,
        *[None] * 21,
    ]


def test_outages_that_end_while_the_first_alert_is_posted_are_told_with_the_one_after_it(
    mail, check
):
    mail.held.set()
    mail.flap(check)
    wait_until(lambda: mail.running == 1)
    mail.flap(check, 12)
    mail.held.clear()
    mail.settled(20)
    assert [body["data"].get("outages") for body in mail.told] == [
        None,
        3,
        *[None] * 18,
    ]


def test_only_the_newest_100_alerts_are_kept(mail, check):
    for count in range(0, 110, 5):
        mail.test(check, 5)
        mail.settled(count + 5)
    assert mail.states(check) == ["delivered"] * 100
    with mail.database.read() as connection:
        assert (
            connection.execute("SELECT count(*) FROM alerts").fetchone()[
                0
            ]
            == 100
        )


# Changes of the check.


def patched(mail, check, **changes):
    check = mail.heart.read(check)
    updated = mail.heart.checks.update(
        check, mail.heart.settings(check, **changes)
    )
    mail.delivery.wake()
    return updated


def test_a_new_url_gets_what_waits_at_once_and_in_order(mail, refused):
    updated = patched(
        mail, refused, webhook_url="https://other.example/y"
    )
    assert updated.delivery is None
    mail.settled(3)
    assert mail.hosts == [
        "hooks.example",
        "other.example",
        "other.example",
    ]
    assert mail.types == [OVERDUE, OVERDUE, RECOVERED]
    assert attempts(mail, refused) == [2, 1]


@pytest.mark.parametrize("outcome", [GONE, FAILED])
def test_a_failure_at_the_url_before_ends_nothing_at_the_new_one(
    mail, check, outcome
):
    mail.outcomes = [outcome]
    mail.held.set()
    mail.fail(check)
    wait_until(lambda: mail.running == 1)
    patched(mail, check, webhook_url="https://other.example/y")
    mail.held.clear()
    mail.settled(1)
    assert mail.hosts[-1] == "other.example"
    assert mail.states(check) == ["delivered"]
    assert mail.heart.read(check).delivery == "ok"


def test_without_a_url_what_waits_has_failed_and_nothing_is_stored(
    mail, refused
):
    patched(mail, refused, webhook_url=None)
    mail.flap(refused)
    ended = [
        (alert["state"], alert["last_error"])
        for alert in mail.outbox.newest(refused.id)
    ]
    assert ended == [("failed", "The webhook URL was removed.")] * 2
    patched(mail, refused, webhook_url="https://other.example/y")
    mail.fail(refused)
    mail.settled(2)
    assert mail.types == [OVERDUE, OVERDUE]


def test_a_deleted_check_and_a_revoked_key_get_no_more_posts(mail, check):
    other = mail.heart.create(
        key=mail.heart.keys.issue("other@example.com").key
    )
    mail.outcomes = [FAILED, FAILED]
    for one in (check, other):
        mail.fail(one)
    mail.settled(2)
    mail.heart.checks.delete(mail.heart.key.id, check.id)
    mail.heart.keys.revoke(other.api_key_id)
    mail.pass_time(3600)
    mail.test(
        mail.heart.create(
            key=mail.heart.keys.issue("third@example.com").key
        )
    )
    mail.settled(3)
    assert mail.types == [OVERDUE, OVERDUE, TEST]


# Several keys and receivers.


@contextlib.contextmanager
def paused(mail, **options):
    """What is done here waits for a new process, whose posts are held."""
    assert mail.delivery.stop(60)
    yield
    mail.held.set()
    mail.most_running = 0
    mail.delivery = mail.another(**options)
    mail.delivery.start()


def key_with(mail, *hosts, each=1):
    """Checks of a new key, so many for each host."""
    key = mail.heart.keys.issue("x@example.com").key
    urls = [f"https://{host}/x" for host in hosts for _ in range(each)]
    return [mail.heart.create(webhook_url=url, key=key) for url in urls]


def keys_with(mail, hosts, number):
    """Checks of new keys, each with so many of the hosts."""
    checks = []
    for place in range(0, len(hosts), number):
        checks += key_with(mail, *hosts[place : place + number])
    return checks


def test_at_most_four_posts_run_at_one_host_and_one_until_it_has_answered(
    mail,
):
    number = (EACH + 1) * RUN
    checks = key_with(mail, "a.example", each=number)
    with paused(mail):
        for check in checks:
            mail.fail(check)
    wait_until(lambda: mail.running == 1)
    mail.held.clear()
    mail.settled(number)
    assert mail.most_running < EACH
    # All have had their last alert taken.
    with paused(mail):
        for check in checks:
            mail.ping(check)
    wait_until(lambda: mail.running == EACH)
    mail.held.clear()
    mail.settled(number)
    assert mail.most_running == EACH


def test_of_four_places_at_a_host_or_address_one_is_kept_for_checks_whose_last_alert_was_taken(
    mail,
):
    (known,) = key_with(mail, "known.example")
    mail.fail(known)
    mail.settled(1)
    mail.addresses = {
        f"{number}.example": "crowd" for number in range(9)
    } | {"known.example": "crowd"}
    mail.hung = set(numbered("{}.example", 9))
    for number in range(9):
        (check,) = key_with(mail, f"{number}.example")
        mail.fail(check)
    wait_until(lambda: mail.running == EACH - 1)
    mail.ping(known)
    mail.settled(2)
    assert mail.types[-1] == RECOVERED
    assert mail.running == EACH - 1


def test_hung_receivers_of_many_keys_leave_senders_for_others(mail):
    (known,) = key_with(mail, "known.example")
    mail.fail(known)
    mail.settled(1)
    hosts = numbered("{}.hung.example", 28 * 5)
    mail.hung = set(hosts)
    with paused(mail):
        for check in keys_with(mail, hosts, 5):
            mail.fail(check)
    mail.held.clear()
    new = SENDERS - SENDERS // KEPT_SHARE
    wait_until(lambda: mail.running >= new - new // 28)
    assert mail.running < new
    (stranger,) = key_with(mail, "new.example")
    before = len(mail.hosts)
    mail.fail(stranger)
    mail.ping(known)
    mail.settled(2)
    assert {"new.example", "known.example"} <= set(mail.hosts[before:])


def test_a_host_that_was_silent_to_one_key_keeps_its_places_for_others(
    mail,
):
    checks = keys_with(mail, ["a.example"] * (EACH + 2), 1)
    mail.fail(checks[0])
    mail.settled(1)
    mail.silent = {"a.example"}
    mail.fail(checks[1])
    mail.settled(2)
    mail.hung = {"a.example"}
    for check in checks[2:]:
        mail.fail(check)
    wait_until(lambda: mail.running == EACH - 1)


@SQLITE
def test_a_hundred_limited_keys_whose_receivers_answered_before_leave_senders_for_others(
    limited,
):
    hosts = numbered("{}.example", 300)
    checks = keys_with(limited, hosts, 3)
    known = limited.heart.create()
    for check in [*checks, known]:
        limited.fail(check)
    limited.settled(301)
    limited.hung = set(hosts)
    for check in checks:
        limited.ping(check)
    wait_until(lambda: limited.running == 100 + SENDERS // FURTHER_SHARE)
    limited.ping(known)
    limited.settled(302)


@SQLITE
@pytest.mark.parametrize("limited", [FREE, UNLIMITED], indirect=True)
def test_one_key_gets_half_of_the_senders(limited):
    hosts = numbered("{}.hung.example", 100)
    limited.hung = set(hosts)
    for check in key_with(limited, *hosts):
        limited.fail(check)
    wait_until(lambda: limited.running == SENDERS // 2)


def test_keys_take_turns(mail):
    many = key_with(mail, "a.example", each=20)
    (one,) = key_with(mail, "b.example")
    for check in many:
        mail.test(check)
    wait_until(lambda: len(mail.posted) == 20)
    mail.held.set()
    for check in [*many, one]:
        mail.test(check)
    wait_until(lambda: "b.example" in mail.hosts)


@SQLITE
def test_the_look_for_keys_with_due_alerts_takes_no_longer_with_more_alerts(
    mail,
):
    """Else 100 keys with 100 alerts each keep the delivery from all posts."""
    work = []
    mail.delivery.stop(60)
    for checks in (1, 30):
        for number in range(20):
            for check in key_with(mail, f"{number}.example", each=checks):
                mail.test(check)
        steps = []

        def look(transaction, steps=steps):
            transaction.set_progress_handler(lambda: steps.append(1), 10)
            assert mail.outbox.queues(transaction)
            transaction.set_progress_handler(None, 0)

        mail.database.write(look)
        work.append(len(steps))
    assert work[1] < 4 * work[0]


@SQLITE
@pytest.mark.parametrize("limited", [UNLIMITED], indirect=True)
def test_an_unlimited_key_has_no_limit_of_first_posts(limited):
    for _ in range(FIRST_POSTS // 2 + 10):
        limited.flap(limited.heart.create())
    limited.settled(FIRST_POSTS + 20)


@SQLITE
def test_a_limited_key_begins_so_many_alerts_in_an_hour(limited):
    checks = times(100, limited.heart.create)
    for _ in range(3):
        for check in checks:
            limited.flap(check)
    limited.settled(FIRST_POSTS)
    limited.pass_time(30 * MINUTES)
    assert len(limited.posted) == FIRST_POSTS
    limited.pass_time(31 * MINUTES)
    limited.settled(2 * FIRST_POSTS)
    assert len(limited.posted) == 2 * FIRST_POSTS


@pytest.mark.slow
@SQLITE
def test_an_address_gets_so_many_first_posts_an_hour_of_limited_keys_whose_alerts_it_does_not_take(
    limited,
):
    posted = 0
    for number in range(9):
        host = f"{number}.example"
        limited.addresses[host] = "victim"
        checks = key_with(limited, host, each=100)
        limited.outcomes = [FAILED] * 1000
        for check in checks:
            limited.fail(check)
        posted = min(posted + 100, FIRST_POSTS_TO_ADDRESS)
        limited.settled(posted)
    assert len(limited.posted) == FIRST_POSTS_TO_ADDRESS
    assert len(set(limited.ids)) == FIRST_POSTS_TO_ADDRESS
    # Retries go on.
    limited.pass_time(7)
    limited.settled(2 * FIRST_POSTS_TO_ADDRESS)
    assert len(set(limited.ids)) == FIRST_POSTS_TO_ADDRESS


@pytest.mark.slow
@SQLITE
def test_no_pause_is_as_long_as_a_look_that_a_suspension_made_long(
    mail, check
):
    look = mail.outbox.queues

    def slow_look(connection):
        mail.outbox.queues = look
        time.sleep(7)
        return look(connection)

    mail.outbox.queues = slow_look
    mail.fail(check)
    mail.settled(1)


def test_a_receiver_that_was_silent_gets_the_next_try_when_the_history_says(
    mail, check
):
    mail.silent = {"hooks.example"}
    mail.fail(check)
    mail.settled(1)
    mail.silent.clear()
    assert waits_until(mail, check) <= mail.in_text(6)
    mail.pass_time(6)
    mail.settled(2)
    assert mail.states(check) == ["delivered"]


def test_silent_receivers_that_are_more_than_the_senders_wait_for_the_others_of_their_key(
    mail,
):
    dead = numbered("a{}.example", 12)
    mail.silent = set(dead)
    with paused(mail, senders=4):
        for check in key_with(mail, *dead, "b.example", each=3):
            mail.fail(check)
    mail.held.clear()
    wait_until(lambda: "b.example" in mail.hosts)
    before = mail.hosts[: mail.hosts.index("b.example")]
    assert len(before) < 2 * len(dead)


# Trouble.


def test_after_a_restart_what_waits_goes_on(mail, refused):
    assert mail.delivery.stop(60)
    mail.delivery = mail.another()
    mail.pass_time(7)
    mail.delivery.start()
    mail.settled(2)
    assert mail.types == [OVERDUE, OVERDUE, RECOVERED]
    assert len(set(mail.ids)) == 2


def test_a_stop_waits_for_the_posts_that_run_and_begins_no_others(
    mail, check
):
    mail.held.set()
    mail.flap(check)
    wait_until(lambda: mail.running == 1)
    mail.delivery.begin_stop()
    mail.held.clear()
    assert mail.delivery.stop(60)
    assert mail.states(check) == ["delivered", "pending"]
    assert len(mail.posted) == 1


@POSTGRESQL
def test_of_two_processes_one_posts(mail, check, open_again, clock):
    mail.test(check)
    mail.settled(1)
    other = Mail(open_again(), clock)
    other.delivery.start()
    for _ in range(5):
        mail.flap(check)
        other.delivery.wake()
    wait_until(lambda: mail.states(check) == ["delivered"] * 11)
    assert len(mail.posted) == 11
    assert other.posted == []
    assert mail.delivery.stop(60)
    mail.flap(check)
    other.delivery.wake()
    wait_until(lambda: mail.states(check) == ["delivered"] * 13)
    assert len(other.posted) == 2
    assert other.delivery.stop(60)


def test_a_result_that_can_not_be_stored_is_stored_later_and_nothing_is_posted_twice(
    mail, check, monkeypatch
):
    write = mail.database.write
    fails = threading.Event()

    def refuse(*arguments, **options):
        if fails.is_set() and threading.current_thread().name == "alerts":
            raise Unavailable("database_unavailable")
        return write(*arguments, **options)

    monkeypatch.setattr(mail.database, "write", refuse)
    mail.held.set()
    mail.flap(check)
    wait_until(lambda: mail.running == 1)
    fails.set()
    mail.held.clear()
    wait_until(lambda: mail.running == 0)
    for _ in range(3):
        mail.delivery.wake()
    assert mail.states(check) == ["pending", "pending"]
    fails.clear()
    mail.settled(2)
    assert mail.types == [OVERDUE, RECOVERED]


def test_a_defect_in_a_post_is_a_failed_attempt_and_its_trace_has_no_secret(
    mail, caplog
):
    check = mail.heart.create(
        webhook_url="https://hooks.example/very-secret-path"
    )
    mail.outcomes = [
        RuntimeError("https://hooks.example/very-secret-path")
    ]
    mail.fail(check)
    mail.settled(1)
    assert "log says why" in mail.outbox.newest(check.id)[0]["last_error"]
    assert "RuntimeError" in caplog.text
    assert "very-secret-path" not in caplog.text


def test_the_time_of_the_oldest_due_alert(mail, check):
    assert mail.delivery.oldest_due_seconds() == 0
    mail.outcomes = [FAILED]
    mail.held.set()
    mail.fail(check)
    mail.clock.advance(90)
    assert mail.delivery.oldest_due_seconds() == 90
    mail.held.clear()
    mail.settled(1)
    assert mail.delivery.oldest_due_seconds() == 0


def test_an_alert_without_a_time_is_found(mail, refused):
    mail.database.write(
        lambda transaction: transaction.execute(
            "UPDATE alerts SET next_attempt_at = NULL"
        )
    )
    mail.pass_time(601)
    mail.settled(3)
    assert mail.states(refused) == ["delivered"] * 2
