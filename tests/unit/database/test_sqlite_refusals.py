"""What `restore` would refuse: `backup` and `doctor` tell it too, and what they call sound it takes."""

import contextlib
import os
import shutil
import sqlite3
from random import Random

import pytest

from cardbeat.database import open_database
from cardbeat.database.schema import TABLES
from cardbeat.database.sqlite.backup import back_up
from cardbeat.database.sqlite.file import APPLICATION_ID, FILE_NAME
from cardbeat.database.sqlite.objects import make_tables
from cardbeat.database.sqlite.restore import restore
from cardbeat.database.sqlite.rows import why_refused
from cardbeat.errors import StartupError
from tests.heart import Heart
from tests.support import FakeClock

NOON = 1_800_014_400
NOT_UTF_8 = "CAST(x'61ff' AS TEXT)"
VALUES = (
    "NULL",
    "-1",
    NOT_UTF_8,
    "printf('%.2000000c', 'a')",
    "zeroblob(32)",
)
"""Expressions in SQL that are stored in each column, whatever its type and its limits."""


@contextlib.contextmanager
def opened(path):
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.executescript(
            "PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON; PRAGMA synchronous = 0"
        )
        yield connection


@contextlib.contextmanager
def taken_for(connection, name, change):
    """Have SQLite take a table or an index for another one, so that it stores what it would refuse."""
    (sql,) = connection.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (name,)).fetchone()

    def put(text):
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("UPDATE sqlite_schema SET sql = ? WHERE name = ?", (text, name))
        (version,) = connection.execute("PRAGMA schema_version").fetchone()
        connection.execute(f"PRAGMA schema_version = {version + 1}")
        connection.execute("PRAGMA writable_schema = RESET")

    put(change(sql))
    try:
        yield
    finally:
        put(sql)


def store(path, table, column, value):
    with (
        opened(path) as connection,
        taken_for(connection, table, lambda sql: sql.replace("STRICT", "").replace("NOT NULL", "")),
        # What numbers the rows has no other type.
        contextlib.suppress(sqlite3.IntegrityError),
    ):
        connection.execute(f"UPDATE OR IGNORE {table} SET {column} = {value}")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A database file with rows in each table, and without a -wal."""
    folder = tmp_path_factory.mktemp("whole")
    with contextlib.closing(open_database(folder)) as database:
        heart = Heart(database, FakeClock())
        checks = [heart.create(1) for _ in range(3)]
        heart.pass_time(10)
        heart.sweep.sweep_once()
        heart.checks.test_alert(heart.key.id, checks[0].id).wait()
    with opened(folder / FILE_NAME) as connection:
        connection.execute("INSERT INTO moves (check_seq) VALUES (1)")
        connection.execute("INSERT INTO leases VALUES ('delivery', 'a', 1, 1.5)")
        assert all(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in TABLES)
    return folder / FILE_NAME


@pytest.fixture
def told(whole, tmp_path, monkeypatch):
    """Spoils the database, and returns whether `backup` and `doctor` tell what `restore` then refuses.

    All three must agree.
    """
    for module in ("backup", "rows", "restore"):
        monkeypatch.setattr(f"cardbeat.database.sqlite.{module}.sync_file", lambda _path: None)
    data, copy = tmp_path / "data", tmp_path / "copy.db"
    data.mkdir(mode=0o700)

    def tell(spoil, *arguments):
        for left in data.iterdir():
            left.unlink()
        shutil.copyfile(whole, data / FILE_NAME)
        spoil(data / FILE_NAME, *arguments)
        try:
            written, reason = back_up(data, copy)
            by_backup = [reason] if reason else []
            os.replace(written, copy)
        except StartupError as error:
            # It leaves no file, and the one that it would not copy must not be restored either.
            shutil.copyfile(data / FILE_NAME, copy)
            by_backup = [str(error)]
        by_doctor = why_refused(data / FILE_NAME)
        try:
            restore(tmp_path / "new", copy, NOON)
            by_restore = []
        except StartupError as error:
            by_restore = [str(error)]
        assert bool(by_backup) == bool(by_doctor) == bool(by_restore), (arguments, by_backup, by_doctor, by_restore)
        return by_doctor

    return tell


def names(whole, kind):
    with opened(whole) as connection:
        found = "SELECT name FROM sqlite_schema WHERE type = ? AND sql IS NOT NULL AND name NOT LIKE 'sqlite_%'"
        return [name for (name,) in connection.execute(found, (kind,))]


def test_a_database_that_is_sound_is_told_so_by_all(told):
    assert told(lambda _path: None) == []


@pytest.mark.parametrize(
    "value", [value if value == NOT_UTF_8 else pytest.param(value, marks=pytest.mark.slow) for value in VALUES]
)
def test_a_value_is_refused_by_all_or_by_none_in_whichever_column_it_is(whole, told, value):
    with opened(whole) as connection:
        columns = [
            (table, column)
            for table in names(whole, "table")
            for _, column, *_ in connection.execute(f"PRAGMA table_info({table})")
        ]
    refused = [place for place in columns if told(store, *place, value)]
    assert len(refused) > 10
    if value == NOT_UTF_8:
        assert {("keys", "email"), ("checks", "name"), ("alerts", "last_error"), ("monitor", "name")} <= {*refused}


def test_an_index_that_lacks_rows_is_refused_by_all_until_it_is_made_again(whole, told):
    def empty(path, index, then="SELECT 1"):
        def nothing(sql):
            return f"{sql} AND 0" if " WHERE " in sql else f"{sql} WHERE 0"

        with opened(path) as connection, taken_for(connection, index, nothing):
            connection.execute(f"REINDEX {index}")
        with opened(path) as connection:
            connection.execute(then)

    refused = {index for index in names(whole, "index") if told(empty, index)}
    assert {"checks_by_key", "checks_due", "alerts_once", "alerts_by_check"} <= refused
    assert not any(told(empty, index, "REINDEX") for index in refused)


def test_rows_without_those_that_they_refer_to_are_refused_by_all(whole, told):
    def remove(path, table):
        with opened(path) as connection:
            connection.execute(f"DELETE FROM {table}")

    assert {table for table in names(whole, "table") if told(remove, table)} == {"keys", "checks"}


def test_a_part_of_a_credit_is_refused_by_all(told):
    def insert(path):
        with opened(path) as connection:
            connection.execute("INSERT INTO monitor VALUES ('credit_seconds', 5)")

    assert told(insert)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 5))])
def test_bytes_that_a_disk_changed_are_refused_by_all_or_by_none(told, seed):
    random = Random(seed)

    def change(path):
        content = bytearray(path.read_bytes())
        # Not the first page, with the schema. Zeros are mostly free space.
        places = [place for place in range(4096, len(content)) if content[place]]
        for place in random.choices(places, k=random.choice([1, 10])):
            content[place] ^= 1 << random.randrange(8)
        path.write_bytes(content)

    assert sum(bool(told(change)) for _ in range(15)) > 3


@pytest.mark.parametrize("year", [2026, 1026])
def test_of_an_older_schema_what_its_scripts_make_counts_too(tmp_path, year):
    """Schema 8 takes times from the JSON of an alert. One year there is no time of ours."""
    (tmp_path / "data").mkdir(mode=0o700)
    with opened(tmp_path / "data" / FILE_NAME) as connection:
        make_tables(connection, 7)
        check, key, body = "a" * 32, "key_0123456789abcdef", f'{{"last_ping_at":"{year}-01-01T00:00:00Z"}}'
        connection.executescript(f"""
            PRAGMA application_id = {APPLICATION_ID};
            INSERT INTO keys (id, scope, tier, hash, prefix, webhook_secret, created_at)
                VALUES ('{key}', 'checks', 'free', zeroblob(32), 'aaaaaaaa', 'whsec_', 1);
            INSERT INTO checks (id, api_key_id, name, period_seconds, grace_seconds, clock_from, created_at, updated_at)
                VALUES ('{check}', '{key}', 'a', 60, 0, 1, 1, 1);
            INSERT INTO alerts (id, check_id, type, outage, body, created_at)
                VALUES ('msg_{check}', '{check}', 'check.overdue', 1, '{body}', 1);
        """)
    copy, refused = back_up(tmp_path / "data", tmp_path / "copy.db")
    assert [bool(why_refused(tmp_path / "data" / FILE_NAME)), bool(refused)] == [year == 1026] * 2
    if refused:
        with pytest.raises(StartupError, match=r"in alerts\.last_ping_at of row 1; nothing was restored"):
            restore(tmp_path / "new", copy, NOON)
    else:
        assert restore(tmp_path / "new", copy, NOON).checks == 1


def test_a_stop_ends_the_check(whole):
    def stop():
        raise StartupError("stopped")

    with pytest.raises(StartupError, match="stopped"):
        why_refused(whole, stop)


def test_what_is_beside_the_file_counts_too(whole, tmp_path):
    (tmp_path / "data").mkdir(mode=0o700)
    shutil.copyfile(whole, tmp_path / "data" / FILE_NAME)
    back_up(tmp_path / "data", tmp_path / "copy.db")
    (tmp_path / "copy.db-journal").mkdir()
    assert why_refused(tmp_path / "copy.db") == [f"{tmp_path / 'copy.db-journal'} is not a regular file"]
