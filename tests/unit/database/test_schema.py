"""The schema: that of cardbeat 1.0.0, older ones that are refused, and how a later script will change it."""

import contextlib
import json
import re
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import psycopg
import pytest

from cardbeat import cli
from cardbeat.config import Config
from cardbeat.database import open_database, schema
from cardbeat.database.sqlite import file as sqlite_file
from cardbeat.database.sqlite.rows import why_refused
from cardbeat.errors import StartupError
from cardbeat.heartbeat.outbox.alerts import Alerts
from tests.artifact import ROOT, clean_environment
from tests.heart import BASE_URL, Heart
from tests.postgresql import BOTH_ENGINES
from tests.support import App, further_scripts, service_of

BASELINE = 7
NOW = 1_800_000_000
CHECKS_KEY = "sk_" + 6 * "schema7"
"""Of the stored databases."""
TABLES = ("keys", "checks", "alerts", "monitor", "moves", "tests_taken", "totals_by_key", "totals_by_status")
NEWEST = schema.newest("sqlite")
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
CATALOG = (
    "SELECT relname, attnum, attname, format_type(atttypid, atttypmod), attnotnull, attidentity, attgenerated,"
    " pg_get_expr(adbin, adrelid), reloptions FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid"
    " LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum"
    " WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r' AND attnum > 0 ORDER BY 1, 2",
    "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint"
    " WHERE connamespace = current_schema()::regnamespace ORDER BY 1, 2",
    "SELECT indexname, replace(indexdef, current_schema() || '.', '') FROM pg_indexes"
    " WHERE schemaname = current_schema() ORDER BY 1",
    "SELECT tgname, replace(pg_get_triggerdef(pg_trigger.oid), current_schema() || '.', '') FROM pg_trigger"
    " JOIN pg_class ON tgrelid = pg_class.oid"
    " WHERE relnamespace = current_schema()::regnamespace AND NOT tgisinternal ORDER BY 1",
    "SELECT proname, replace(pg_get_functiondef(oid), current_schema() || '.', '') FROM pg_proc"
    " WHERE pronamespace = current_schema()::regnamespace ORDER BY 1",
    "SELECT sequencename, start_value, increment_by, cache_size FROM pg_sequences"
    " WHERE schemaname = current_schema() ORDER BY 1",
)
"""All that makes a PostgreSQL schema."""


def connect(folder, url):
    """A connection of the engine's driver alone."""
    if url is None:
        return contextlib.closing(sqlite3.connect(folder / sqlite_file.FILE_NAME, isolation_level=None))
    return contextlib.closing(psycopg.connect(url, autocommit=True))


@pytest.fixture
def new_url(engine, request):
    """Of a database without tables; None for a file that is not there."""
    return None if engine == "sqlite" else request.getfixturevalue("postgresql").new_schema()


@pytest.fixture(params=[7, 8])
def stored(engine, new_url, tmp_path, request):
    """A data folder and the URL of a database, which cardbeat 1.0.0 made by its numbered scripts and filled.

    With schema 8 it is as the program left it that had one script more.
    """
    folder = tmp_path / "stored"
    folder.mkdir(0o700)
    script = Path(__file__).with_name(f"schema_{BASELINE}_{engine}.sql").read_text()
    with connect(folder, new_url) as connection:
        run = connection.executescript if new_url is None else connection.execute
        run(script)
        for number, text in schema.missing_scripts(engine, BASELINE):
            if number <= request.param:
                noted = f"PRAGMA user_version = {number}"
                if new_url is not None:
                    noted = f"INSERT INTO cardbeat_schema (version) VALUES ({number})"
                run(text)
                run(noted)
    return folder, new_url


def schema_of(folder, url):
    with connect(folder, url) as connection:
        if url is not None:
            return [connection.execute(sql).fetchall() for sql in CATALOG]
        found = connection.execute("SELECT type, name, sql FROM sqlite_schema ORDER BY 1, 2").fetchall()
        # A column that was added later stands in it with other spaces.
        made = [(kind, name, re.sub(r"\s*([(),])\s*|\s+", r" \1 ", sql or "").split()) for kind, name, sql in found]
        # The order of a table's indexes counts where SQLite finds two of them equally good.
        names = [name for kind, name, _ in found if kind == "table"]
        indexes = [connection.execute(f"PRAGMA index_list({name})").fetchall() for name in names]
        numbers = [connection.execute(f"PRAGMA {name}").fetchone() for name in ("user_version", "application_id")]
        return made, indexes, numbers


def rows_of(folder, url):
    with connect(folder, url) as connection:
        return {table: connection.execute(f"SELECT * FROM {table} ORDER BY 1, 2").fetchall() for table in TABLES}


@BOTH_ENGINES
def test_a_new_database_has_the_schema_of_one_that_is_brought_up_to_date(engine, stored, tmp_path, request):
    url = None if engine == "sqlite" else request.getfixturevalue("postgresql").new_schema()
    open_database(tmp_path, url).close()
    open_database(*stored).close()
    assert schema_of(tmp_path, url) == schema_of(*stored)


@BOTH_ENGINES
def test_a_stored_database_is_brought_up_to_date_once_and_serves(stored, clock):
    folder, url = stored
    before = rows_of(folder, url)
    assert all(before.values())
    open_database(folder, url).close()
    after = rows_of(folder, url), schema_of(folder, url)
    open_database(folder, url).close()
    assert (rows_of(folder, url), schema_of(folder, url)) == after
    assert {name: after[0][name] for name in TABLES[3:]} == {name: before[name] for name in TABLES[3:]}
    assert [row[: len(old)] for row, old in zip(after[0]["checks"], before["checks"], strict=True)] == before["checks"]
    assert len(after[0]["alerts"]) == len(before["alerts"])
    service = service_of(Config(data=folder, database=url, port=0), clock)
    app = App(service, clock)
    first, late, _ = app.json("GET", "/checks", key=CHECKS_KEY)["checks"]
    assert (first["status"], first["ping_count"], late["status"]) == ("on_time", 1, "overdue")
    assert app.json("GET", f"/ping/{late['id']}")["recovered"]
    assert app("DELETE", f"/checks/{first['id']}", key=CHECKS_KEY).status == 204
    assert len(app.json("GET", "/checks", key=CHECKS_KEY)["checks"]) == 2
    service.close()
    assert sorted(rows_of(folder, url)["totals_by_status"]) == [("on_time", 2), ("overdue", 0)]


@BOTH_ENGINES
def test_waiting_alerts_of_a_stored_database_tell_what_their_bodies_told(stored, clock):
    """Its first check has an overdue alert from before its first ping, and a recovery after it."""
    folder, url = stored
    database = open_database(folder, url)
    messages = [Alerts(database, BASE_URL).message(seq, NOW) for seq in (1, 3)]
    database.close()
    overdue, recovered = (json.loads(message.body) for message in messages)
    check = overdue["data"]["check"]
    assert overdue["timestamp"] == "2027-01-15T08:00:10Z"
    assert (check["status"], check["last_ping_at"], check["deadline_at"]) == ("overdue", None, "2027-01-15 08:00:01")
    assert check["ping_count"] == 0
    said = '"check 1" is overdue: 9 seconds late since 2027-01-15 08:00 UTC; no ping yet. '
    assert overdue["text"] == said + overdue["data"]["url"]
    check = recovered["data"]["check"]
    assert (check["status"], check["last_ping_at"], check["ping_count"]) == ("on_time", "2027-01-15 08:00:10", 1)
    # How long the outage was is not known.
    said = '"check 1" has recovered; next ping expected by 2027-01-15 08:00 UTC. '
    assert recovered["text"] == said + recovered["data"]["url"]


@BOTH_ENGINES
def test_an_outage_of_a_stored_database_keeps_when_it_began_and_why(stored):
    open_database(*stored).close()
    with connect(*stored) as connection:
        sql = "SELECT overdue_at, deadline_at, overdue_deadline_at, overdue_reason FROM checks WHERE status = 'overdue'"
        checks = connection.execute(sql).fetchall()
        sql = "SELECT type, reason, late_seconds, overdue_seconds FROM alerts ORDER BY seq"
        told = connection.execute(sql).fetchall()
    late_at = 1_800_000_002
    assert [tuple(row) for row in checks] == [(1_800_000_010, late_at, late_at, "late")]
    assert [tuple(row) for row in told] == [
        ("check.overdue", "late", 9, 0),
        ("check.overdue", "late", 8, 0),
        ("check.recovered", "late", 0, 0),
        ("check.test", "late", 0, 0),
    ]


@BOTH_ENGINES
def test_keys_of_a_stored_database_count_as_used_when_it_was_brought_up_to_date(stored):
    began = time.time()
    open_database(*stored).close()
    with connect(*stored) as connection:
        ((first, last),) = connection.execute("SELECT min(used_at), max(used_at) FROM keys").fetchall()
    assert began - 2 < first <= last < time.time() + 2


def make_older(folder, url):
    with connect(folder, url) as connection:
        if url is None:
            connection.execute(f"PRAGMA user_version = {BASELINE - 1}")
        else:
            connection.execute(f"DELETE FROM cardbeat_schema WHERE version >= {BASELINE}")


@BOTH_ENGINES
@pytest.mark.parametrize("command", [["serve", "--port", "0"], ["keys", "list"], ["keys", "create"]])
def test_an_older_schema_is_refused_in_one_line_and_left_as_it_is(engine, stored, capsys, monkeypatch, command):
    make_older(*stored)
    before = rows_of(*stored), schema_of(*stored)
    folder, url = stored
    monkeypatch.setenv("CARDBEAT_DATABASE", url or "")
    # In a process of its own: `serve` leaves a watchdog that ends its process after a signal, so after one of any test.
    ran = subprocess.run(
        [sys.executable, "-m", "cardbeat", *command, "--data", folder],
        cwd=ROOT,
        env={**clean_environment(), "CARDBEAT_DATABASE": url or ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 2
    name = folder / sqlite_file.FILE_NAME if url is None else "the database"
    assert ran.stderr == (
        f"cardbeat: {name} was written by an older cardbeat (schema 6), and 1.0.0 is the last version that brings it"
        " up to date; start that one once, then this one\n"
    )
    assert (rows_of(*stored), schema_of(*stored)) == before
    assert cli.main(["doctor", "--data", str(folder)]) == 1
    assert "problem  database: " in (told := capsys.readouterr().out)
    assert "start that one once, then this one" in told


def test_a_file_of_an_older_schema_keeps_every_byte(tmp_path):
    open_database(tmp_path).close()
    make_older(tmp_path, None)
    before = (tmp_path / sqlite_file.FILE_NAME).read_bytes()
    with pytest.raises(StartupError, match="older cardbeat"):
        open_database(tmp_path)
    assert (tmp_path / sqlite_file.FILE_NAME).read_bytes() == before


@BOTH_ENGINES
def test_a_backup_of_an_older_schema_is_not_restored(new_url, tmp_path, capsys, monkeypatch):
    open_database(tmp_path / "old").close()
    make_older(tmp_path / "old", None)
    monkeypatch.setenv("CARDBEAT_DATABASE", new_url or "")
    backup = str(tmp_path / "old" / sqlite_file.FILE_NAME)
    assert cli.main(["restore", backup, "--data", str(tmp_path / "new")]) == 2
    told = capsys.readouterr().err
    assert told.endswith("1.0.0 is the last version that brings it up to date; nothing was restored\n")
    assert not (tmp_path / "new").exists()


def test_a_backup_of_schema_7_is_restored_as_serving_would_bring_it_up_to_date(tmp_path):
    script = Path(__file__).with_name(f"schema_{BASELINE}_sqlite.sql").read_text()
    for name in ("served", "backup"):
        (tmp_path / name).mkdir(0o700)
        with connect(tmp_path / name, None) as connection:
            connection.executescript(script)
    open_database(tmp_path / "served").close()
    assert cli.main(["restore", f"{tmp_path}/backup/cardbeat.db", "--data", f"{tmp_path}/new"]) == 0
    found, expected = (rows_of(tmp_path / name, None) for name in ("new", "served"))
    for rows in (found, expected):
        rows["keys"] = [row[:12] + row[13:] for row in rows["keys"]]  # without the time of the migration
    assert found == expected
    assert schema_of(tmp_path / "new", None)[0] == schema_of(tmp_path / "served", None)[0]
    with connect(tmp_path / "new", None) as connection:
        assert dict(connection.execute("SELECT * FROM sqlite_sequence")) == {"checks": 4, "alerts": 4, "moves": 1}


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
    """Gives the program one more script."""
    return lambda script: further_scripts(monkeypatch, "sqlite", script)


def rows(folder):
    """All rows, each without what the next schema added."""
    database = open_database(folder)
    with database.read() as connection:
        found = {}
        for table in ("keys", "checks", "alerts", "monitor"):
            selected = connection.execute(f"SELECT * FROM {table}").fetchall()
            found[table] = [{name: row[name] for name in row.keys() if name != "note"} for row in selected]  # noqa: SIM118
    database.close()
    return found


def version(folder):
    with connect(folder, None) as connection:
        return connection.execute("PRAGMA user_version").fetchone()[0]


def test_every_row_survives_even_the_rebuilding_of_a_table_that_others_refer_to(filled, next_schema):
    before = rows(filled)
    assert all(before.values())
    next_schema(REBUILD)
    assert rows(filled) == before
    assert version(filled) == NEWEST + 1
    assert why_refused(filled / sqlite_file.FILE_NAME) == []


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


@pytest.mark.postgresql
def test_nor_are_those_under_a_node(stored, engine):
    folder, url = stored
    if engine == "sqlite":
        pytest.skip("as the test above")
    before = schema_of(folder, url)
    with connect(folder, url) as connection:
        until = "extract(epoch FROM clock_timestamp()) + 600"
        connection.execute("DELETE FROM leases")
        connection.execute(f"INSERT INTO leases (name, holder, epoch, until) VALUES ('delivery', 'a', 1, {until})")
    with pytest.raises(StartupError, match="a server of an older version uses"):
        open_database(folder, url)
    assert schema_of(folder, url) == before
    with connect(folder, url) as connection:
        connection.execute("UPDATE leases SET until = 0")
    open_database(folder, url).close()


def test_the_tables_under_a_running_server_are_not_changed(filled, next_schema, monkeypatch, capsys):
    """It would go on with the statements of its own version."""
    with contextlib.closing(open_database(filled)) as server:
        lease = server.lease()
        assert lease.take()
        # Of the same version.
        assert cli.main(["keys", "list", "--data", str(filled)]) == 0
        next_schema(REBUILD)
        with pytest.raises(StartupError, match="a server of an older version uses"):
            open_database(filled)
        assert cli.main(["keys", "list", "--data", str(filled)]) == 2
        told = capsys.readouterr().err
        assert told.endswith("; stop it, and start the server with this version first\n")
        assert version(filled) == NEWEST
        lease.release()
    open_database(filled).close()
    assert version(filled) == NEWEST + 1


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
