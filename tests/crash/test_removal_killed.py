"""`kill -9` while a revoked key's checks are removed: the next start goes on with nothing else."""

import contextlib
import sqlite3

from cardbeat.config import FREE
from cardbeat.database import open_database
from cardbeat.database.sqlite.copies import require_sound
from cardbeat.database.sqlite.file import FILE_NAME
from cardbeat.keys.store import Keys
from tests.client import ask
from tests.support import wait_until

YEAR = 31_536_000
TABLES = ("keys", "checks", "alerts", "outages")


def counts(folder):
    """How many rows there are in each table."""
    with contextlib.closing(sqlite3.connect(folder / FILE_NAME)) as connection:
        return [
            connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in TABLES
        ]


NUMBERS = "WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < :count)"
ADDED = (
    f"{NUMBERS} INSERT INTO checks (id, api_key_id, name, period_seconds, grace_seconds, clock_from, created_at,"
    f" updated_at) SELECT :key || '-' || i, :key, 'job', {YEAR}, {YEAR}, 1, 1, 1 FROM n",
    "INSERT INTO alerts (id, check_id, key_id, type, created_at)"
    " SELECT id, id, :key, 'check.test', 1 FROM checks WHERE api_key_id = :key",
    "INSERT INTO outages (check_id, key_id, outage, began_at, noticed_at, reason)"
    " SELECT id, :key, 1, 1, 1, 'late' FROM checks WHERE api_key_id = :key",
)


def make(folder, number):
    """A database with a revoked key of so many checks, and a good one with one check; the ids of both.

    Each check has an alert and an outage.
    """
    with contextlib.closing(open_database(folder)) as database:
        keys = Keys(database, lambda: 1, {"free": FREE})
        good, dead = (keys.issue("ops@example.com").key.id for _ in range(2))
        for key, count in ((good, 1), (dead, number)):
            for sql in ADDED:
                values = {"key": key, "count": count}
                database.write(lambda it, sql=sql, values=values: it.execute(sql, values).rowcount)
        keys.revoke(dead)
    return good, dead


def test_a_server_removes_what_those_killed_before_it_left(tmp_path, start):
    data = tmp_path / "data"
    good, dead = make(data, 10_000)
    left = counts(data)
    for _ in range(3):
        server = start("--data", "data")
        assert ask(server, "GET", f"/ping/{dead}-9999").status == 404
        wait_until(lambda before=left: counts(data) < before)
        server.kill()
        left = counts(data)
        assert left[0] == 2
        require_sound(data / FILE_NAME)
    again = start("--data", "data")
    wait_until(lambda: counts(data) == [1, 1, 1, 1])
    assert ask(again, "GET", f"/ping/{good}-0").status == 200
