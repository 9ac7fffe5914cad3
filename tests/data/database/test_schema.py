"""The schema: a database of 1.0.0 or later is brought up to date, another one is refused as it is."""

import contextlib
import sqlite3
import time
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from cardbeat import cli
from cardbeat.config import Config
from cardbeat.database import open_database
from cardbeat.database.schema import OLDEST, VERSION, WHOLE, script
from cardbeat.database.sqlite.copies import copy_rows
from cardbeat.database.sqlite.file import (
    FILE_NAME,
    make_tables,
    server_locked,
)
from cardbeat.errors import StartupError
from cardbeat.files import read_text
from tests.kit.postgresql import BOTH_ENGINES
from tests.kit.support import GOOD_CHECK, App, service_of

NOW = 1_800_000_000
CHECKS_KEY = "sk_" + 6 * "schema7"
"""Of the stored databases."""
CATALOG = (
    "SELECT relname, attnum, attname, format_type(atttypid, atttypmod), attnotnull, attidentity, attgenerated,"
    " pg_get_expr(adbin, adrelid), reloptions FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid"
    " LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum"
    " WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r' AND attnum > 0 ORDER BY 1, 2",
    "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint"
    " WHERE connamespace = current_schema()::regnamespace ORDER BY 1, 2",
    "SELECT indexname, replace(indexdef, current_schema() || '.', '') FROM pg_indexes"
    " WHERE schemaname = current_schema() ORDER BY 1",
    "SELECT sequencename, start_value, increment_by, cache_size FROM pg_sequences"
    " WHERE schemaname = current_schema() ORDER BY 1",
)
"""All that makes a PostgreSQL schema."""


def connect(folder, url):
    """A connection of the engine's driver alone."""
    if url is None:
        return contextlib.closing(
            sqlite3.connect(folder / FILE_NAME, isolation_level=None)
        )
    return contextlib.closing(psycopg.connect(url, autocommit=True))


@pytest.fixture
def new_url(engine, request):
    """Of a database without tables; None for a file that is not there."""
    return (
        None
        if engine == "sqlite"
        else request.getfixturevalue("postgresql").new_schema()
    )


def store(folder, url, version):
    """Put a database of 1.0.0 in a folder, or at a URL, brought to a version as later releases did it."""
    engine = "sqlite" if url is None else "postgresql"
    folder.mkdir(0o700)
    with connect(folder, url) as connection:
        run = (
            connection.executescript
            if url is None
            else connection.execute
        )
        run(
            Path(__file__).with_name(f"schema_7_{engine}.sql").read_text()
        )
        last = version if url else min(version, WHOLE - 1)
        for number in range(8, last + 1):
            run(script(engine, number))
            noted = (
                f"INSERT INTO cardbeat_schema (version) VALUES ({number})"
            )
            run(
                f"PRAGMA user_version = {number}"
                if url is None
                else noted
            )
    if last < version:
        old = (folder / FILE_NAME).rename(folder.with_name("old"))
        with connect(folder, url) as connection:
            make_tables(connection, version)
            connection.create_function("host_of", 1, host_of)
            connection.execute("ATTACH ? AS old", (str(old),))
            connection.executescript(
                read_text("database/sqlite/from_9.sql")
            )
    return folder, url


def host_of(url):
    return url and urlsplit(url).hostname


@pytest.fixture(params=range(OLDEST, VERSION))
def stored(new_url, tmp_path, request):
    return store(tmp_path / "stored", new_url, request.param)


def schema_of(folder, url):
    with connect(folder, url) as connection:
        if url is not None:
            return [connection.execute(sql).fetchall() for sql in CATALOG]
        return (
            connection.execute(
                "SELECT * FROM sqlite_schema ORDER BY name"
            ).fetchall(),
            connection.execute("PRAGMA user_version").fetchone(),
            connection.execute("PRAGMA application_id").fetchone(),
        )


def rows_of(place, table, columns="*"):
    with connect(*place) as connection:
        sql = f"SELECT {columns} FROM {table} ORDER BY 1"
        return [*map(tuple, connection.execute(sql).fetchall())]


@BOTH_ENGINES
def test_a_stored_database_gets_the_schema_of_a_new_one_once_and_keeps_its_rows(
    engine, stored, tmp_path, request
):
    columns = {
        "checks": "seq, id, name, status, clock_from, deadline_at, ping_count, version",
        "alerts": "seq, id, check_id, type, state",
    }
    before = {
        table: rows_of(stored, table, names)
        for table, names in columns.items()
    }
    url = (
        None
        if engine == "sqlite"
        else request.getfixturevalue("postgresql").new_schema()
    )
    open_database(tmp_path, url).close()
    made = schema_of(tmp_path, url)
    for _ in range(2):
        open_database(*stored).close()
        found = schema_of(*stored)
        if url is None:
            # Text by text; only the pages are others.
            assert [row[:3] + row[4:] for row in made[0]] == [
                row[:3] + row[4:] for row in found[0]
            ]
        else:
            assert made == found
        assert {
            table: rows_of(stored, table, names)
            for table, names in columns.items()
        } == before
    assert all(before.values())


@BOTH_ENGINES
def test_a_stored_database_serves(stored, clock):
    folder, url = stored
    service = service_of(Config(data=folder, database=url, port=0), clock)
    app = App(service, clock)
    first, late, _ = app.json("GET", "/checks", key=CHECKS_KEY)["checks"]
    assert first["status"] == "on_time"
    assert first["ping_count"] == 1
    assert late["status"] == "overdue"
    assert app.json("GET", f"/ping/{late['id']}")["recovered"]
    assert (
        app("DELETE", f"/checks/{first['id']}", key=CHECKS_KEY).status
        == 204
    )
    assert (
        app("POST", "/checks", GOOD_CHECK, key=CHECKS_KEY).status == 201
    )
    service.close()


def test_a_column_that_the_old_file_lacks_has_its_default(tmp_path):
    store(tmp_path / "stored", None, WHOLE)
    change(
        (tmp_path / "stored", None),
        "ALTER TABLE checks DROP COLUMN outage",
    )
    old = rows_of((tmp_path / "stored", None), "checks", "id, name")
    (tmp_path / "new" / "beside").mkdir(parents=True)
    copy_rows(
        tmp_path / "stored" / FILE_NAME,
        tmp_path / "new" / "beside" / FILE_NAME,
    )
    new = rows_of(
        (tmp_path / "new" / "beside", None), "checks", "id, name, outage"
    )
    assert new == [(*row, 0) for row in old]


def noted(place, name):
    return dict(rows_of(place, "monitor"))[name]


def change(place, sql):
    with connect(*place) as connection:
        connection.execute(sql)


@BOTH_ENGINES
@pytest.mark.parametrize("stored", [7, 8, 9], indirect=True)
def test_what_version_10_asks_of_a_row_is_found_out(stored):
    (_, *first), (_, *late), _ = rows_of(
        stored, "checks", "seq, id, api_key_id"
    )
    opened_at = time.time()
    change(
        stored,
        "UPDATE checks SET delivery = 'ok', webhook_url = 'http://a@[FE::1]:8/x' WHERE seq = 1",
    )
    open_database(*stored).close()
    began = "overdue_at, overdue_deadline_at, overdue_reason"
    assert rows_of(stored, "checks WHERE overdue_at > 0", began) == [
        (NOW + 10, NOW + 2, "late")
    ]
    outages = rows_of(
        stored,
        "outages",
        "check_id, outage, began_at, noticed_at, ended_at, reason",
    )
    assert outages == [(late[0], 1, NOW + 2, NOW + 10, None, "late")]
    told = rows_of(
        stored, "alerts", "seq, reason, late_seconds, overdue_seconds"
    )
    assert told == [
        (1, "late", 9, 0),
        (2, "late", 8, 0),
        (3, "late", 0, 0),
        (4, "late", 0, 0),
    ]
    posted = rows_of(
        stored,
        "alerts WHERE seq < 3",
        "seq, check_id, key_id, receiver, is_new, asked_until",
    )
    assert posted == [
        (1, *first, "fe::1", 0, None),
        (2, *late, "hooks.example", 1, None),
    ]
    kept_since = noted(stored, "outages_kept_since")
    assert opened_at - 60 < kept_since < time.time() + 2


def set_version(folder, url, version):
    with connect(folder, url) as connection:
        if url is None:
            connection.execute(f"PRAGMA user_version = {version}")
        else:
            connection.execute("DELETE FROM cardbeat_schema")
            connection.execute(
                f"INSERT INTO cardbeat_schema (version) VALUES ({version})"
            )


@BOTH_ENGINES
@pytest.mark.parametrize("version", [6, VERSION + 1])
def test_an_older_or_newer_schema_is_refused_and_left_as_it_is(
    new_url, tmp_path, capsys, monkeypatch, version
):
    advice = (
        "1.0.0 is the last version that"
        if version == 6
        else "run that version"
    )
    place = tmp_path / "stored", new_url
    open_database(*place).close()
    set_version(*place, version)
    before = schema_of(*place)
    monkeypatch.setenv("CARDBEAT_DATABASE", new_url or "")
    for command in (
        ["serve", "--port", "0"],
        ["keys", "list"],
        ["keys", "create"],
    ):
        assert cli.main([*command, "--data", str(place[0])]) == 2
        told = capsys.readouterr().err
        assert told.count("\n") == 1
        assert advice in told
    assert schema_of(*place) == before
    assert cli.main(["doctor", "--data", str(place[0])]) == 1
    assert advice in capsys.readouterr().out


@BOTH_ENGINES
@pytest.mark.parametrize("version", range(OLDEST, VERSION))
def test_a_backup_of_an_older_version_is_restored_up_to_date(
    new_url, tmp_path, monkeypatch, version
):
    folder, _ = store(tmp_path / "backup", None, version)
    monkeypatch.setenv("CARDBEAT_DATABASE", new_url or "")
    assert (
        cli.main(
            [
                "restore",
                str(folder / FILE_NAME),
                "--data",
                str(tmp_path / "new"),
            ]
        )
        == 0
    )
    place = tmp_path / "new", new_url
    stored = rows_of(place, "checks", "seq, name")
    names = [name for _, name in stored]
    assert names == ["check 1", "check 2", "check 3"]
    assert rows_of(place, "outages", "began_at, noticed_at") == [
        (NOW + 2, NOW + 10)
    ]
    open_database(*place).close()


@BOTH_ENGINES
def test_the_tables_under_a_running_server_of_an_older_version_stay(
    new_url, tmp_path
):
    """It would go on with the statements of its own version."""
    place = store(tmp_path / "stored", new_url, 9)
    held = contextlib.nullcontext()
    if new_url is None:
        held = server_locked(place[0])
    else:
        with connect(*place) as connection:
            columns = "INSERT INTO leases (name, holder, epoch, until)"
            connection.execute(
                f"{columns} VALUES ('monitor', 'a', 1, extract(epoch FROM clock_timestamp()) + 600)"
            )
    refusal = r"another server uses|a server of an older version uses"
    with held, pytest.raises(StartupError, match=refusal):
        open_database(*place)
    if new_url is None:
        assert rows_of(place, "pragma_user_version") == [(9,)]
    else:
        assert rows_of(place, "cardbeat_schema", "max(version)") == [(9,)]
        with connect(*place) as connection:
            connection.execute("UPDATE leases SET until = 0")
    open_database(*place).close()
