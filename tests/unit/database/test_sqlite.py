"""The file of SQLite under an open database: who may write to it, what is on disk when, how far its -wal grows."""

import contextlib
import errno
import os
import sqlite3
import threading
import time

import pytest

from cardbeat.database import open_database
from cardbeat.database.sqlite.backup import back_up
from cardbeat.database.sqlite.database import migrate
from cardbeat.database.sqlite.file import FILE_NAME, LOCKS, WRITER_LOCK, connect, open_read_only
from cardbeat.database.sqlite.restore import restore
from cardbeat.errors import StartupError, Unavailable
from cardbeat.host import system
from tests.support import count_up, counted
from tests.systems import IN_USE, LINKS


def test_a_full_disk_is_a_503_until_there_is_room_again(database):
    def shrink(connection):
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages}")

    def fill(connection):
        connection.execute("INSERT INTO monitor VALUES (?, 1)", ("x" * 100_000,))

    database.write(shrink)
    with pytest.raises(Unavailable) as caught:
        database.write(fill)
    assert caught.value.status == 503
    assert caught.value.headers["Retry-After"]
    database.write(count_up)
    database.write(lambda connection: connection.execute("PRAGMA max_page_count = 1000000"))
    database.write(fill)


def test_a_lack_of_memory_is_a_503_and_logged_as_that(database, caplog):
    def lack(_connection):
        raise MemoryError

    with pytest.raises(Unavailable), database.read() as connection:
        lack(connection)
    assert "the database can't read: out of memory" in caplog.text


def test_durability_settings_hold(database):
    with database.read() as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
    assert database.write(lambda connection: connection.execute("PRAGMA synchronous").fetchone()[0]) == 2
    assert database.write(lambda connection: connection.execute("PRAGMA foreign_keys").fetchone()[0]) == 1


def test_every_table_is_strict(database):
    with database.read() as connection:
        tables = connection.execute("PRAGMA table_list").fetchall()
    assert all(row["strict"] for row in tables if not row["name"].startswith("sqlite_"))


def test_two_processes_may_hold_it_and_both_write(tmp_path):
    first, second = open_database(tmp_path), open_database(tmp_path)
    for database in (first, second, first):
        database.write(count_up)
    assert counted(second) == 3
    first.close()
    second.close()


def test_a_process_that_never_lets_go_of_the_lock_costs_writes_seconds_and_no_more(database, monkeypatch):
    monkeypatch.setattr("cardbeat.database.sqlite.database.BUSY_SECONDS", 1)
    outcomes = []

    def attempt():
        try:
            outcomes.append(database.write(count_up))
        except Unavailable as error:
            outcomes.append(error)

    threads = [threading.Thread(target=attempt) for _ in range(8)]
    holder = os.open(database.path.with_name("writer.lock"), os.O_RDWR)
    assert system.try_lock(holder)
    began = time.monotonic()
    for thread in threads:
        thread.start()
        time.sleep(0.02)
    for thread in threads:
        thread.join()
    # None waits in turn for those before it.
    assert time.monotonic() - began < 6
    assert [(error.code, error.headers["Retry-After"]) for error in outcomes] == [("database_unavailable", "5")] * 8
    with pytest.raises(StartupError, match=r"another process holds writer\.lock"):
        open_database(database.path.parent)
    system.unlock(holder)
    database.write(count_up)
    os.close(holder)


def test_a_lock_that_can_not_be_asked_for_makes_a_write_unavailable_and_no_more(database, monkeypatch):
    def refuse(_lock_file):
        raise OSError(errno.ENOLCK, "No locks available")

    with monkeypatch.context() as patch:
        patch.setattr("cardbeat.database.sqlite.lock_file.try_lock", refuse)
        with pytest.raises(Unavailable):
            database.write(count_up)
        with pytest.raises(StartupError, match=r"can't lock writer\.lock: No locks available"):
            open_database(database.path.parent)
    database.write(count_up)
    assert counted(database) == 1


def test_a_lock_that_is_let_go_of_in_time_costs_nothing_but_the_wait(database):
    holder = os.open(database.path.with_name("writer.lock"), os.O_RDWR)
    assert system.try_lock(holder)
    threading.Timer(0.1, system.unlock, (holder,)).start()
    database.write(count_up)
    assert counted(database) == 1
    os.close(holder)


def remove(path):
    for file in path.parent.glob(f"{FILE_NAME}*"):
        file.unlink()


def replace(path):
    remove(path)
    open_database(path.parent).close()


@IN_USE
@pytest.mark.parametrize("lose", [remove, replace, lambda path: path.rename(path.with_name("away"))])
def test_a_write_to_a_file_that_is_gone_from_its_place_is_refused_and_logged(database, caplog, lose):
    database.write(count_up)
    lose(database.path)
    with pytest.raises(Unavailable) as caught:
        database.write(count_up)
    assert caught.value.code == "database_unavailable"
    assert "was removed or replaced while in use" in caplog.text


@IN_USE
@pytest.mark.parametrize("name", LOCKS)
@pytest.mark.parametrize("is_made_again", [False, True])
def test_a_server_without_its_lock_file_neither_writes_nor_sends(database, caplog, name, is_made_again):
    """Another server would make the file and lock that."""
    lease = database.lease()
    assert lease.take()
    path = database.path.with_name(name)
    away = path.rename(path.with_name("away"))
    if is_made_again:
        path.touch()
    with pytest.raises(Unavailable):
        database.write(count_up)
    assert f"{name} was removed or replaced while in use" in caplog.text
    assert (lease.held(), lease.take()) == (name == WRITER_LOCK, name == WRITER_LOCK)
    away.replace(path)
    database.write(count_up)
    assert lease.take()
    lease.release()


@LINKS
def test_folders_whose_links_refer_to_one_file_share_its_locks(tmp_path):
    folders = [tmp_path / name for name in ("first", "second", "third")]
    open_database(folders[0]).close()
    for folder, file in ((folders[1], folders[0]), (folders[2], folders[1])):
        folder.mkdir(0o700)
        (folder / FILE_NAME).symlink_to(file / FILE_NAME)
    with contextlib.ExitStack() as held:
        databases = [held.enter_context(contextlib.closing(open_database(folder))) for folder in folders]
        leases = [database.lease() for database in databases]
        assert [lease.take() for lease in leases] == [True, False, False]
        back_up(folders[0], tmp_path / "backup.db")
        for folder in folders:
            with pytest.raises(StartupError, match="in use; stop the server"):
                restore(folder, tmp_path / "backup.db", 1_800_000_000)
        for lease in leases:
            lease.release()
    assert [path.name for path in folders[1].iterdir()] == [FILE_NAME]


@LINKS
def test_two_databases_in_one_folder_have_locks_of_their_own(tmp_path):
    (tmp_path / "disk").mkdir()
    with contextlib.ExitStack() as held:
        leases = []
        for name in ("first", "second"):
            open_database(tmp_path / name).close()
            (tmp_path / name / FILE_NAME).rename(tmp_path / "disk" / f"{name}.db")
            (tmp_path / name / FILE_NAME).symlink_to(tmp_path / "disk" / f"{name}.db")
            leases.append(held.enter_context(contextlib.closing(open_database(tmp_path / name))).lease())
        assert [lease.take() for lease in leases] == [True, True]
        for lease in leases:
            lease.release()


@IN_USE
def test_a_file_that_is_gone_during_the_start_is_refused(tmp_path, monkeypatch):
    """Nothing would find what is written to it."""

    def migrate_and_lose(connection):
        migrate(connection)
        remove(tmp_path / FILE_NAME)

    monkeypatch.setattr("cardbeat.database.sqlite.database.migrate", migrate_and_lose)
    with pytest.raises(StartupError, match="No such file"):
        open_database(tmp_path)


@IN_USE
def test_a_reader_leaves_no_empty_file_where_the_database_was(database):
    remove(database.path)
    with pytest.raises(Unavailable), database.read():
        pass
    assert not database.path.exists()


def beside(path, end):
    return path.with_name(path.name + end)


@IN_USE
@pytest.mark.parametrize("end", ["-wal", "-shm"])
def test_a_write_beside_a_removed_file_of_sqlites_own_is_refused_and_logged(database, caplog, end):
    database.write(count_up)
    beside(database.path, end).unlink()
    for _ in range(3):
        with pytest.raises(Unavailable) as caught:
            database.write(count_up)
        assert caught.value.code == "database_unavailable"
    assert f"{FILE_NAME}{end} was removed" in caplog.text


@IN_USE
def test_what_a_removed_wal_held_is_in_the_database_after_an_orderly_stop(tmp_path):
    with contextlib.closing(open_database(tmp_path)) as database:
        for _ in range(3):
            database.write(count_up)
        beside(database.path, "-wal").unlink()
        with pytest.raises(Unavailable):
            database.write(count_up)
    with contextlib.closing(open_database(tmp_path)) as again:
        assert counted(again) == 3


@IN_USE
def test_a_file_that_is_back_in_its_place_is_written_again(database):
    database.write(count_up)
    away = database.path.rename(database.path.with_name("away"))
    with pytest.raises(Unavailable):
        database.write(count_up)
    away.rename(database.path)
    database.write(count_up)
    assert counted(database) == 2


@IN_USE
def test_a_wal_that_another_process_has_written_anew_is_not_written_over(database, caplog):
    database.write(count_up)
    before = database.path.read_bytes()
    beside(database.path, "-wal").unlink()
    beside(database.path, "-wal").write_bytes(b"theirs")
    with pytest.raises(Unavailable):
        database.write(count_up)
    assert f"{FILE_NAME}-wal was removed or replaced" in caplog.text
    assert database.path.read_bytes() == before


@IN_USE
@pytest.mark.parametrize("end", ["", "-wal", "-shm"])
def test_a_write_is_not_acknowledged_where_a_file_was_removed_before_its_commit(database, end):
    with pytest.raises(Unavailable):
        database.write(lambda connection: (count_up(connection), beside(database.path, end).unlink()))


def test_sqlite_leaves_its_files_in_place_while_another_process_has_the_database(tmp_path):
    first, second = open_database(tmp_path), open_database(tmp_path)
    first.write(count_up)
    first.close()
    second.write(count_up)
    assert counted(second) == 2
    second.close()


def write_much(connection):
    """Some 3 MB of -wal."""
    connection.execute("DELETE FROM monitor")
    connection.executemany("INSERT INTO monitor VALUES (?, 1)", ((f"{n}" + "x" * 1000,) for n in range(500)))


def wal_bytes(database):
    return beside(database.path, "-wal").stat().st_size


@pytest.fixture
def small_wal(tmp_path, monkeypatch):
    """A database whose -wal counts as large from 5 MB on."""
    for module in ("database", "file"):
        monkeypatch.setattr(f"cardbeat.database.sqlite.{module}.WAL_BYTES", 5_000_000)
    database = open_database(tmp_path)
    yield database
    database.close()


def test_readers_who_always_overlap_do_not_let_the_wal_grow(small_wal):
    stopping, sizes = threading.Event(), []

    def read_on():
        while not stopping.is_set():
            with small_wal.read() as connection:
                connection.execute("BEGIN")
                connection.execute("SELECT * FROM monitor").fetchall()
                stopping.wait(0.005)
                connection.execute("ROLLBACK")

    readers = [threading.Thread(target=read_on) for _ in range(4)]
    for reader in readers:
        reader.start()
    try:
        for _ in range(30):
            small_wal.write(write_much)
            # The -wal is seen to behind what was written, before what is written next.
            small_wal.write(lambda connection: None)
            sizes.append(wal_bytes(small_wal))
    finally:
        stopping.set()
        for reader in readers:
            reader.join()
    assert max(sizes) < 20_000_000


def test_a_reader_that_stays_is_told_holds_up_no_write_for_long_and_the_wal_grows_no_more_after_it(small_wal, caplog):
    with contextlib.closing(sqlite3.connect(small_wal.path, isolation_level=None)) as other, small_wal.read() as reader:
        for connection in (other, reader):
            connection.execute("BEGIN")
            connection.execute("SELECT * FROM monitor").fetchall()
        for _ in range(10):
            began = time.monotonic()
            small_wal.write(write_much)
            assert time.monotonic() - began < 2
        grown = wal_bytes(small_wal)
        assert grown > 20_000_000
        told = "the -wal grows until the disk is full, because a reader stays: end a backup that hangs or is suspended"
        assert caplog.messages == [told]
        for connection in (other, reader):
            connection.execute("ROLLBACK")
    for _ in range(10):
        small_wal.write(write_much)
    assert wal_bytes(small_wal) < grown / 2
    assert small_wal.write(lambda connection: connection.execute("PRAGMA busy_timeout").fetchone()[0]) == 5000


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="only there it is seen which files are open")
def test_a_job_that_changes_much_needs_no_temporary_file(database):
    def open_files():
        names = []
        for name in os.listdir("/proc/self/fd"):
            # That of the listing itself is closed by now.
            with contextlib.suppress(OSError):
                names.append(os.readlink(f"/proc/self/fd/{name}"))
        return {name for name in names if "etilqs" in name}

    def change_much_and_look(connection):
        connection.execute("UPDATE monitor SET value = value + 1")
        connection.execute("SAVEPOINT inner")
        connection.execute("UPDATE monitor SET name = name || 'y'")
        return open_files()

    database.write(write_much)
    assert database.write(change_much_and_look) == set()


@pytest.mark.parametrize("options", [{}, {"query_only": True}])
def test_every_connection_keeps_temporary_tables_in_memory(database, options):
    with contextlib.closing(connect(database.path, **options)) as connection:
        assert connection.execute("PRAGMA temp_store").fetchone()[0] == 2
    with open_read_only(database.path) as connection:
        assert connection.execute("PRAGMA temp_store").fetchone()[0] == 2


def test_a_write_keeps_other_processes_from_writing(database):
    def is_held(_connection):
        with (database.path.parent / "writer.lock").open("r+") as lock:
            return not system.try_lock(lock.fileno())

    assert database.write(is_held)


def test_a_file_that_another_program_holds_too_long_is_a_503(tmp_path, monkeypatch):
    monkeypatch.setattr("cardbeat.database.sqlite.file.BUSY_SECONDS", 0)
    database = open_database(tmp_path)
    with contextlib.closing(sqlite3.connect(database.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(Unavailable) as caught:
            database.write(count_up)
    assert caught.value.status == 503
    database.write(count_up)
    database.close()
