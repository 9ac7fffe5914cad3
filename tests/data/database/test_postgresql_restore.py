"""From a file to PostgreSQL: nothing is lost on the way, and nothing half done is left behind."""

import contextlib
import itertools
import sqlite3
from pathlib import Path

import psycopg
import pytest

from cardbeat.database import open_database
from cardbeat.database.postgresql.restore import restore
from cardbeat.database.schema import TABLES
from cardbeat.database.sqlite.file import FILE_NAME
from cardbeat.errors import StartupError
from tests.kit.heart import Heart
from tests.kit.lists import each
from tests.kit.postgresql import POSTGRESQL

pytestmark = POSTGRESQL

HOUR = 3600
KEYS, CHECKS = 6, 12


@pytest.fixture
def filled(tmp_path, clock):
    """A file with rows of every kind, whose last check is gone."""
    with contextlib.closing(
        open_database(tmp_path / "filled")
    ) as database:
        heart = Heart(database, clock)
        checks = [
            heart.create(1 + number % 5) for number in range(CHECKS - 1)
        ]
        heart.pass_time(10)
        heart.sweep.sweep_once()
        for check in checks[::2]:
            heart.ping(check)
        kept = heart.create(HOUR)
        heart.checks.test_alert(heart.key.id, kept.id)
        for name in ("é \U0001f600 \\N \\. \t", "'quoted'", "x", "y"):
            heart.keys.issue(f"{name}@b", "unlimited")
        heart.keys.issue()
        heart.checks.delete(heart.key.id, heart.create().id)
    path = tmp_path / "filled" / FILE_NAME
    with contextlib.closing(
        sqlite3.connect(path, isolation_level=None)
    ) as connection:
        connection.execute(
            "UPDATE alerts SET last_error = 'a' || char(0) || 'b' WHERE seq = 1"
        )
    return path


@pytest.fixture
def url(postgresql, tmp_path, monkeypatch):
    """Of a database without rows, which commands use too."""
    url = postgresql.emptied(tmp_path / "opened").replace(
        "cardbeat@", "cardbeat:s3cret@"
    )
    monkeypatch.setenv("CARDBEAT_DATABASE", url)
    return url


def connect(place):
    """A connection of the engine's driver alone, to the path of a file or a URL."""
    return contextlib.closing(
        sqlite3.connect(place)
        if isinstance(place, Path)
        else psycopg.connect(place)
    )


def contents(place):
    """All rows of a database by table. The columns of the engines are in another order."""
    with connect(place) as connection:
        found = {}
        for table in TABLES:
            cursor = connection.execute(
                f"SELECT * FROM {table} ORDER BY 1, 2"
            )
            names = [column[0] for column in cursor.description]
            found[table] = [
                dict(zip(names, row, strict=True))
                for row in cursor.fetchall()
            ]
        return found


def test_all_rows_of_a_file_are_on_the_server_as_they_were_and_new_ones_have_new_numbers(
    filled, url, tmp_path, clock
):
    with connect(filled) as connection:
        found = connection.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
        )
        assert {name for (name,) in found} == set(TABLES)
        (last,) = connection.execute(
            "SELECT max(seq) FROM checks"
        ).fetchone()
    told = restore(url, tmp_path / "cards", filled)
    assert "s3cret" not in told.pop("database")
    assert told == {
        "kept": None,
        "keys": KEYS,
        "checks": CHECKS,
        "last_served_at": "2027-01-15 08:00:10",
    }
    before = contents(filled)
    # PostgreSQL takes no NUL.
    before["alerts"][0]["last_error"] = "a\ufffdb"
    assert contents(url) == before
    assert list((tmp_path / "cards").iterdir()) == []
    with contextlib.closing(open_database(tmp_path, url)) as database:
        heart = Heart(database, clock)
        check = heart.create(1)
        heart.pass_time(10)
        heart.sweep.sweep_once()
        assert heart.status(check) == "overdue"
        with database.read() as connection:
            sql = "SELECT max(seq), (SELECT reltuples FROM pg_class WHERE oid = to_regclass('checks')) FROM checks"
            assert list(connection.execute(sql).fetchone()) == [
                last + 1,
                CHECKS,
            ]


@pytest.mark.parametrize("at", [1, 4, 9])
def test_what_is_stopped_in_the_middle_leaves_all_as_it_was(
    filled, url, tmp_path, monkeypatch, at
):
    numbers = itertools.count(1)

    def stop(value):
        if next(numbers) == at:
            raise KeyboardInterrupt
        return value

    place = tmp_path / "cards"
    place.mkdir()
    with monkeypatch.context() as patched:
        patched.setattr(f"{restore.__module__}.without_nul", stop)
        with pytest.raises(KeyboardInterrupt):
            restore(url, place, filled)
    assert list(place.iterdir()) == []
    assert not any(contents(url).values())
    restore(url, place, filled)


def test_a_restore_into_a_database_that_is_locked_or_has_keys_is_refused(
    filled, url, tmp_path
):
    def refused(why):
        with pytest.raises(StartupError, match=why):
            restore(url, tmp_path, filled)

    open_database(tmp_path, url).close()
    with contextlib.closing(psycopg.connect(url)) as another:
        another.execute("LOCK TABLE keys IN EXCLUSIVE MODE")
        refused("lock timeout")
    restore(url, tmp_path, filled)
    before = contents(url)
    refused("is not empty")
    assert contents(url) == before


def test_what_is_no_backup_is_refused_and_nothing_is_made(
    postgresql, tmp_path
):
    (tmp_path / "other").write_text("something else")
    for file in (tmp_path / "other", tmp_path / "none"):
        with pytest.raises(
            StartupError, match=r"; nothing was restored$"
        ):
            restore(postgresql.new_schema(), tmp_path / "cards", file)
    assert each(tmp_path.iterdir(), "name") == ["other"]
