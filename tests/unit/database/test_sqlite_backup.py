"""A backup: whole or not at all, of one moment, and nothing left beside it."""

import contextlib
import os
import signal
import stat
import subprocess
import sys
import threading

import pytest

from cardbeat.database import open_database
from cardbeat.database.sqlite import backup as sqlite_backup
from cardbeat.database.sqlite.backup import back_up
from cardbeat.database.sqlite.file import FILE_NAME, connect, empty_wal
from cardbeat.database.sqlite.rows import why_refused
from cardbeat.errors import StartupError
from tests.support import count_up, counted, wait_until
from tests.systems import LIMITS, LINKS, LONGEST, MISSING, MODES, PIPES, STOPS, WINDOWS


def test_a_backup_taken_under_load_is_whole_and_opens(tmp_path):
    database = open_database(tmp_path / "live")
    stop = threading.Event()

    def write_on():
        while not stop.is_set():
            database.write(count_up)

    thread = threading.Thread(target=write_on)
    thread.start()
    try:
        wait_until(lambda: counted(database))
        before = counted(database)
        for number in range(3):
            back_up(tmp_path / "live", tmp_path / f"{number}.db")
    finally:
        stop.set()
        thread.join()
    after = counted(database)
    database.close()
    (tmp_path / "restored").mkdir()
    (tmp_path / "2.db").rename(tmp_path / "restored" / FILE_NAME)
    assert why_refused(tmp_path / "restored" / FILE_NAME) == []
    restored = open_database(tmp_path / "restored")
    assert before <= counted(restored) <= after
    restored.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0.db", "1.db", "live", "restored"]


def test_a_backup_of_nothing_or_to_nowhere_is_refused(tmp_path):
    with pytest.raises(StartupError, match="no database"):
        back_up(tmp_path, tmp_path / "copy.db")
    open_database(tmp_path).close()
    with pytest.raises(StartupError, match="can't"):
        back_up(tmp_path, tmp_path / "missing" / "copy.db")


@pytest.fixture
def live(tmp_path):
    """The folder of a database in use, so that everything stands in it that ever does."""
    database = open_database(tmp_path / "live")
    database.write(count_up)
    (tmp_path / "live" / "delivery.lock").touch()
    yield tmp_path / "live"
    database.close()


def files(folder):
    return {path.name: (path.stat().st_ino, path.stat().st_size) for path in folder.iterdir()}


@pytest.mark.parametrize("name", ["", "-wal", "-shm", "-journal"])
def test_a_backup_never_replaces_the_database_nor_what_stands_beside_it(live, name):
    before = files(live)
    with pytest.raises(StartupError, match="belongs to the database"):
        back_up(live, live / f"{FILE_NAME}{name}")
    assert files(live) == before


@pytest.mark.parametrize("name", ["writer.lock", "delivery.lock", "cardbeat.room", "cards"])
def test_a_backup_never_takes_the_place_of_a_lock_file_the_room_or_the_cards(live, name):
    before = files(live)
    with pytest.raises(StartupError, match="belongs to the database"):
        back_up(live, live / name)
    assert files(live) == before


@pytest.mark.parametrize("link", [pytest.param("symlink_to", marks=LINKS), "hardlink_to"])
def test_a_backup_never_replaces_the_database_by_another_name(live, tmp_path, link):
    other = tmp_path / "other.db"
    getattr(other, link)(live / FILE_NAME)
    before = files(live)
    with pytest.raises(StartupError, match="belongs to the database"):
        back_up(live, other)
    assert files(live) == before
    assert other.samefile(live / FILE_NAME)


@LINKS
def test_a_backup_never_replaces_a_database_that_the_folder_has_a_link_to(tmp_path):
    open_database(tmp_path / "real").close()
    (tmp_path / "live").mkdir()
    (tmp_path / "live" / FILE_NAME).symlink_to(tmp_path / "real" / FILE_NAME)
    for name in (FILE_NAME, f"{FILE_NAME}-wal"):
        with pytest.raises(StartupError, match="belongs to the database"):
            back_up(tmp_path / "live", tmp_path / "real" / name)


@pytest.mark.parametrize("make", [pytest.param("mkfifo", marks=PIPES), "mkdir"])
def test_a_backup_replaces_nothing_but_a_regular_file(live, tmp_path, make):
    target = tmp_path / "there"
    getattr(os, make)(target)
    before = target.stat()
    with pytest.raises(StartupError, match="there is not a regular file"):
        back_up(live, target)
    assert os.path.samestat(target.stat(), before)


@LINKS
def test_a_backup_through_a_link_replaces_the_file_and_leaves_the_link(live, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "old.db").write_text("yesterday's")
    link = tmp_path / "link.db"
    link.symlink_to("elsewhere/old.db")
    back_up(live, link)
    assert link.is_symlink()
    assert (tmp_path / "elsewhere" / "old.db").read_bytes().startswith(b"SQLite format 3")
    assert sorted(path.name for path in tmp_path.rglob("*.db")) == [FILE_NAME, "link.db", "old.db"]


@LONGEST
def test_a_backup_may_have_as_long_a_name_as_the_system_takes(live, tmp_path):
    longest = tmp_path / ("b" * os.pathconf(tmp_path, "PC_NAME_MAX"))
    back_up(live, longest)
    back_up(live, longest)
    assert longest.stat().st_size > 0
    with pytest.raises(StartupError, match=r"can't write .*bb: File name too long"):
        back_up(live, longest.with_name(longest.name + "b"))


@MODES
def test_a_backup_is_for_the_owner_alone_even_while_it_is_made(live, tmp_path, monkeypatch, usual_umask):
    seen = []
    monkeypatch.setattr(sqlite_backup, "sync_file", lambda path: seen.append(path.stat().st_mode & 0o777))
    back_up(live, tmp_path / "copy.db")
    assert seen[0] == (tmp_path / "copy.db").stat().st_mode & 0o777 == 0o600


def test_a_backup_that_cannot_be_written_names_its_file_and_leaves_nothing(live, tmp_path):
    with pytest.raises(StartupError, match=rf"can't write .*missing.copy\.db: {MISSING}"):
        back_up(live, tmp_path / "missing" / "copy.db")


@LIMITS
def test_a_backup_that_finds_no_room_names_its_file_and_leaves_nothing(live, tmp_path):
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, hard))
    try:
        with pytest.raises(StartupError, match=r"to .*copy\.db: "):
            back_up(live, tmp_path / "copy.db")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert [path.name for path in tmp_path.iterdir()] == ["live"]


@pytest.fixture
def spoilt(live):
    """The folder with a value that `restore` refuses, as a disk may make one of another."""
    with contextlib.closing(connect(live / FILE_NAME)) as connection:
        connection.execute("UPDATE monitor SET name = 'A' || name")
    return live


REFUSED = "holds what cardbeat never writes, in monitor.name"


@pytest.mark.parametrize("there", ["yesterday's", None])
def test_a_copy_that_restore_would_refuse_is_kept_beside_the_last_good_backup(spoilt, tmp_path, there):
    target, refused = tmp_path / "copy.db", tmp_path / "copy.db.refused"
    if there:
        target.write_text(there)
    for _ in range(2):
        assert back_up(spoilt, target) == (refused, f"{refused} {REFUSED}")
    assert (target.read_text() if target.exists() else None) == there
    assert why_refused(refused) == [f"{refused} {REFUSED}"]
    assert WINDOWS or stat.S_IMODE(refused.stat().st_mode) == 0o600
    assert {path.name for path in tmp_path.iterdir()} == {"live", refused.name, *([target.name] if there else [])}


@LINKS
def test_a_refused_copy_is_beside_the_file_that_a_link_refers_to(spoilt, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "old.db").write_text("yesterday's")
    link, refused = tmp_path / "link.db", tmp_path / "elsewhere" / "old.db.refused"
    link.symlink_to("elsewhere/old.db")
    assert back_up(spoilt, link) == (refused, f"{refused} {REFUSED}")
    assert link.read_text() == "yesterday's"
    assert {path.name for path in tmp_path.iterdir()} == {"elsewhere", "link.db", "live"}


def test_a_refused_copy_replaces_nothing_but_a_regular_file(spoilt, tmp_path):
    (tmp_path / "copy.db").write_text("yesterday's")
    (tmp_path / "copy.db.refused").mkdir()
    with pytest.raises(StartupError, match="refused is not a regular file"):
        back_up(spoilt, tmp_path / "copy.db")
    assert (tmp_path / "copy.db").read_text() == "yesterday's"
    assert {path.name for path in tmp_path.iterdir()} == {"copy.db", "copy.db.refused", "live"}


def test_a_backup_that_is_stopped_in_its_check_leaves_the_target_as_it_was(live, tmp_path, monkeypatch):
    (tmp_path / "copy.db").write_text("yesterday's")
    stops, found = [], []
    monkeypatch.setattr(sqlite_backup, "why_refused", lambda *given: stops.append(1) or why_refused(*given))

    def stop():
        if stops:
            found.append((tmp_path / "copy.db").read_text())
            raise StartupError("stopped")

    with pytest.raises(StartupError, match="stopped"):
        back_up(live, tmp_path / "copy.db", stop)
    assert found[0] == (tmp_path / "copy.db").read_text() == "yesterday's"
    assert {path.name for path in tmp_path.iterdir()} == {"copy.db", "live"}


@pytest.mark.parametrize("call", range(1, 8))
def test_a_backup_that_is_stopped_leaves_the_target_as_it_was_and_nothing_beside_it(live, tmp_path, monkeypatch, call):
    monkeypatch.setattr("cardbeat.database.sqlite.backup.COPY_PAGES", 3)
    (tmp_path / "copy.db").write_text("yesterday's")
    calls = iter(range(1, 100))

    def stop():
        if next(calls) == call:
            raise StartupError("stopped")

    with pytest.raises(StartupError, match="stopped"):
        back_up(live, tmp_path / "copy.db", stop)
    assert (tmp_path / "copy.db").read_text() == "yesterday's"
    assert {path.name for path in tmp_path.iterdir()} == {"copy.db", "live"}


def test_a_backup_is_of_one_moment_though_there_are_writes_between_its_steps(live, tmp_path, monkeypatch):
    monkeypatch.setattr("cardbeat.database.sqlite.backup.COPY_PAGES", 1)
    steps = []
    database = open_database(live)
    before = counted(database)

    def write_between():
        database.write(count_up)
        steps.append(1)

    back_up(live, tmp_path / "copy.db", write_between)
    database.close()
    assert len(steps) > 10
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy.db").rename(tmp_path / "copy" / FILE_NAME)
    copy = open_database(tmp_path / "copy")
    assert counted(copy) == before
    copy.close()


SUSPENDED = """
import os, signal, sys
from pathlib import Path
from cardbeat.database.sqlite import backup

backup.STUCK_SECONDS, backup.COPY_PAGES = 0.2, 1
backup.back_up(*map(Path, sys.argv[1:]), lambda: os.kill(os.getpid(), signal.SIGSTOP))
"""


@STOPS
def test_a_backup_that_is_suspended_is_killed_and_does_not_keep_the_wal_from_being_emptied(live, tmp_path):
    (tmp_path / "copy.db").write_text("yesterday's")
    command = [sys.executable, "-c", SUSPENDED, live, tmp_path / "copy.db"]
    killed = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    told = "cardbeat: the backup was suspended or hung for 0.2 s: killed\n"
    assert (killed.returncode, killed.stderr) == (-signal.SIGKILL, told)
    assert (tmp_path / "copy.db").read_text() == "yesterday's"
    with contextlib.closing(connect(live / FILE_NAME)) as connection:
        assert empty_wal(connection, 0)
    back_up(live, tmp_path / "copy.db")
    assert {path.name for path in tmp_path.iterdir()} == {"copy.db", "live"}
