"""A backup put in the place of a database: checked before, and what was there is kept."""

import contextlib
import os
import shutil
import sqlite3
import stat
import threading
from pathlib import Path

import pytest

from cardbeat import cli
from cardbeat.config import FREE
from cardbeat.database import open_database
from cardbeat.database.sqlite import restore as sqlite_restore
from cardbeat.database.sqlite import rows
from cardbeat.database.sqlite.backup import back_up
from cardbeat.database.sqlite.file import FILE_NAME, connect
from cardbeat.database.sqlite.restore import restore
from cardbeat.database.sqlite.rows import why_refused
from cardbeat.errors import StartupError
from cardbeat.keys.store import Keys
from tests.heart import Heart
from tests.systems import LINKS, MISSING, MODES, ROOT, WINDOWS

NOON = 1_800_014_400
KEPT = "cardbeat.db.before-restore-20270115-120000"


def issue(folder: Path, email: str) -> None:
    database = open_database(folder)
    Keys(database, lambda: NOON, {"free": FREE}).issue(email).wait()
    database.close()


def emails(path: Path) -> list[str]:
    with sqlite3.connect(path) as connection:
        found = [row[0] for row in connection.execute("SELECT email FROM keys ORDER BY seq")]
    connection.close()
    return found


@pytest.fixture
def data(tmp_path):
    """A data folder with a key that the backup has not."""
    issue(tmp_path / "data", "a@old")
    back_up(tmp_path / "data", tmp_path / "backup.db")
    issue(tmp_path / "data", "b@new")
    return tmp_path / "data"


@pytest.fixture
def backup(data):
    return data.with_name("backup.db")


def unchanged(data):
    return emails(data / "cardbeat.db") == ["a@old", "b@new"] and not list(data.glob("*.before-restore-*"))


def test_the_backup_takes_the_place_of_what_is_kept(data, backup):
    kept = restore(data, backup, NOON).kept
    assert kept == data / KEPT
    assert emails(data / "cardbeat.db") == ["a@old"]
    assert emails(kept) == ["a@old", "b@new"]
    assert emails(backup) == ["a@old"]
    assert {path.name for path in data.iterdir()} == {"cardbeat.db", KEPT, "writer.lock", "delivery.lock"}
    open_database(data).close()
    assert why_refused(data / FILE_NAME) == []


def test_checks_whose_clock_was_set_back_to_1970_are_restored(data, clock):
    """As on a small computer without a battery that starts before it knows the time."""
    with contextlib.closing(open_database(data)) as database:
        heart = Heart(database, clock)
        late, waiting = heart.create(period_seconds=3600), heart.create(period_seconds=7200)
        heart.pass_time(3590)
        heart.sweep.sweep_once(heart.sweep.credit.give_due(threading.Event()))
        clock.now = 5
        sweep = heart.new_sweep()
        sweep.sweep_once(sweep.credit.give_due(threading.Event()))
        heart.pass_time(60)
        sweep.sweep_once(sweep.credit.give_due(threading.Event()))
        assert [heart.status(check) for check in (late, waiting)] == ["overdue", "on_time"]
        assert heart.read(late).clock_from < 0
    back_up(data, data.with_name("after.db"))
    assert restore(data, data.with_name("after.db"), NOON).checks == 2


def test_what_is_kept_can_be_restored_itself(data, backup):
    kept = restore(data, backup, NOON).kept
    again = restore(data, kept, NOON).kept
    assert emails(data / "cardbeat.db") == ["a@old", "b@new"]
    assert again.name.endswith("-120001")
    assert emails(again) == ["a@old"]


def test_it_makes_a_data_folder_on_a_new_host(tmp_path, backup):
    assert restore(tmp_path / "new" / "data", backup, NOON).kept is None
    assert emails(tmp_path / "new" / "data" / "cardbeat.db") == ["a@old"]
    assert WINDOWS or stat.S_IMODE((tmp_path / "new" / "data").stat().st_mode) == 0o700
    assert WINDOWS or stat.S_IMODE((tmp_path / "new" / "data" / "cardbeat.db").stat().st_mode) == 0o600


@LINKS
def test_a_link_to_another_folder_stays_one(data, backup, tmp_path):
    (tmp_path / "disk").mkdir()
    (data / "cardbeat.db").rename(tmp_path / "disk" / "real.db")
    (data / "cardbeat.db").symlink_to(tmp_path / "disk" / "real.db")
    kept = restore(data, backup, NOON).kept
    assert (data / "cardbeat.db").is_symlink()
    assert emails(tmp_path / "disk" / "real.db") == ["a@old"]
    assert kept.parent == tmp_path / "disk"
    assert emails(kept) == ["a@old", "b@new"]


def left_with_a_wal(data):
    """The files as a server leaves them that was killed: the last change stands in the -wal alone."""
    connection = connect(data / "cardbeat.db")
    connection.execute("UPDATE keys SET email = 'c@wal' WHERE email = 'b@new'")
    files = {path.name: path.read_bytes() for path in data.glob("cardbeat.db*")}
    connection.close()
    for name, content in files.items():
        (data / name).write_bytes(content)
    assert (data / "cardbeat.db-wal").stat().st_size > 0


def test_what_stood_in_the_wal_is_kept_too(data, backup):
    left_with_a_wal(data)
    kept = restore(data, backup, NOON).kept
    assert not (data / "cardbeat.db-wal").exists()
    assert emails(data / "cardbeat.db") == ["a@old"]
    assert emails(kept) == ["a@old", "c@wal"]


def test_of_a_damaged_database_every_byte_is_kept(data, backup):
    left_with_a_wal(data)
    (data / "cardbeat.db").write_bytes(b"no database " * 500)
    wal = (data / "cardbeat.db-wal").read_bytes()
    kept = restore(data, backup, NOON).kept
    assert kept.read_bytes() == b"no database " * 500
    assert Path(f"{kept}-wal").read_bytes() == wal
    assert emails(data / "cardbeat.db") == ["a@old"]
    assert not (data / "cardbeat.db-wal").exists()


@pytest.mark.parametrize(
    "spoil",
    [
        lambda content: b"no database " * 500,
        lambda content: bytes(4096) + content[4096:],
        lambda content: content[:100] + b"\xa5" * (len(content) - 100),
        lambda content: content[:-5000],
    ],
)
@pytest.mark.parametrize("has_wal", [False, True])
def test_a_damaged_database_is_kept_too_that_is_too_large_to_be_checked_whole(
    data, backup, monkeypatch, spoil, has_wal
):
    monkeypatch.setattr("cardbeat.database.sqlite.file.QUICK_CHECK_BYTES", 0)
    if has_wal:
        left_with_a_wal(data)
    path = data / "cardbeat.db"
    path.write_bytes(spoil(path.read_bytes()))
    kept = restore(data, backup, NOON).kept
    # What stood in the -wal is in one of the two.
    assert (b"c@wal" in b"".join(it.read_bytes() for it in data.glob(f"{kept.name}*"))) == has_wal
    assert emails(path) == ["a@old"]
    assert not Path(f"{path}-wal").exists()


def run(statement):
    def spoil(path):
        with contextlib.closing(sqlite3.connect(path)) as connection:
            connection.execute(statement)
            connection.commit()

    return spoil


@pytest.mark.parametrize(
    "spoil",
    [
        lambda _path: None,
        run("PRAGMA user_version = 999"),
        run("PRAGMA application_id = 5"),
        run("CREATE TRIGGER more AFTER INSERT ON keys BEGIN SELECT 1; END"),
        run("DROP INDEX alerts_due"),
    ],
)
def test_at_any_moment_the_folder_holds_a_whole_database(data, backup, monkeypatch, spoil):
    """What a kill at that moment would leave."""
    spoil(data / "cardbeat.db")
    left_with_a_wal(data)
    found = []

    def seen(name):
        act = getattr(sqlite_restore, name)

        def look_and_act(*paths):
            shutil.copytree(data, data.with_name(f"copy{len(found)}"))
            found.append(emails(data.with_name(f"copy{len(found)}") / "cardbeat.db"))
            act(*paths)

        return look_and_act

    for name in ("replace", "remove", "sync_folder"):
        monkeypatch.setattr(sqlite_restore, name, seen(name))
    restore(data, backup, NOON)
    assert found[0] == ["a@old", "c@wal"]
    assert {tuple(emails) for emails in found} == {("a@old", "c@wal"), ("a@old",)}


@pytest.mark.parametrize("end", ["-wal", "-journal", "-shm"])
@pytest.mark.parametrize("is_damaged", [False, True])
def test_a_folder_beside_the_database_is_refused_before_anything_is_touched(data, backup, end, is_damaged):
    left_with_a_wal(data)
    if is_damaged:
        damaged(data / "cardbeat.db")
    Path(f"{data}/cardbeat.db{end}").unlink(missing_ok=True)
    Path(f"{data}/cardbeat.db{end}").mkdir()
    before = {path.name: path.is_dir() or path.read_bytes() for path in data.iterdir()}
    with pytest.raises(StartupError, match=f"{end} is not a regular file; move it away"):
        restore(data, backup, NOON)
    assert {path.name: path.is_dir() or path.read_bytes() for path in data.iterdir()} == before


@pytest.mark.parametrize("fails", ["replace", "remove"])
def test_a_restore_that_fails_puts_the_wal_of_a_damaged_database_back(data, backup, monkeypatch, fails):
    left_with_a_wal(data)
    (data / "cardbeat.db").write_bytes(b"no database " * 500)
    before = {path.name: path.read_bytes() for path in data.glob("cardbeat.db*") if not path.name.endswith("-shm")}
    act = getattr(sqlite_restore, fails)

    def refuse(path, *target):
        if str(path).endswith(("copy", "-shm")):
            raise OSError(5, "Input/output error")
        act(path, *target)

    monkeypatch.setattr(sqlite_restore, fails, refuse)
    with pytest.raises(StartupError, match="Input/output error; nothing was restored"):
        restore(data, backup, NOON)
    (data / "cardbeat.db-shm").unlink(missing_ok=True)
    assert {path.name: path.read_bytes() for path in data.glob("cardbeat.db*")} == before


def test_an_empty_file_is_kept_too(data, backup):
    (data / "cardbeat.db").write_bytes(b"")
    assert restore(data, backup, NOON).kept.read_bytes() == b""
    assert emails(data / "cardbeat.db") == ["a@old"]


def test_a_file_system_without_hard_links_costs_a_copy(data, backup, monkeypatch):
    def refuse(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    kept = restore(data, backup, NOON).kept
    assert emails(kept) == ["a@old", "b@new"]
    assert emails(data / "cardbeat.db") == ["a@old"]


def damaged(path):
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xa5" * 4096)


def foreign(path):
    path.unlink()
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE keys (id)")
    connection.close()


def newer(path):
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 999")
    connection.close()


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (damaged, "is damaged"),
        (foreign, "is not a cardbeat database"),
        (newer, "was written by a newer cardbeat"),
        (lambda path: path.write_bytes(b""), "is damaged"),
        (lambda path: path.write_bytes(b"text " * 999), "is damaged"),
        (Path.unlink, MISSING),
        (lambda path: (path.unlink(), path.mkdir()), "backup.db"),
    ],
)
def test_a_file_that_is_no_sound_backup_is_refused_and_changes_nothing(data, backup, spoil, words):
    spoil(backup)
    with pytest.raises(StartupError, match=words) as caught:
        restore(data, backup, NOON)
    assert str(caught.value).endswith("; nothing was restored")
    assert "\n" not in str(caught.value)
    assert unchanged(data)


def test_damage_that_only_the_full_check_finds_is_refused(data, backup, monkeypatch):
    monkeypatch.setattr("cardbeat.database.sqlite.file.QUICK_CHECK_BYTES", 0)
    damaged(backup)
    with pytest.raises(StartupError, match="damaged"):
        restore(data, backup, NOON)
    assert unchanged(data)


def test_the_database_itself_is_no_backup(data):
    with pytest.raises(StartupError, match="is the database of"):
        restore(data, data / "cardbeat.db", NOON)
    assert unchanged(data)


@pytest.mark.parametrize("lock", ["writer.lock", "delivery.lock"])
def test_a_folder_in_use_is_refused(data, backup, lock, monkeypatch):
    monkeypatch.setattr(sqlite_restore, "BUSY_SECONDS", 0)
    with (
        sqlite_restore._lock(data / lock, 0),
        pytest.raises(StartupError, match="in use; stop the server, then restore"),
    ):
        restore(data, backup, NOON)
    assert unchanged(data)


def test_a_file_system_without_locks_is_refused(data, backup, monkeypatch):
    def refuse(_descriptor):
        raise OSError(37, "No locks available")

    monkeypatch.setattr("cardbeat.database.sqlite.lock_file.try_lock", refuse)
    with pytest.raises(StartupError, match=r"can't use .*delivery\.lock: No locks available"):
        restore(data, backup, NOON)
    assert unchanged(data)


def test_a_reader_in_the_middle_is_refused(data, backup, monkeypatch):
    monkeypatch.setattr("cardbeat.database.sqlite.file.BUSY_SECONDS", 0)
    reader = connect(data / "cardbeat.db", query_only=True)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM keys").fetchall()
    with pytest.raises(StartupError):
        restore(data, backup, NOON)
    reader.close()
    assert unchanged(data)


def test_a_full_disk_changes_nothing(data, backup, monkeypatch):
    def refuse(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(StartupError, match="No space left on device; nothing was restored"):
        restore(data, backup, NOON)
    assert emails(data / "cardbeat.db") == ["a@old", "b@new"]
    assert not list(data.glob(".cardbeat-*"))


@MODES
def test_the_mode_of_the_database_before_stays(data, backup):
    (data / "cardbeat.db").chmod(0o640)
    restore(data, backup, NOON)
    assert stat.S_IMODE((data / "cardbeat.db").stat().st_mode) == 0o640


@ROOT
def test_root_leaves_the_files_to_the_user_of_the_service(data, backup):
    for path in (data, *data.iterdir()):
        os.chown(path, 54321, 54322)
    restore(data, backup, NOON)
    found = {(path.name, path.stat().st_uid, path.stat().st_gid) for path in data.iterdir()}
    assert found == {(name, 54321, 54322) for name in ("cardbeat.db", KEPT, "writer.lock", "delivery.lock")}
    shutil.rmtree(data)
    data.mkdir(0o700)
    os.chown(data, 54321, 54322)
    restore(data, backup, NOON)
    assert {path.stat().st_uid for path in data.iterdir()} == {54321}


def test_the_command_says_what_it_did_and_what_to_do_next(data, backup, capsys):
    assert cli.main(["restore", str(backup), "--data", str(data)]) == 0
    first, kept, *_, last = capsys.readouterr().out.splitlines()
    assert first == f"restored {data / 'cardbeat.db'} from {backup}: keys 1, checks 0, never served"
    assert kept.startswith(f"the database before is kept as {data / 'cardbeat.db.before-restore-'}")
    assert last == "now start the server and, if everything works, remove the kept file"


@pytest.mark.parametrize("call", range(1, 6))
def test_a_restore_that_is_stopped_changes_nothing(data, backup, monkeypatch, call):
    monkeypatch.setattr(rows, "STEPS_BETWEEN_LOOKS", 10)
    before = {path.name for path in data.iterdir()}
    calls = iter(range(1, 1000))

    def stop():
        if next(calls) >= call:
            raise StartupError("stopped; nothing was restored")

    with pytest.raises(StartupError, match=r"^stopped; nothing was restored$"):
        restore(data, backup, NOON, stop)
    assert unchanged(data)
    assert {path.name for path in data.iterdir()} - {"delivery.lock"} == before
