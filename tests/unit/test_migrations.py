"""How a database of an earlier schema is brought up to date, shown with a second schema that is not there yet."""

import pytest

from cardbeat import database_file
from cardbeat.database import Database
from cardbeat.errors import StartupError
from tests.heart import Heart

TABLES = ("keys", "checks", "alerts", "monitor")
REBUILD = """
    CREATE TABLE new_keys (
        seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, scope TEXT NOT NULL, tier TEXT NOT NULL, email TEXT,
        hash BLOB NOT NULL UNIQUE, prefix TEXT NOT NULL, webhook_secret TEXT, created_at INTEGER NOT NULL
    ) STRICT;
    INSERT INTO new_keys SELECT * FROM keys;
    DROP TABLE keys;
    ALTER TABLE new_keys RENAME TO keys;
    ALTER TABLE checks ADD COLUMN note TEXT NOT NULL DEFAULT '';
    UPDATE checks SET note = name;
"""


@pytest.fixture
def schema_1(tmp_path, clock):
    """The folder of a database of schema 1 that holds rows of every kind."""
    database = Database(tmp_path)
    heart = Heart(database, clock)
    checks = [heart.create(period_seconds=1 + number) for number in range(30)]
    heart.pass_time(20)
    heart.sweep.sweep_once()
    for check in checks[::3]:
        heart.ping(check)
    database.close()
    return tmp_path


@pytest.fixture
def second_schema(monkeypatch):
    """Gives the program a second schema file."""

    def give(script):
        first = database_file._migrations()
        monkeypatch.setattr(database_file, "_migrations", lambda: [*first, script])

    return give


def rows(folder):
    """All rows, each without what schema 2 added."""
    database = Database(folder)
    with database.read() as connection:
        found = {}
        for table in TABLES:
            selected = connection.execute(f"SELECT * FROM {table}").fetchall()
            found[table] = [{name: row[name] for name in row.keys() if name != "note"} for row in selected]  # noqa: SIM118
    database.close()
    return found


def version(folder):
    connection = database_file.connect(folder / database_file.FILE_NAME, query_only=True)
    (found,) = connection.execute("PRAGMA user_version").fetchone()
    connection.close()
    return found


def test_every_row_survives_even_the_rebuilding_of_a_table_that_others_refer_to(schema_1, second_schema):
    before = rows(schema_1)
    assert all(before.values())
    second_schema(REBUILD)
    assert rows(schema_1) == before
    assert version(schema_1) == 2
    assert database_file.integrity_problems(schema_1) == []


def test_foreign_keys_count_again_after_it(schema_1, second_schema):
    second_schema(REBUILD)
    database = Database(schema_1)
    database.write(lambda connection: connection.execute("DELETE FROM keys"))
    with database.read() as connection:
        assert connection.execute("SELECT count(*) FROM alerts").fetchone()[0] == 0
    database.close()


def test_one_that_fails_in_the_middle_leaves_the_earlier_schema_as_it_was(schema_1, second_schema, monkeypatch):
    before = rows(schema_1)
    second_schema(REBUILD + "INSERT INTO nowhere VALUES (1);")
    with pytest.raises(StartupError, match="nowhere"):
        Database(schema_1)
    monkeypatch.undo()
    assert version(schema_1) == 1
    assert rows(schema_1) == before


def test_it_runs_once(schema_1, second_schema):
    second_schema("INSERT INTO monitor VALUES ('times_migrated', 1);")
    for _ in range(2):
        Database(schema_1).close()
    assert version(schema_1) == 2


def test_a_new_database_has_the_newest_schema_at_once(tmp_path, second_schema):
    second_schema(REBUILD)
    Database(tmp_path).close()
    assert version(tmp_path) == 2


def test_an_earlier_program_refuses_the_later_schema(schema_1, second_schema, monkeypatch):
    second_schema(REBUILD)
    Database(schema_1).close()
    monkeypatch.undo()
    with pytest.raises(StartupError, match="newer"):
        Database(schema_1)
