"""What goes: revoked keys with all they have, in short steps; unused keys; old secrets."""

import pytest

from cardbeat.errors import Refusal, Unavailable
from cardbeat.heartbeat.checks import count_by_key
from cardbeat.heartbeat.tidy import (
    DAY_SECONDS,
    STEP_CHECKS,
    UNUSED_DAYS,
    Tidy,
)
from cardbeat.heartbeat.transitions import record
from cardbeat.keys.store import OLD_SECRET_SECONDS, hash_of
from tests.kit.heart import Heart, at_once
from tests.kit.lists import each, times
from tests.kit.postgresql import BOTH_ENGINES, SQLITE
from tests.kit.support import FakeClock, wait_until

pytestmark = BOTH_ENGINES


@pytest.fixture
def heart(database, clock):
    return Heart(database, clock)


@pytest.fixture
def dead(heart):
    """A key of somebody else, to be revoked."""
    return heart.keys.issue("stranger@example.com").key


def add_checks(heart, key, count, alerts_each=0):
    """Give a key many checks, each with so many alerts."""
    checks = times(count, heart.create, key=key)

    def add(transaction):
        for _ in range(alerts_each):
            for check in checks:
                record(transaction, "check.test", [check], 1)

    heart.database.write(add)
    return checks


def count(database):
    """How many rows there are of keys, checks and alerts."""
    tables = ("keys", "checks", "alerts")
    with database.read() as connection:
        return [
            connection.execute(
                f"SELECT count(*) FROM {table}"
            ).fetchone()[0]
            for table in tables
        ]


class Watched:
    """A database that notes how many rows each write changed; `between` is called before each."""

    def __init__(self, database, between=lambda: None):
        self.read, self.lock = database.read, database.lock
        self.changed = []
        self._write = database.write
        self._between = between

    def write(self, work):
        def noting(connection):
            before = getattr(connection, "total_changes", 0)
            result = work(connection)
            self.changed.append(
                getattr(connection, "total_changes", 0) - before
            )
            return result

        self._between()
        return self._write(noting)


@SQLITE
def test_a_revoked_key_goes_in_small_writes_with_pings_between_them(
    heart, dead
):
    mine = heart.create()
    add_checks(heart, dead, 3 * STEP_CHECKS, alerts_each=1)
    heart.keys.revoke(dead.id)
    watched = Watched(heart.database, between=lambda: heart.ping(mine))
    Tidy(watched).remove_revoked()
    assert count(heart.database) == [1, 1, 0]
    assert max(watched.changed) == 2 * STEP_CHECKS
    assert heart.read(mine).ping_count == len(watched.changed)


def test_all_revoked_keys_go_and_no_other(heart, open_again):
    mine = heart.create()
    keys = [
        heart.keys.issue("stranger@example.com").key for _ in range(3)
    ]
    keys.append(heart.keys.issue().key)
    for key in keys[:3]:
        add_checks(heart, key, 70, alerts_each=2)
    for key in keys[1:]:
        heart.keys.revoke(key.id)
    # Several processes may do it at once.
    tidies = [
        Tidy(heart.database),
        Tidy(open_again()),
        Tidy(heart.database),
    ]
    results = at_once(
        *each(tidies, "remove_revoked"), lambda: heart.ping(mine)
    )
    assert not [
        result for result in results if isinstance(result, Exception)
    ]
    assert set(each(heart.keys.all(), "id")) == {heart.key.id, keys[0].id}
    assert count(heart.database) == [2, 71, 140]
    assert count_by_key(heart.database) == {
        heart.key.id: 1,
        keys[0].id: 70,
    }


def test_a_revoked_keys_checks_are_dead_at_once(heart, dead):
    mine, check = heart.create(), heart.create(key=dead)
    heart.keys.revoke(dead.id)
    assert heart.checks.totals() == {"on_time": 1, "overdue": 0}
    assert heart.ping(check) is None
    assert heart.fail(check) is None
    assert heart.pings.look(check.id) is None
    with pytest.raises(Refusal) as refused:
        heart.create(key=dead)
    assert refused.value.status == 401
    heart.pass_time(61)
    assert heart.sweep.sweep_once() == 1
    assert heart.status(mine) == "overdue"
    assert heart.alert_types(check) == []


def test_the_thread_goes_on_with_what_is_left_and_after_an_error(
    heart, dead, caplog
):
    add_checks(heart, dead, 3 * STEP_CHECKS)
    heart.keys.revoke(dead.id)
    stopped = []
    tidy = Tidy(
        Watched(
            heart.database, between=lambda: stopped.append(tidy.stop(0))
        )
    )
    tidy.remove_revoked()
    assert count(heart.database) == [2, 2 * STEP_CHECKS, 0]
    errors = [Unavailable("database_unavailable")]

    def fail():
        if errors:
            raise errors.pop()

    tidy = Tidy(Watched(heart.database, between=fail), poll_seconds=0.01)
    tidy.start()
    wait_until(lambda: count(heart.database) == [1, 0, 0])
    assert "tidy failed" in caplog.text
    tidy.stop()


class Server:
    """A heart whose server tidies. Its own key has a check."""

    def __init__(self, heart):
        self.heart = heart
        self.keys = heart.keys
        self.monotonic = FakeClock(0)
        heart.create()
        self.start()

    def start(self):
        self.tidy = Tidy(
            self.heart.database, self.heart.clock, self.monotonic
        )
        self.tidy.tidy()

    def run(self, days):
        """Let days pass with the server awake, which tidies twice a day."""
        for _ in range(round(2 * days)):
            self.heart.clock.advance(DAY_SECONDS / 2)
            self.monotonic.advance(DAY_SECONDS / 2)
            self.tidy.tidy()

    def left(self, *issued):
        ids = set(each(self.keys.all(), "id"))
        assert self.heart.key.id in ids
        return [each.key.id in ids for each in issued]


@pytest.fixture
def server(heart):
    return Server(heart)


def test_a_key_that_was_not_used_goes_after_90_days(server, caplog):
    caplog.set_level("INFO")
    unused = [server.keys.issue("a@b"), server.keys.issue()]
    used = [server.keys.issue("a@b"), server.keys.issue()]
    # As one that `import` has filled: no request uses it.
    imported = server.keys.issue("a@b")
    (check,) = add_checks(server.heart, imported.key, 1)
    server.run(UNUSED_DAYS)
    for issued in used:
        server.keys.authenticate(hash_of(issued.value))
    assert server.left(*unused, *used) == [True] * 4
    server.run(1)
    assert server.left(*unused, *used) == [False, False, True, True]
    told = "removed 2 API keys that have no check and were not used within 90 days"
    assert caplog.messages == [told]
    server.run(400)
    assert server.left(*used, imported) == [True] * 3
    server.heart.checks.delete(imported.key.id, check.id)
    server.run(1)
    assert server.left(*used, imported) == [True, True, False]


def test_nothing_goes_before_the_server_has_run_for_a_day(server):
    issued = server.keys.issue()
    server.heart.clock.advance(1000 * DAY_SECONDS)
    for _ in range(3):
        server.start()
        server.run(0.5)
    assert server.left(issued) == [True]
    server.run(0.5)
    assert server.left(issued) == [False]


@pytest.mark.parametrize(("seconds", "is_kept"), [(-1, True), (0, False)])
def test_a_secret_that_signs_no_more_is_forgotten(
    server, seconds, is_kept
):
    heart = server.heart
    heart.keys.renew_webhook_secret(heart.key)
    heart.clock.advance(OLD_SECRET_SECONDS + seconds)
    server.monotonic.advance(DAY_SECONDS)
    server.tidy.tidy()
    with heart.database.read() as connection:
        found = connection.execute(
            "SELECT old_webhook_secret FROM keys"
        ).fetchone()[0]
    assert (found is not None) == is_kept
