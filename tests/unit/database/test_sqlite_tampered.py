"""A database file that others made or changed: `restore` and `serve` run nothing of it, and say what is wrong."""

import contextlib
import itertools
import os
import re
import shutil
import sqlite3
import stat
import threading
import time
from pathlib import Path
from random import Random

import pytest

from cardbeat import cli
from cardbeat.database import open_database
from cardbeat.database.schema import TABLES
from cardbeat.database.sqlite import rows
from cardbeat.database.sqlite.backup import back_up
from cardbeat.database.sqlite.file import FILE_NAME
from cardbeat.database.sqlite.restore import restore
from cardbeat.database.sqlite.rows import MORE_RULES, RULES, why_refused
from cardbeat.errors import StartupError
from cardbeat.heartbeat.check import Check
from tests.heart import Heart
from tests.support import FakeClock, wait_until
from tests.systems import LINKS, MODES, WINDOWS

NOON = 1_800_014_400
ENDLESS = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
SLOW = f"('{'a' * 60}' LIKE '{'%a' * 20}%b')"
"""An expression that takes longer than anybody waits, without a loop that SQLite could interrupt."""


@contextlib.contextmanager
def opened(path):
    connection = sqlite3.connect(path, isolation_level=None)
    with contextlib.closing(connection):
        yield connection


def run(script):
    """What spoils a file by SQL, also by writing its schema."""

    def spoil(path):
        with opened(path) as connection:
            connection.executescript(f"PRAGMA writable_schema = ON; PRAGMA foreign_keys = OFF; {script}")

    return spoil


def edited(table, before, after):
    """What changes the stored text of a table."""
    return run(f"UPDATE sqlite_schema SET sql = replace(sql, '{before}', '{after}') WHERE name = '{table}';")


def loose(table, statement):
    """What stores values that a strict table refuses."""
    return run(
        f"CREATE TABLE kept_text AS SELECT sql FROM sqlite_schema WHERE name = '{table}';"
        f"UPDATE sqlite_schema SET sql = replace(sql, 'STRICT', '') WHERE name = '{table}';"
        "PRAGMA schema_version = 900;"
        f"PRAGMA ignore_check_constraints = ON; {statement};"
        f"UPDATE sqlite_schema SET sql = (SELECT sql FROM kept_text) WHERE name = '{table}';"
        "DROP TABLE kept_text; PRAGMA schema_version = 901;"
    )


FOREIGN = {
    "a trigger that never ends": run(
        f"CREATE TRIGGER x AFTER INSERT ON keys BEGIN INSERT INTO monitor SELECT i, i FROM ({ENDLESS} SELECT i FROM n);"
        " END"
    ),
    "a view in the place of a table": run("DROP TABLE keys; CREATE VIEW keys AS SELECT 1 AS id, 'cards' AS scope"),
    "a view that never ends": run(f"DROP TABLE keys; CREATE VIEW keys AS {ENDLESS} SELECT i AS id FROM n"),
    "one more view": run(f"CREATE VIEW more AS {ENDLESS} SELECT i FROM n"),
    "a missing table": run("DROP TABLE tests_taken"),
    "a missing index": run("DROP INDEX alerts_due"),
    "a missing trigger": run("DROP TRIGGER checks_deleted"),
    "one more table": run("CREATE TABLE more (a)"),
    "one more index": run("CREATE INDEX more ON checks (name)"),
    "an index of an expression": run(f"CREATE INDEX more ON checks ((name LIKE '{'%a' * 20}%b'))"),
    "a generated column": run(f"ALTER TABLE keys ADD COLUMN more AS {SLOW} VIRTUAL"),
    "a virtual table": run("CREATE VIRTUAL TABLE more USING fts5 (a)"),
    "a check that computes": edited("keys", "scope IN (''cards'', ''checks'')", SLOW.replace("'", "''")),
    "a default that computes": edited("keys", "tier                     TEXT", "tier TEXT DEFAULT (random())"),
    "a table without its types": edited("keys", "STRICT", ""),
    "a table that is the schema": run("UPDATE sqlite_schema SET rootpage = 1 WHERE name = 'monitor'"),
    "two tables in one place": run(
        "UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM sqlite_schema WHERE name = 'keys')"
        " WHERE name = 'leases'"
    ),
    "a table twice": run(
        "INSERT INTO sqlite_schema SELECT * FROM sqlite_schema WHERE name = 'monitor' AND type = 'table'"
    ),
    "a name that is no text": run("UPDATE sqlite_schema SET name = CAST(X'ff61' AS TEXT) WHERE name = 'alerts_due'"),
    "a text that is none": run("UPDATE sqlite_schema SET sql = CAST(X'ff61' AS TEXT) WHERE name = 'keys'"),
    "a text of 10 MB": run("UPDATE sqlite_schema SET sql = sql || printf('%.10000000c', ' ') WHERE name = 'keys'"),
}


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A folder with `data`, whose database has rows of most kinds, and `backup.db`; and the time then."""
    folder, clock = tmp_path_factory.mktemp("filled"), FakeClock()
    with contextlib.closing(open_database(folder / "data")) as database:
        heart = Heart(database, clock)
        checks = [heart.create(1 + number) for number in range(5)]
        heart.pass_time(10)
        heart.sweep.sweep_once()
        heart.ping(checks[0])
        heart.checks.test_alert(heart.key.id, checks[1].id).wait()
    back_up(folder / "data", folder / "backup.db")
    return folder, clock.now


@pytest.fixture
def data(filled, tmp_path, clock):
    """The data folder of this test; the backup beside it is `backup`."""
    folder, clock.now = filled
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    return tmp_path / "data"


@pytest.fixture
def backup(data):
    return data.with_name("backup.db")


def content(folder):
    """What a restore must not change: all but the lock file that it takes."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "delivery.lock"}


def refused(data, backup):
    before = content(data)
    with pytest.raises(StartupError) as caught:
        restore(data, backup, NOON)
    assert content(data) == before
    told = str(caught.value)
    assert told.endswith("; nothing was restored")
    assert told.isprintable()
    return told


@pytest.mark.parametrize("name", FOREIGN)
def test_a_file_with_another_schema_is_refused(data, backup, name):
    FOREIGN[name](backup)
    assert str(backup) in refused(data, backup)


VALUES = {
    "keys.seq": "seq = 9223372036854775807",
    "keys.id": "id = 'key'",
    "keys.tier": "tier = char(27) || '[31m'",
    "keys.email": "email = CAST(X'ff' AS TEXT)",
    "keys.prefix": "prefix = ''",
    "keys.hash": "hash = X'00'",
    "keys.webhook_secret": "webhook_secret = 'whsec_a'",
    "keys.webhook_secret ": "webhook_secret = NULL",
    "keys.created_at": "created_at = -1",
    "keys.revoked_at": "revoked_at = 9000000000000",
    "keys.old_webhook_secret": "old_webhook_secret = ''",
    "keys.old_webhook_secret_until": "old_webhook_secret_until = -1",
    "keys.used_at": "used_at = 9000000000000",
    "keys.read_prefix": "read_prefix = 'a' WHERE scope = 'checks'",
    "keys.read_hash": "read_hash = X'00', read_prefix = 'sk_aaaaa' WHERE scope = 'checks'",
    "keys.read_hash ": "read_hash = zeroblob(32) WHERE scope = 'checks'",
    "keys.read_hash  ": "scope = 'cards', read_hash = zeroblob(32), read_prefix = 'sk_aaaaa' WHERE scope = 'checks'",
    "checks.seq": "seq = 9000000000000000 WHERE seq = 5",
    "checks.id": "id = upper(id) WHERE seq = 5",
    "checks.name": "name = 'a' || char(10)",
    "checks.period_seconds": "period_seconds = 0",
    "checks.grace_seconds": "grace_seconds = -1",
    "checks.webhook_url": "webhook_url = 'file:///etc/passwd'",
    "checks.webhook_url ": "webhook_url = 'http://a' || char(0) || ' b'",
    "checks.outage": "outage = -1",
    "checks.clock_from": "clock_from = 253402300800",
    "checks.last_ping_at": "last_ping_at = -1",
    "checks.ping_count": "ping_count = -1",
    "checks.created_at": "created_at = 253402300800",
    "checks.updated_at": "updated_at = -1",
    "checks.version": "version = 9223372036854775807",
    "checks.snoozed_until": f"snoozed_until = {2**33}",
    "checks.repeat_seconds": "repeat_seconds = 0",
    "checks.remind_at": "remind_at = 253402300800",
    "alerts.seq": "seq = 9000000000000000 WHERE seq = 5",
    "alerts.id": "id = 'msg_' || seq",
    "alerts.outage": "outage = -seq",
    "alerts.attempts": "attempts = -1",
    "alerts.last_status": "last_status = 1000",
    "alerts.last_error": "last_error = CAST(X'ff' AS TEXT)",
    "alerts.created_at": "created_at = -1",
    "alerts.next_attempt_at": "next_attempt_at = 253402300800",
    "alerts.outages": "outages = -1",
    "alerts.last_ping_at": "last_ping_at = -1",
    "alerts.deadline_at": "deadline_at = -200000000",
    "alerts.ping_count": "ping_count = -1",
    "monitor.name": "name = CAST(X'ff' AS TEXT) WHERE name = 'last_sweep_at'",
    "monitor.value": "value = 9223372036854775807",
    "monitor.value ": "value = unixepoch() + 6 * 366 * 86400 WHERE name = 'last_sweep_at'",
    "monitor.value  ": "value = 8589934593 WHERE name = 'last_sweep_monotonic'",
    "tests_taken.taken_at": "taken_at = -1",
    "alerts, which refers to a row that checks has not": "check_id = 'none' WHERE seq = 1",
    "tests_taken, which refers to a row that keys has not": "api_key_id = 'none'",
}
"""Where a value stands, or what is wrong with a row, and what puts it there."""


@pytest.mark.parametrize("place", VALUES)
def test_a_value_that_our_code_never_writes_is_refused_with_its_place(data, backup, place):
    table = place.partition(".")[0].partition(",")[0]
    run(f"UPDATE {table} SET {VALUES[place]}")(backup)
    assert re.search(rf"in {place.strip()}( of row \d+)?; ", refused(data, backup))


def test_the_longest_snooze_of_a_server_whose_clock_is_ahead_is_restored(data, backup, clock):
    clock.now += 3 * 366 * 86400
    with contextlib.closing(open_database(data)) as database:
        heart = Heart(database, clock)
        heart.sweep.sweep_once()
        heart.checks.snooze(heart.key.id, heart.create().id, 7_776_000).wait()
    backup.unlink()
    back_up(data, backup)
    assert restore(data, backup, NOON).checks == 6


def insert_credits(*names):
    return run("".join(f"INSERT INTO monitor VALUES ('{name}', 5);" for name in names))


CREDIT = ("credit_seconds", "credit_before", "credit_after_seq")
NEXT = tuple(f"next_{name}" for name in CREDIT)


@pytest.mark.parametrize(
    "names", [CREDIT[:1], CREDIT[1:], NEXT, (*CREDIT, NEXT[0]), (*CREDIT, *(f"next_{name}" for name in NEXT))]
)
def test_a_credit_without_all_its_rows_is_refused(data, backup, names):
    insert_credits(*names)(backup)
    assert "in monitor, where a part of a credit is missing; " in refused(data, backup)


@pytest.mark.parametrize("name", ["next_last_sweep_at", "credit_more"])
def test_a_credit_with_more_rows_is_refused(data, backup, name):
    insert_credits(*CREDIT, name)(backup)
    assert "monitor" in refused(data, backup)


MOST = tuple(f"{'next_' * number}{name}" for number in range(197) for name in (*CREDIT, "credit_older_from"))


@pytest.mark.parametrize("names", [CREDIT, (*CREDIT, "credit_older_from"), CREDIT + NEXT, MOST])
def test_after_a_restore_credits_go_on(data, backup, names, clock):
    insert_credits(*names)(backup)
    restore(data, backup, NOON)
    with contextlib.closing(open_database(data)) as database:
        Heart(database, clock).sweep.credit.give_due(threading.Event())
        with database.read() as connection:
            left = [row[0] for row in connection.execute("SELECT name FROM monitor").fetchall()]
        assert not [name for name in left if "credit" in name]


def test_each_column_has_a_rule_or_limits_itself(data):
    with opened(data / "cardbeat.db") as connection:
        for table in TABLES:
            for _, column, kind, *_ in connection.execute(f"PRAGMA table_info({table})").fetchall():
                ruled = column in RULES.get(table, {}) or column in MORE_RULES.get(table, {}) or kind == "INTEGER"
                limits_itself = column in ("scope", "status", "type", "state", "delivery", "overdue_reason", "reason")
                assert ruled or limits_itself or column in ("api_key_id", "check_id"), column


@pytest.mark.parametrize(
    "spoil",
    [
        loose("checks", "UPDATE checks SET period_seconds = 'soon'"),
        loose("checks", "UPDATE checks SET clock_from = 9223372036854775807"),
        loose("keys", "UPDATE keys SET hash = 5"),
        loose("checks", "UPDATE checks SET status = 'gone'"),
        loose("checks", "UPDATE checks SET name = printf('%.3000000c', 'a')"),
    ],
)
def test_a_value_of_another_type_or_size_is_refused(data, backup, spoil):
    spoil(backup)
    refused(data, backup)


def test_what_counts_up_can_be_restored_again_later(data, backup):
    """The largest numbers that are taken grow by the second, so that those of a later backup are never too large."""
    most = "1000000 * unixepoch()"
    run(
        f"UPDATE checks SET seq = {most}, ping_count = {most}, outage = {most}, version = {most} WHERE seq = 5;"
        f"UPDATE alerts SET attempts = {most}; UPDATE sqlite_sequence SET seq = {most};"
        f"UPDATE monitor SET value = {most} WHERE name IN ('sweeps', 'key_changes')"
    )(backup)
    restore(data, backup, NOON)
    before = int(time.time())
    run(
        "UPDATE checks SET seq = seq + 500, ping_count = ping_count + 500, outage = outage + 500 WHERE ping_count > 1;"
        "UPDATE alerts SET attempts = attempts + 500; UPDATE sqlite_sequence SET seq = seq + 500;"
        "UPDATE monitor SET value = value + 1 WHERE name IN ('sweeps', 'key_changes')"
    )(data / "cardbeat.db")
    back_up(data, backup)
    wait_until(lambda: time.time() >= before + 1)
    assert restore(data, backup, NOON).checks == 5


@pytest.mark.parametrize("value", ["9223372036854775807", "'text'", "-5", "NULL"])
def test_the_next_number_of_a_table_is_not_taken_from_others(data, backup, value, clock):
    run(f"UPDATE sqlite_sequence SET seq = {value}; INSERT INTO sqlite_sequence VALUES ('checks', 7), ('x', 1)")(backup)
    restore(data, backup, NOON)
    with contextlib.closing(open_database(data)) as database:
        assert Heart(database, clock).create().seq == 8


def test_totals_are_counted_and_not_taken_from_the_file(data, backup):
    run("UPDATE totals_by_status SET checks = -7; DELETE FROM totals_by_key")(backup)
    restore(data, backup, NOON)
    with opened(data / "cardbeat.db") as connection:
        assert connection.execute("SELECT * FROM totals_by_status").fetchall() == [("on_time", 1), ("overdue", 4)]
        assert connection.execute("SELECT checks FROM totals_by_key").fetchall() == [(5,)]


def test_nothing_but_rows_comes_from_the_file(data, backup):
    with opened(backup) as connection:
        connection.execute("PRAGMA secure_delete = OFF")
        connection.execute("INSERT INTO monitor VALUES (hex(zeroblob(5000)) || 'gone-away', 1)")
        connection.execute("DELETE FROM monitor WHERE name LIKE '%gone-away'")
        connection.execute("ANALYZE")
        before = {table: connection.execute(f"SELECT * FROM {table}").fetchall() for table in TABLES}
    assert b"gone-away" in backup.read_bytes()
    restore(data, backup, NOON)
    with opened(data / "cardbeat.db") as connection:
        assert {table: connection.execute(f"SELECT * FROM {table}").fetchall() for table in TABLES} == before
        assert connection.execute("SELECT count(*) FROM sqlite_schema WHERE name LIKE 'sqlite_stat%'").fetchone() == (
            0,
        )
    assert b"gone-away" not in (data / "cardbeat.db").read_bytes()


@pytest.mark.skipif(WINDOWS, reason="no such files there")
@pytest.mark.parametrize("end", ["", "-wal", "-journal", "-shm"])
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: os.symlink("/dev/zero", path)])
def test_a_pipe_a_folder_or_a_device_is_refused_before_it_is_read(data, backup, end, make):
    Path(f"{backup}{end}").unlink(missing_ok=True)
    make(f"{backup}{end}")
    assert f"{backup}{end} is not a regular file; " in refused(data, backup)


@pytest.mark.skipif(WINDOWS, reason="no such files there")
@pytest.mark.parametrize(
    "name", ["cardbeat.db.new", "cardbeat.db.new-journal", "cardbeat.db-journal", "cardbeat.db-wal"]
)
@pytest.mark.parametrize("make", [os.mkfifo, lambda path: os.symlink("/dev/zero", path)])
def test_a_pipe_or_a_link_in_the_data_folder_makes_nothing_hang(data, backup, name, make, tmp_path):
    make(data / name)
    (tmp_path / "fresh").mkdir(0o700)
    make(tmp_path / "fresh" / name)
    for folder in (data, tmp_path / "fresh"):
        for use in (lambda folder: open_database(folder).close(), lambda folder: restore(folder, backup, NOON)):
            with contextlib.suppress(StartupError):
                use(folder)


@LINKS
def test_a_link_to_a_backup_is_one(data, backup, tmp_path):
    (tmp_path / "link.db").symlink_to(backup)
    assert restore(data, tmp_path / "link.db", NOON).checks == 5


def interrupted(path):
    """Leave a file and its -journal as a process does that is killed in a write. Returns what they hold."""
    with opened(path) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("PRAGMA cache_size = 1")
        connection.execute("BEGIN")
        connection.execute("UPDATE checks SET name = hex(zeroblob(2000))")
        files = {end: Path(f"{path}{end}").read_bytes() for end in ("", "-journal")}
        connection.execute("ROLLBACK")
    for end, held in files.items():
        Path(f"{path}{end}").write_bytes(held)
    return files


@pytest.mark.parametrize("command", ["serve", "doctor", "restore"])
def test_a_write_that_was_killed_before_the_wal_was_on_is_undone(data, backup, command, capsys):
    interrupted(data / "cardbeat.db")
    if command == "serve":
        open_database(data).close()
    elif command == "doctor":
        cli.main(["doctor", "--data", str(data)])
        assert "sound" in capsys.readouterr().out
    kept = data / "cardbeat.db" if command != "restore" else restore(data, backup, NOON).kept
    with opened(kept) as connection:
        assert connection.execute("SELECT max(length(name)) FROM checks").fetchone() == (len("check 1"),)


def test_a_journal_beside_a_backup_is_never_played_into_it(data, backup):
    """It holds pages of an unfinished transaction, which reading would write into the file."""
    files = interrupted(backup)
    refused(data, backup)
    assert {end: Path(f"{backup}{end}").read_bytes() for end in files} == files


def test_what_stands_in_a_wal_beside_a_backup_is_restored(data, backup):
    with opened(backup) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("UPDATE checks SET name = 'in the wal'")
        shutil.copyfile(f"{backup}-wal", data.with_name("live.db-wal"))
        shutil.copyfile(backup, data.with_name("live.db"))
    restore(data, data.with_name("live.db"), NOON)
    with opened(data / "cardbeat.db") as connection:
        assert connection.execute("SELECT DISTINCT name FROM checks").fetchall() == [("in the wal",)]


def test_a_file_that_grows_while_it_is_read_ends_the_restore_all_the_same(data, backup, monkeypatch):
    def grow():
        with backup.open("ab") as file:
            file.write(b"\xa5" * 4096)

    monkeypatch.setattr(rows, "STEPS_BETWEEN_LOOKS", 100)
    assert restore(data, backup, NOON, grow).checks == 5


def test_a_restore_ends_within_its_time(data, backup, monkeypatch):
    monkeypatch.setattr(rows, "STEPS_BETWEEN_LOOKS", 100)
    ticks = itertools.count(0, 100)
    monkeypatch.setattr(rows.time, "monotonic", lambda: next(ticks))
    assert "could not be read within 30" in refused(data, backup)


def test_a_stop_signal_ends_it_while_rows_are_read(data, backup, monkeypatch):
    monkeypatch.setattr(rows, "STEPS_BETWEEN_LOOKS", 100)
    calls = itertools.count()

    def stop():
        if next(calls) > 20:
            raise StartupError("stopped; nothing was restored")

    before = content(data)
    with pytest.raises(StartupError, match="stopped"):
        restore(data, backup, NOON, stop)
    assert content(data) == before


@pytest.mark.parametrize("size", [1, 100, 4096, 5000, 40_000])
def test_a_file_that_is_cut_is_refused(data, backup, size):
    with backup.open("r+b") as file:
        file.truncate(size)
    refused(data, backup)


def test_damage_anywhere_is_refused_or_does_no_harm(data, backup):
    """Bytes of each page are changed at random. What is restored is then sound, and everything can read it."""
    whole = backup.read_bytes()
    random, told = Random(5), set()
    for _ in range(60):
        spoilt = bytearray(whole)
        for _ in range(random.choice([1, 10, 200])):
            spoilt[random.randrange(len(spoilt))] = random.randrange(256)
        backup.write_bytes(spoilt)
        try:
            restore(data, backup, NOON)
        except StartupError as error:
            told.add(str(error))
        else:
            assert why_refused(data / FILE_NAME) == []
            with contextlib.closing(open_database(data)) as database, database.read() as connection:
                for row in connection.execute("SELECT * FROM checks"):
                    Check.from_row(row).as_json("")
        for kept in data.glob("*.before-restore-*"):
            kept.unlink()
    assert len(told) > 5
    assert [sentence for sentence in told if not sentence.isprintable()] == []


@MODES
@pytest.mark.parametrize(("before", "after"), [(0o644, 0o600), (0o640, 0o640), (0o600, 0o600), (0o666, 0o600)])
def test_what_is_kept_is_private_and_what_is_restored_open_to_no_stranger(data, backup, before, after):
    (data / "cardbeat.db").chmod(before)
    kept = restore(data, backup, NOON).kept
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert stat.S_IMODE((data / "cardbeat.db").stat().st_mode) == after


HARMLESS = {"one more table", "one more index", "one more view", "an index of an expression", "a virtual table"}
UNSEEN = {"two tables in one place"}
"""What only the full check finds."""


@pytest.mark.parametrize("name", sorted(FOREIGN.keys() - {"a text of 10 MB"}))
def test_serving_and_doctor_say_what_is_wrong_with_a_schema(data, name, capsys):
    FOREIGN[name](data / "cardbeat.db")
    cli.main(["doctor", "--data", str(data)])
    (found,) = [line for line in capsys.readouterr().out.splitlines() if " database: " in line]
    assert "sound" not in found
    assert found.startswith("warning " if name in HARMLESS else "problem ")
    if name in HARMLESS:
        assert "cardbeat did not make; " in found
        open_database(data).close()
    elif name not in UNSEEN:
        before = (data / "cardbeat.db").read_bytes()
        with pytest.raises(StartupError):
            open_database(data)
        assert (data / "cardbeat.db").read_bytes() == before


@pytest.mark.parametrize("name", sorted(HARMLESS))
def test_a_backup_leaves_out_what_a_restore_would_refuse(data, tmp_path, name):
    FOREIGN[name](data / "cardbeat.db")
    back_up(data, tmp_path / "again.db")
    restore(tmp_path / "new", tmp_path / "again.db", NOON)
    assert why_refused(tmp_path / "new" / FILE_NAME) == []


def test_a_text_that_is_not_utf_8_stops_no_other_check(data, clock):
    """A disk may change one byte of a name. It is shown as U+FFFD, and can be written again."""
    run("UPDATE checks SET name = CAST(x'6eff' AS TEXT), webhook_url = CAST(x'68ff' AS TEXT)")(data / "cardbeat.db")
    with contextlib.closing(open_database(data)) as database:
        heart = Heart(database, clock)
        check = heart.create(period_seconds=60)
        heart.sweep.sweep_once()
        heart.pass_time(61)
        heart.sweep.sweep_once()
        assert heart.alert_types(check) == ["check.overdue"]
        with database.read() as connection:
            names = {row["name"] for row in connection.execute("SELECT name FROM checks")}
        assert names == {"n\ufffd", check.name}
