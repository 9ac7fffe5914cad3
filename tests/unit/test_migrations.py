"""How a database of an earlier schema is brought up to date, shown with one more schema that is not there yet."""

import pytest

from cardbeat.database import open_database, sqlite_file
from cardbeat.errors import StartupError
from tests.heart import Heart

TABLES = ("keys", "checks", "alerts", "monitor")
NEWEST = sqlite_file.schema_version()
REBUILD = """
    ALTER TABLE checks ADD COLUMN note TEXT NOT NULL DEFAULT '';
    UPDATE checks SET note = name;
    CREATE TABLE new_monitor (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT;
    INSERT INTO new_monitor SELECT * FROM monitor;
    DROP TABLE monitor;
    ALTER TABLE new_monitor RENAME TO monitor;
    CREATE TABLE new_keys AS SELECT * FROM keys;
    DROP TABLE keys;
    ALTER TABLE new_keys RENAME TO keys;
    CREATE UNIQUE INDEX keys_by_id ON keys (id);
"""


@pytest.fixture
def filled(tmp_path, clock):
    """The folder of a database of the newest schema that holds rows of every kind."""
    database = open_database(tmp_path)
    heart = Heart(database, clock)
    checks = [heart.create(period_seconds=1 + number) for number in range(30)]
    heart.pass_time(20)
    heart.sweep.sweep_once()
    for check in checks[::3]:
        heart.ping(check)
    database.close()
    return tmp_path


@pytest.fixture
def next_schema(monkeypatch):
    """Gives the program one more schema file."""

    def give(script):
        present = sqlite_file._migrations()
        monkeypatch.setattr(sqlite_file, "_migrations", lambda: [*present, script])

    return give


def rows(folder):
    """All rows, each without what the next schema added."""
    database = open_database(folder)
    with database.read() as connection:
        found = {}
        for table in TABLES:
            selected = connection.execute(f"SELECT * FROM {table}").fetchall()
            found[table] = [{name: row[name] for name in row.keys() if name != "note"} for row in selected]  # noqa: SIM118
    database.close()
    return found


def version(folder):
    connection = sqlite_file.connect(folder / sqlite_file.FILE_NAME, query_only=True)
    (found,) = connection.execute("PRAGMA user_version").fetchone()
    connection.close()
    return found


def test_every_row_survives_even_the_rebuilding_of_a_table_that_others_refer_to(filled, next_schema):
    before = rows(filled)
    assert all(before.values())
    next_schema(REBUILD)
    assert rows(filled) == before
    assert version(filled) == NEWEST + 1
    assert sqlite_file.integrity_problems(filled) == []


def test_foreign_keys_count_again_after_it(filled, next_schema):
    next_schema(REBUILD)
    database = open_database(filled)
    database.write(lambda connection: connection.execute("DELETE FROM keys"))
    with database.read() as connection:
        assert connection.execute("SELECT count(*) FROM alerts").fetchone()[0] == 0
    database.close()


def test_one_that_fails_in_the_middle_leaves_the_earlier_schema_as_it_was(filled, next_schema, monkeypatch):
    before = rows(filled)
    next_schema(REBUILD + "INSERT INTO nowhere VALUES (1);")
    with pytest.raises(StartupError, match="nowhere"):
        open_database(filled)
    monkeypatch.undo()
    assert version(filled) == NEWEST
    assert rows(filled) == before


def test_it_runs_once(filled, next_schema):
    next_schema("INSERT INTO monitor VALUES ('times_migrated', 1);")
    for _ in range(2):
        open_database(filled).close()
    assert version(filled) == NEWEST + 1


def test_a_new_database_has_the_newest_schema_at_once(tmp_path, next_schema):
    next_schema(REBUILD)
    open_database(tmp_path).close()
    assert version(tmp_path) == NEWEST + 1


def test_an_earlier_program_refuses_the_later_schema(filled, next_schema, monkeypatch):
    next_schema(REBUILD)
    open_database(filled).close()
    monkeypatch.undo()
    with pytest.raises(StartupError, match="newer"):
        open_database(filled)
