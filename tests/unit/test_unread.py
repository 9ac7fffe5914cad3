"""The order in which undelivered alerts are read: all of them once, those of a check in order, new ones first."""

import random
import secrets
from functools import partial

import pytest

from cardbeat.errors import Unavailable
from cardbeat.heartbeat import pending as pending_module
from cardbeat.heartbeat import unread as module
from cardbeat.heartbeat.pending import PendingAlerts
from cardbeat.heartbeat.unread import Unread
from tests.heart import Heart
from tests.postgresql import BOTH_ENGINES, POSTGRESQL

PAGE = 5


pytestmark = BOTH_ENGINES


@pytest.fixture(autouse=True)
def page(monkeypatch):
    for reader in (module, pending_module):
        monkeypatch.setattr(reader, "PAGE", PAGE)


@pytest.fixture
def heart(database, clock):
    return Heart(database, clock)


@pytest.fixture
def unread(database):
    return Unread(PendingAlerts(database))


def record(heart, checks):
    """An alert for each, in this order; the `seq` of the last."""

    def insert(connection):
        for check in checks:
            connection.execute(
                "INSERT INTO alerts (id, check_id, type, body, created_at, next_attempt_at)"
                " VALUES (?, ?, 'check.test', '', 0, 0)",
                (secrets.token_hex(9), check.id),
            )
        return connection.execute("SELECT max(seq) FROM alerts").fetchone()[0]

    return heart.database.write(insert)


def read_all(unread):
    read = []
    while (page := unread.page()) or not unread.has_read_old():
        read += page
    return read


def test_new_alerts_are_read_before_old_ones_then_the_newest_and_the_oldest_in_turns(heart, unread):
    record(heart, [heart.create() for _ in range(4 * PAGE)])
    assert [alert.seq for alert in unread.page()] == [16, 17, 18, 19, 20]
    record(heart, [heart.create()])
    assert sorted(alert.seq for alert in unread.page()) == [1, 2, 3, 4, 5, 21]
    assert [alert.seq for alert in unread.page()] == [11, 12, 13, 14, 15]
    assert [alert.seq for alert in unread.page()] == [6, 7, 8, 9, 10]
    assert unread.page() == []
    assert unread.has_read_old()


def test_older_alerts_of_a_check_come_with_its_new_one(heart, unread):
    busy, *others = [heart.create() for _ in range(4 * PAGE)]
    record(heart, [busy, *others, *others, busy, *others])
    unread.page()
    new = record(heart, [busy])
    of_busy = [alert.seq for alert in unread.page() if alert.check_seq == busy.seq]
    assert of_busy == [1, 4 * PAGE * 2, new]


@pytest.mark.parametrize("seed", range(20))
def test_whatever_comes_meanwhile_each_is_read_once_and_those_of_a_check_in_order(heart, unread, seed):
    chance = random.Random(seed)
    checks = [heart.create() for _ in range(12)]
    last = record(heart, chance.choices(checks, k=chance.randint(0, 70)) or checks[:1])
    read = []
    while (page := unread.page()) or not unread.has_read_old():
        read += page
        if chance.random() < 0.5:
            last = record(heart, chance.choices(checks, k=chance.randint(1, 8)))
    read += read_all(unread)
    assert sorted(alert.seq for alert in read) == list(range(1, last + 1))
    for check in checks:
        seqs = [alert.seq for alert in read if alert.check_seq == check.seq]
        assert seqs == sorted(seqs)


@pytest.mark.parametrize("name", ["newest_seqs", "after", "between", "of_checks"])
def test_what_could_not_be_read_is_read_the_next_time(heart, unread, monkeypatch, name):
    record(heart, [heart.create() for _ in range(2 * PAGE)])

    def fail(*_):
        raise Unavailable("x", "It can't be read.")

    with monkeypatch.context() as patched:
        patched.setattr(PendingAlerts, name, fail)
        with pytest.raises(Unavailable):
            unread.page()
    assert len(read_all(unread)) == 2 * PAGE


def test_with_no_alerts_all_are_read_at_once(unread):
    assert unread.page() == []
    assert unread.has_read_old()


@POSTGRESQL
@pytest.mark.parametrize("read", [PendingAlerts.after, partial(PendingAlerts.between, before=9, from_newest=True)])
def test_a_page_is_chosen_before_its_checks_are_looked_up(heart, monkeypatch, read):
    """To look up those of all that are pending first takes seconds when they are many."""
    plans = []
    with heart.database.read() as connection:
        execute = connection.execute
        explain = lambda sql, values: plans.append(execute(f"EXPLAIN {sql}", values).fetchall()) or ()  # noqa: E731
        monkeypatch.setattr(connection, "execute", explain)
    assert read(PendingAlerts(heart.database), 0) == []
    (steps,) = ([step for (step,) in plan] for plan in plans)
    assert "Limit" not in steps[0]
    assert any("Limit" in step for step in steps)
