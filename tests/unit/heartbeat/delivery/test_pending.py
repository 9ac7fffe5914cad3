"""The undelivered alerts as delivery reads them: in pages, each with whether it is the first of its check."""

import secrets

import pytest

from cardbeat.heartbeat.check import Check
from cardbeat.heartbeat.outbox import pending
from cardbeat.heartbeat.outbox.alert import OVERDUE
from cardbeat.heartbeat.outbox.pending import PendingAlerts
from tests.heart import HOOK, Heart
from tests.postgresql import BOTH_ENGINES, POSTGRESQL

PAGE = 5


pytestmark = BOTH_ENGINES


@pytest.fixture
def heart(database, clock):
    return Heart(database, clock)


@pytest.fixture
def alerts(database, monkeypatch):
    monkeypatch.setattr(pending, "PAGE", PAGE)
    return PendingAlerts(database)


def record(heart, checks, outage=None):
    """An alert for each, in this order; a test without an outage."""

    def insert(connection):
        for check in checks:
            connection.execute(
                "INSERT INTO alerts (id, check_id, type, outage, created_at, next_attempt_at)"
                " VALUES (?, ?, 'check.overdue', ?, 0, 0)",
                (secrets.token_hex(9), check.id, outage),
            )

    heart.database.write(insert)


def firsts(alerts):
    return [alert.seq for alert in alerts if alert.is_first]


def test_pages_follow_each_other_in_order(heart, alerts):
    record(heart, [heart.create() for _ in range(2 * PAGE + 2)])
    read, seq = [], 0
    while page := alerts.after(seq):
        read.append([alert.seq for alert in page])
        seq = page[-1].seq
    assert read == [[1, 2, 3, 4, 5], [6, 7, 8, 9, 10], [11, 12]]


def test_only_the_oldest_that_waits_is_the_first_of_its_check(heart, alerts):
    busy, *others = (heart.create() for _ in range(3))
    record(heart, [busy, *others, busy, busy])
    assert firsts(alerts.after(0)) == [1, 2, 3]
    assert firsts(alerts.after(3)) == []
    heart.alerts.store([heart.attempt(1, "delivered", 204, None, None, HOOK, 0)], int(heart.clock()))
    assert firsts(alerts.after(3)) == [4]


def test_tests_and_outages_do_not_wait_for_each_other(heart, alerts):
    check = heart.create()
    record(heart, [check], outage=1)
    record(heart, [check, check])
    record(heart, [check], outage=2)
    assert [(alert.seq, alert.is_test, alert.is_first) for alert in alerts.after(0)] == [
        (1, False, True),
        (2, True, True),
        (3, True, False),
        (4, False, False),
    ]


def test_of_some_checks_the_first_are_read(heart, alerts):
    checks = [heart.create() for _ in range(4)]
    record(heart, [*checks, checks[1]])
    record(heart, [checks[1], checks[2]], outage=1)
    record(heart, [checks[1]], outage=2)
    read = alerts.of_checks([checks[1].seq, checks[3].seq, 1000])
    assert all(alert.is_first for alert in read)
    assert sorted((alert.seq, alert.check_seq, alert.is_test) for alert in read) == [
        (2, checks[1].seq, True),
        (4, checks[3].seq, True),
        (6, checks[1].seq, False),
    ]


def test_only_the_first_of_a_check_is_due_also_where_an_earlier_version_gave_others_a_time(heart, alerts):
    assert alerts.first_due_at() is None
    one, other = heart.create(), heart.create()
    record(heart, [one, one, other])
    for seq, due_at in (1, 50), (2, 10), (3, 60):
        values = due_at, seq
        heart.database.write(lambda t, v=values: t.execute("UPDATE alerts SET next_attempt_at = ? WHERE seq = ?", v))
    assert alerts.first_due_at() == 50


def test_the_url_is_none_without_one_and_for_a_revoked_key(heart, alerts):
    record(heart, [heart.create(), heart.create(webhook_url=None)])
    assert [alert.webhook_url for alert in alerts.after(0)] == [HOOK, None]
    heart.keys.revoke(heart.key.id).wait()
    assert [alert.webhook_url for alert in alerts.after(0)] == [None, None]


def test_moves_are_read_in_pages(heart, alerts):
    checks = [heart.create() for _ in range(PAGE + 1)]
    record(heart, checks)
    for check in checks:
        heart.checks.update(check, heart.settings(check, webhook_url="https://new.example/x")).wait()
    page = alerts.moves_after(0)
    assert [check_seq for _, check_seq in page] == [check.seq for check in checks[:PAGE]]
    assert [check_seq for _, check_seq in alerts.moves_after(page[-1][0])] == [checks[-1].seq]


@POSTGRESQL
def test_a_page_is_chosen_before_its_checks_are_looked_up(heart, alerts, monkeypatch):
    """To look up those of all that are pending first takes seconds when they are many."""
    plans = []
    with heart.database.read() as connection:
        execute = connection.execute
        explain = lambda sql, values: plans.append(execute(f"EXPLAIN {sql}", values).fetchall()) or execute(sql, values)  # noqa: E731
        monkeypatch.setattr(connection, "execute", explain)
    assert alerts.after(0) == []
    (steps,) = ([step for (step,) in plan] for plan in plans)
    assert "Limit" not in steps[0]
    assert any("Limit" in step for step in steps)


@POSTGRESQL
def test_thousands_that_wait_are_read_though_postgresql_has_counted_none(heart, database):
    """It read all of them for each of a page, until the statement's time was over: no alert went out any more."""

    def store(connection, state, outages):
        connection.execute(
            "INSERT INTO alerts (id, check_id, type, outage, created_at, state, next_attempt_at)"
            " SELECT id || ' ' || n, id, 'check.overdue', n, 0, ?, 0"
            " FROM checks, generate_series(CAST(? AS INT), CAST(? AS INT)) AS n",
            (state, *outages),
        )

    def fill(connection):
        connection.execute(
            "INSERT INTO checks (id, api_key_id, name, period_seconds, grace_seconds, webhook_url, clock_from,"
            " created_at, updated_at, outage) SELECT 'check ' || number, ?, 'x', 60, 0, ?, 0, 0, 0, 51"
            " FROM generate_series(1, 3000) AS number",
            (heart.key.id, HOOK),
        )
        store(connection, "delivered", (1, 40))
        connection.execute("ANALYZE checks")
        connection.execute("ANALYZE alerts")
        store(connection, "pending", (41, 50))

    database.write(fill)
    alerts = PendingAlerts(database)
    newest = alerts.newest_seqs()[0]
    page = alerts.before(newest + 1)
    assert len(page) == pending.PAGE
    assert firsts(alerts.after(0))
    assert len(alerts.of_checks([one.check_seq for one in page])) == len({one.check_seq for one in page})
    with database.read() as connection:
        rows = connection.execute("SELECT * FROM checks ORDER BY seq LIMIT 250").fetchall()
    late = [Check.from_row(row) for row in rows]
    database.write(lambda transaction: heart.alerts.record(transaction, OVERDUE, late, int(heart.clock())))
    assert alerts.newest_seqs()[0] > newest
    results = [heart.attempt(one.seq, "delivered", 200, None, None, HOOK, 0) for one in alerts.after(0) if one.is_first]
    assert heart.alerts.store(results, 1) == (set(), set())
