"""How many checks there are: kept with each change, never counted when somebody asks."""

import pytest

from cardbeat.heartbeat.checks import count_by_key
from cardbeat.heartbeat.pings import note_pings
from cardbeat.heartbeat.removal import Removal
from tests.heart import Heart
from tests.postgresql import BOTH_ENGINES, SQLITE

MANY = 3000


pytestmark = BOTH_ENGINES


@pytest.fixture
def heart(database, clock):
    return Heart(database, clock)


def add_checks(connection, key_id, ids):
    for check_id in ids:
        connection.execute(
            "INSERT INTO checks (id, api_key_id, name, period_seconds, grace_seconds, clock_from, created_at,"
            " updated_at) VALUES (?, ?, 'job', 60, 0, 1, 1, 1)",
            (check_id, key_id),
        )


def counted(database):
    """What counting finds, in the form of `Checks.totals`."""
    with database.read() as connection:
        rows = connection.execute("SELECT status, count(*) FROM checks GROUP BY status").fetchall()
    return {"on_time": 0, "overdue": 0} | dict(rows)


def steps(database, ask):
    """How many hundred steps SQLite's machine makes for an answer."""
    made = []
    with database.read() as connection:
        connection.set_progress_handler(lambda: made.append(1), 100)
    ask()
    with database.read() as connection:
        connection.set_progress_handler(None, 100)
    return len(made)


@SQLITE
def test_a_total_costs_the_same_however_many_checks_there_are(heart):
    heart.database.write(lambda connection: add_checks(connection, heart.key.id, map(str, range(MANY))))
    assert heart.checks.totals() == {"on_time": MANY, "overdue": 0}
    assert heart.checks.usage(heart.key.id)[0] == MANY
    assert count_by_key(heart.database) == {heart.key.id: MANY}
    for ask in (heart.checks.totals, lambda: heart.checks.usage(heart.key.id)[0], lambda: count_by_key(heart.database)):
        assert steps(heart.database, ask) <= 1


def test_a_total_follows_the_sweep_a_ping_and_a_deletion(heart):
    checks = [heart.create() for _ in range(5)]
    heart.pass_time(61)
    heart.sweep.sweep_once()
    assert heart.checks.totals() == {"on_time": 0, "overdue": 5}
    for check in checks[:3]:
        heart.ping(check)
    heart.checks.delete(heart.key.id, checks[0].id).wait()
    heart.checks.delete(heart.key.id, checks[4].id).wait()
    assert heart.checks.totals() == counted(heart.database) == {"on_time": 2, "overdue": 1}
    assert heart.checks.usage(heart.key.id)[0] == 3


def test_a_total_follows_the_removal_of_a_key_in_steps_and_in_one_cascade(heart):
    heart.create()
    for number, remove in enumerate(
        (lambda key_id: heart.keys.revoke(key_id).wait(), lambda key_id: cascade(heart.database, key_id))
    ):
        key = heart.keys.issue("stranger@example.com").wait().key
        ids = [f"{number}-{n}" for n in range(120)]
        heart.database.write(lambda connection, key=key, ids=ids: add_checks(connection, key.id, ids))
        assert heart.checks.totals()["on_time"] == 121
        remove(key.id)
        Removal(heart.database).finish()
        assert heart.checks.totals() == counted(heart.database) == {"on_time": 1, "overdue": 0}
        assert heart.checks.usage(key.id)[0] == 0
    assert count_by_key(heart.database) == {heart.key.id: 1}


def cascade(database, key_id):
    database.write(lambda connection: connection.execute("DELETE FROM keys WHERE id = ?", (key_id,)))


def test_a_change_that_is_undone_changes_no_total(heart):
    heart.create()

    def fail(connection):
        add_checks(connection, heart.key.id, ["a", "b"])
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        heart.database.write(fail)
    assert heart.checks.totals() == {"on_time": 1, "overdue": 0}
    assert heart.checks.usage(heart.key.id)[0] == 1


@SQLITE
def test_a_ping_of_a_check_on_time_writes_no_total(heart):
    check = heart.create()

    def ping(connection):
        before = connection.total_changes
        note_pings(connection, [check.id], 0)
        return connection.total_changes - before

    assert heart.database.write(ping) == 1
