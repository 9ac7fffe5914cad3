"""What a revoked key leaves behind: dead at once, gone in steps that hold nobody up."""

import itertools
import json
import threading

import pytest

from cardbeat.errors import NotFound, Refusal
from cardbeat.heartbeat.checks import Checks
from cardbeat.heartbeat.removal import STEP_ALERTS, STEP_CHECKS, Removal
from tests.heart import HOOK, Heart, at_once
from tests.mail import FAILED, Mail
from tests.postgresql import BOTH_ENGINES, SQLITE
from tests.support import wait_until

TABLES = ("keys", "checks", "alerts")
ROWS_OF_A_CHECK = 3
"""Its own, and two totals."""
MOST_ROWS = ROWS_OF_A_CHECK * STEP_CHECKS + STEP_ALERTS + 1


pytestmark = BOTH_ENGINES


@pytest.fixture
def heart(database, clock):
    return Heart(database, clock)


def add_checks(heart, key, count, alerts_each=0):
    """Give a key many checks at once, each with that many alerts; the ids of the checks."""
    ids = [f"{key.id}-{number}" for number in range(count)]

    def add(connection):
        for check_id in ids:
            connection.execute(
                "INSERT INTO checks (id, api_key_id, name, period_seconds, grace_seconds, webhook_url, clock_from,"
                " created_at, updated_at) VALUES (?, ?, 'job', 60, 0, 'https://hooks.example/x', 1, 1, 1)",
                (check_id, key.id),
            )
            for number in range(alerts_each):
                connection.execute(
                    "INSERT INTO alerts (id, check_id, type, created_at) VALUES (?, ?, 'check.test', 1)",
                    (f"{check_id}-{number}", check_id),
                )

    heart.database.write(add)
    return ids


def count(database):
    """How many rows there are in each of the tables."""
    with database.read() as connection:
        return [connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in TABLES]


def total_changes(connection):
    """How many rows a connection has changed, cascades and triggers included; only SQLite tells."""
    return getattr(connection, "total_changes", 0)


class Watched:
    """A database that notes how many rows each write changed; `between` is called before each."""

    def __init__(self, database, between=lambda: None):
        self.read, self.lock = database.read, database.lock
        self.changed = []
        self._write = database.write
        self._between = between

    def write(self, work):
        def noting(connection):
            before = total_changes(connection)
            result = work(connection)
            self.changed.append(total_changes(connection) - before)
            return result

        self._between()
        return self._write(noting)


@pytest.mark.slow
@SQLITE
def test_60_000_checks_go_in_small_writes_with_anothers_pings_between_them(heart):
    mine, dead = heart.create(), heart.keys.issue("stranger@example.com").wait().key
    add_checks(heart, dead, 60_000, alerts_each=1)
    heart.keys.revoke(dead.id).wait()
    watched = Watched(heart.database, between=lambda: heart.checks.ping(mine.id))
    # Each pause is the shortest.
    Removal(watched, monotonic=lambda: 0.0).finish()
    assert count(heart.database) == [1, 1, 0]
    # Each check with its alert, and at the end the key with its total.
    assert sum(watched.changed) == 60_000 * (ROWS_OF_A_CHECK + 1) + 2
    assert max(watched.changed) <= MOST_ROWS
    assert heart.read(mine).ping_count == len(watched.changed)


@SQLITE
def test_a_check_with_many_alerts_goes_in_small_writes_too(heart):
    dead = heart.keys.issue("stranger@example.com").wait().key
    add_checks(heart, dead, 3, alerts_each=7 * STEP_ALERTS)
    heart.keys.revoke(dead.id).wait()
    watched = Watched(heart.database)
    Removal(watched).finish()
    assert count(heart.database) == [1, 0, 0]
    assert max(watched.changed) <= MOST_ROWS


@pytest.mark.parametrize(("step_seconds", "pause_seconds"), [(2, 6), (5 * 3600, 60)])
def test_between_two_writes_there_is_time_for_others_but_no_long_rest(heart, monkeypatch, step_seconds, pause_seconds):
    dead = heart.keys.issue("stranger@example.com").wait().key
    add_checks(heart, dead, 5 * STEP_CHECKS)
    heart.keys.revoke(dead.id).wait()
    seconds = itertools.count(0, step_seconds)
    removal = Removal(heart.database, lambda: next(seconds))
    waits = []
    monkeypatch.setattr(removal.stopping, "wait", waits.append)
    removal.finish()
    assert waits == [pause_seconds] * 6


def test_all_revoked_keys_go_and_no_other(heart):
    keys = [heart.keys.issue("stranger@example.com").wait().key for _ in range(3)] + [heart.keys.issue().wait().key]
    for key in keys[:3]:
        add_checks(heart, key, 70, alerts_each=2)
    for key in keys[1:]:
        heart.keys.revoke(key.id).wait()
    Removal(heart.database).finish()
    assert {key.id for key in heart.keys.all()} == {heart.key.id, keys[0].id}
    assert count(heart.database) == [2, 70, 140]


def test_two_processes_remove_the_same_without_harm(heart, open_again):
    dead = heart.keys.issue("stranger@example.com").wait().key
    add_checks(heart, dead, 10 * STEP_CHECKS, alerts_each=2)
    mine = heart.create()
    heart.keys.revoke(dead.id).wait()
    second = open_again()
    results = at_once(
        Removal(heart.database).finish, Removal(second).finish, *[lambda: heart.ping(mine)] * 8, Removal(second).finish
    )
    assert not [result for result in results if isinstance(result, Exception)]
    assert count(heart.database) == [1, 1, 0]
    assert heart.read(mine).ping_count == 8


def test_a_revoked_keys_checks_are_never_pinged_added_to_or_alerted_for(heart, clock):
    key = heart.key
    on_time, overdue = heart.create(period_seconds=3600), heart.create()
    heart.pass_time(100)
    heart.sweep.sweep_once()
    assert heart.alert_types(overdue) == ["check.overdue"]
    heart.keys.revoke(key.id).wait()
    for check in (on_time, overdue):
        with pytest.raises(NotFound):
            heart.ping(check)
    with pytest.raises(Refusal) as refused:
        heart.create()
    assert refused.value.status == 401
    heart.pass_time(3600)
    heart.sweep.sweep_once()
    heart.checks.test_alert(key.id, on_time.id).wait()
    assert count(heart.database) == [1, 2, 1]


def test_a_revoked_keys_checks_are_neither_swept_nor_logged_nor_counted(heart, caplog):
    caplog.set_level("INFO")
    dead, heart.key = heart.key, heart.keys.issue("ops@example.com").wait().key
    mine = heart.create()
    heart.key, living = dead, heart.key
    was_overdue, was_on_time = heart.create(period_seconds=1), heart.create()
    heart.pass_time(30)
    assert heart.sweep.sweep_once() == 1
    heart.keys.revoke(dead.id).wait()
    assert heart.checks.totals() == {"on_time": 1, "overdue": 0}
    heart.pass_time(60)
    assert heart.sweep.sweep_once() == 1
    assert [heart.status(check) for check in (was_overdue, was_on_time)] == ["overdue", "on_time"]
    heart.key = living
    assert heart.status(mine) == "overdue"
    assert heart.checks.totals() == {"on_time": 0, "overdue": 1}
    assert [line.partition(" of key ")[0] for line in caplog.messages] == [
        f"check {check.id[:4]}..." for check in (was_overdue, mine)
    ]


def test_an_alert_of_a_revoked_key_that_is_on_its_way_is_not_logged_as_given_up(heart, caplog):
    caplog.set_level("INFO")
    check = heart.create()
    heart.checks.test_alert(heart.key.id, check.id).wait()
    heart.keys.revoke(heart.key.id).wait()
    heart.alerts.store([heart.attempt(1, "failed", 410, "gone", None, HOOK, 0)], int(heart.clock()))
    assert caplog.messages == []


def test_what_waits_for_a_revoked_key_is_not_sent(database, clock):
    mail = Mail(database, clock)
    mail.record(mail.heart.create())
    mail.heart.keys.revoke(mail.heart.key.id).wait()
    living = Checks(database, clock, mail.alerts, mail.delivery)
    mail.heart.key = mail.heart.keys.issue("ops@example.com").wait().key
    check = mail.heart.create(webhook_url="https://hooks.example/living")
    mail.delivery.start()
    living.test_alert(mail.heart.key.id, check.id)
    mail.settled(1)
    mail.delivery.stop(5)
    assert [url for url, _, _ in mail.posted] == ["https://hooks.example/living"]


def test_an_alert_that_waits_for_a_retry_is_not_sent_after_its_key_is_revoked(database, clock):
    mail = Mail(database, clock)
    mail.outcomes = [FAILED]
    mail.delivery.start()
    mail.record(mail.heart.create())
    mail.settled(1)
    # Its checks are not removed yet, and the retry is planned in memory.
    mail.heart.keys.revoke(mail.heart.key.id).wait()
    mail.heart.key = mail.heart.keys.issue("ops@example.com").wait().key
    mail.pass_time(60)
    mail.record(mail.heart.create())
    mail.settled(2)
    mail.delivery.stop(5)
    revoked, *others = [json.loads(body)["data"]["check"]["api_key_id"] for _, _, body in mail.posted]
    assert others == [mail.heart.key.id] != [revoked]


def test_the_thread_takes_up_what_is_left_at_its_start_and_what_it_is_woken_for(heart):
    first, second = (heart.keys.issue("stranger@example.com").wait().key for _ in range(2))
    add_checks(heart, first, 70)
    heart.keys.revoke(first.id).wait()
    removal = Removal(heart.database)
    removal.start()
    wait_until(lambda: count(heart.database) == [2, 0, 0])
    add_checks(heart, second, 70)
    heart.keys.revoke(second.id).wait()
    removal.wake()
    wait_until(lambda: count(heart.database) == [1, 0, 0])
    removal.stop()


def test_a_stop_comes_between_two_steps_and_the_next_start_goes_on(heart):
    dead = heart.keys.issue("stranger@example.com").wait().key
    add_checks(heart, dead, 6 * STEP_CHECKS)
    heart.keys.revoke(dead.id).wait()
    stopped = []
    removal = Removal(Watched(heart.database, between=lambda: stopped or stopped.append(removal.stop(0))))
    removal.finish()
    assert count(heart.database) == [2, 5 * STEP_CHECKS, 0]
    Removal(heart.database).finish()
    assert count(heart.database) == [1, 0, 0]


def test_a_database_that_fails_is_asked_again_later(heart, caplog):
    dead = heart.keys.issue("stranger@example.com").wait().key
    heart.keys.revoke(dead.id).wait()
    healed = threading.Event()

    def fail():
        if not healed.is_set():
            raise OSError("no luck")

    removal = Removal(Watched(heart.database, between=fail), poll_seconds=0.01)
    removal.start()
    wait_until(lambda: caplog.records)
    healed.set()
    wait_until(lambda: count(heart.database) == [1, 0, 0])
    removal.stop()
    assert "no luck" in caplog.text
