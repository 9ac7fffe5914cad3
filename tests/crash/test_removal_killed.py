"""`kill -9` while a revoked key's checks are removed: the next start goes on, and nothing else is touched."""

import contextlib
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from cardbeat.config import FREE
from cardbeat.database import open_database
from cardbeat.database.sqlite.file import FILE_NAME, open_read_only
from cardbeat.keys.store import Keys
from tests.artifact import clean_environment
from tests.crash.client import ask
from tests.support import wait_until

ROOT = Path(__file__).resolve().parents[2]

CHILD = """
import itertools, os, signal, sys
from pathlib import Path

from cardbeat.database import open_database
from cardbeat.database.sqlite.database import SqliteDatabase
from cardbeat.heartbeat import removal

folder, name, moment, call = sys.argv[1:]
numbers = itertools.count(1)


def dies_in(owner, name, moment):
    whole = getattr(owner, name)

    def part(*args):
        last = next(numbers) == int(call)
        if last and moment == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        result = whole(*args)
        if last:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(owner, name, part)


dies_in(*{"step": (removal, "_step"), "write": (SqliteDatabase, "write")}[name], moment)
database = open_database(Path(folder))
removal.Removal(database).finish()
database.close()
"""

POINTS = [
    ("step", "before"),  # in a transaction that has changed nothing yet
    ("step", "after"),  # changed, not committed
    ("write", "after"),  # committed
]


TABLES = ("keys", "checks", "alerts")


def counts(folder):
    """How many keys, checks and alerts there are."""
    with contextlib.closing(sqlite3.connect(folder / "cardbeat.db")) as connection:
        return [connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in TABLES]


def make(folder, checks, alerts_each):
    """A database with a revoked key of so many checks, and a good one with a check that has an alert."""
    database = open_database(folder)
    keys = Keys(database, lambda: 1, {"free": FREE})
    good, dead = (keys.issue("ops@example.com").wait().key for _ in range(2))

    def add(connection):
        for key, count in ((good, 1), (dead, checks)):
            for check in range(count):
                check_id = f"{key.id}-{check}"
                connection.execute(
                    "INSERT INTO checks (id, api_key_id, name, period_seconds, grace_seconds, clock_from, created_at,"
                    " updated_at) VALUES (?, ?, 'job', 31536000, 31536000, 1, 1, 1)",
                    (check_id, key.id),
                )
                connection.executemany(
                    "INSERT INTO alerts (id, check_id, type, created_at) VALUES (?, ?, 'check.test', 1)",
                    [(f"{check_id}-{alert}", check_id) for alert in range(alerts_each)],
                )

    database.write(add)
    keys.revoke(dead.id).wait()
    database.close()
    return f"/ping/{good.id}-0", f"/ping/{dead.id}-0"


@pytest.mark.parametrize("call", [1, 2, 5])
@pytest.mark.parametrize("point", POINTS)
def test_a_killed_removal_is_gone_on_with(tmp_path, point, call):
    make(tmp_path, checks=120, alerts_each=2)
    run = [sys.executable, "-c", CHILD, tmp_path]
    assert subprocess.run([*run, *point, str(call)], cwd=ROOT, timeout=60, check=False).returncode == -signal.SIGKILL
    _, checks, alerts = counts(tmp_path)
    steps_committed = call if point[0] == "write" else call - 1
    assert (checks + alerts < 1 + 2 + 120 + 240) == (steps_committed > 0)
    with open_read_only(tmp_path / FILE_NAME) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert subprocess.run([*run, *point, "0"], cwd=ROOT, timeout=60, check=False).returncode == 0
    assert counts(tmp_path) == [1, 1, 2]


def test_a_server_removes_what_one_killed_before_it_left(tmp_path, start):
    good, dead = make(tmp_path / "data", checks=3000, alerts_each=1)

    def left():
        with open_read_only(tmp_path / "data" / "cardbeat.db") as connection:
            return connection.execute("SELECT count(*) FROM checks").fetchone()[0]

    server = start("--data", "data")
    assert ask(server, "GET", dead).status == 404
    wait_until(lambda: left() < 2900)
    server.process.kill()
    server.process.wait()
    assert left() > 1
    again = start("--data", "data")
    assert ask(again, "GET", good).status == 200
    wait_until(lambda: left() == 1)


def test_the_command_removes_all_itself_where_no_server_runs(tmp_path, python, pyz):
    make(tmp_path / "data", checks=1, alerts_each=1)
    database = open_database(tmp_path / "data")
    keys = Keys(database, lambda: 1, {"free": FREE})
    key_id = keys.all()[0].id
    database.close()
    command = [python, pyz, "keys", "revoke", key_id, "--data", "data"]
    ran = subprocess.run(command, cwd=tmp_path, env=clean_environment(), capture_output=True, timeout=60, check=False)
    assert (ran.returncode, ran.stdout) == (0, b"")
    # After a second it says so.
    assert ran.stderr in (b"", b"cardbeat: the key is revoked, removing its checks, please wait ...\n")
    assert counts(tmp_path / "data") == [0, 0, 0]
