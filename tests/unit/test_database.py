import fcntl
import os
import resource
import shutil
import sqlite3
import threading
import time

import pytest

from cardbeat import database_file
from cardbeat.database import Database
from cardbeat.database_file import FILE_NAME, back_up, integrity_problems, last_moment_stored, schema_version
from cardbeat.errors import Refusal, StartupError, Unavailable
from tests.support import wait_until


def count_up(connection):
    connection.execute("INSERT INTO monitor VALUES ('n', 1) ON CONFLICT DO UPDATE SET value = value + 1")


@pytest.fixture
def usual_umask():
    """That of most hosts, where what a program makes is for all to read unless it says otherwise."""
    previous = os.umask(0o022)
    yield
    os.umask(previous)


def counted(database):
    with database.read() as connection:
        return connection.execute("SELECT max(value) FROM monitor").fetchone()[0]


def test_what_write_returned_from_is_seen_by_readers(database):
    database.write(count_up)
    assert counted(database) == 1


def test_writes_from_many_threads_are_all_kept(database):
    barrier = threading.Barrier(16)

    def write_some():
        barrier.wait()
        for _ in range(50):
            database.write(count_up)

    threads = [threading.Thread(target=write_some) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counted(database) == 800


def test_a_job_that_fails_undoes_only_itself_within_a_group(database):
    entered, release = threading.Event(), threading.Event()
    results = []

    def hold(connection):
        entered.set()
        release.wait(10)

    def fail(connection):
        count_up(connection)
        raise Refusal(409, "conflict", "no")

    def attempt(work):
        try:
            results.append(database.write(work))
        except Refusal as refusal:
            results.append(refusal.status)

    threads = [threading.Thread(target=attempt, args=(hold,))]
    threads[0].start()
    assert entered.wait(10)
    threads += [threading.Thread(target=attempt, args=(work,)) for work in (count_up, fail, count_up)]
    for thread in threads[1:]:
        thread.start()
    release.set()
    for thread in threads:
        thread.join()
    assert sorted(results, key=str) == [409, None, None, None]
    assert counted(database) == 2


def test_readers_cannot_write(database):
    with pytest.raises(Unavailable), database.read() as connection:
        count_up(connection)


def test_an_error_of_the_job_itself_is_raised_as_it_is(database):
    with pytest.raises(sqlite3.IntegrityError):
        database.write(lambda connection: connection.execute("INSERT INTO monitor VALUES ('n', NULL)"))
    with pytest.raises(ZeroDivisionError):
        database.write(lambda connection: 1 / 0)


def test_a_write_for_later_tells_its_outcome_when_it_is_on_disk(database):
    outcomes, done = [], threading.Semaphore(0)

    def note(outcome):
        try:
            outcomes.append((outcome(), counted(database)))
        except ZeroDivisionError as error:
            outcomes.append(error)
        done.release()

    database.write_later(count_up, note)
    assert done.acquire(timeout=10)
    database.write_later(lambda connection: 1 / 0, note)
    assert done.acquire(timeout=10)
    assert outcomes[0] == (None, 1)
    assert isinstance(outcomes[1], ZeroDivisionError)


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


def test_a_closed_database_refuses_writes_after_finishing_the_queued_ones(tmp_path):
    database = Database(tmp_path)
    database.write(count_up)
    database.close()
    with pytest.raises(Unavailable):
        database.write(count_up)
    with pytest.raises(Unavailable):
        database.write_later(count_up, print)
    assert not (tmp_path / f"{FILE_NAME}-wal").exists()


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
    first, second = Database(tmp_path), Database(tmp_path)
    for database in (first, second, first):
        database.write(count_up)
    assert counted(second) == 3
    first.close()
    second.close()


def test_a_process_that_never_lets_go_of_the_lock_costs_writes_seconds_and_no_more(database, monkeypatch):
    monkeypatch.setattr("cardbeat.database.BUSY_SECONDS", 0.3)
    outcomes = []

    def attempt():
        try:
            outcomes.append(database.write(count_up))
        except Unavailable as error:
            outcomes.append(error)

    threads = [threading.Thread(target=attempt) for _ in range(8)]
    holder = os.open(database.path.with_name("writer.lock"), os.O_RDWR)
    fcntl.flock(holder, fcntl.LOCK_EX)
    began = time.monotonic()
    for thread in threads:
        thread.start()
        time.sleep(0.02)
    for thread in threads:
        thread.join()
    # None waits in turn for those before it.
    assert time.monotonic() - began < 1.5
    assert [(error.code, error.headers["Retry-After"]) for error in outcomes] == [("database_unavailable", "5")] * 8
    with pytest.raises(StartupError, match=r"another process holds writer\.lock"):
        Database(database.path.parent)
    fcntl.flock(holder, fcntl.LOCK_UN)
    database.write(count_up)
    os.close(holder)


def test_a_lock_that_is_let_go_of_in_time_costs_nothing_but_the_wait(database):
    holder = os.open(database.path.with_name("writer.lock"), os.O_RDWR)
    fcntl.flock(holder, fcntl.LOCK_EX)
    threading.Timer(0.1, fcntl.flock, (holder, fcntl.LOCK_UN)).start()
    database.write(count_up)
    assert counted(database) == 1
    os.close(holder)


def remove(path):
    for file in path.parent.glob(f"{FILE_NAME}*"):
        file.unlink()


def replace(path):
    remove(path)
    Database(path.parent).close()


@pytest.mark.parametrize("lose", [remove, replace, lambda path: path.rename(path.with_name("away"))])
def test_a_write_to_a_file_that_is_gone_from_its_place_is_refused_and_logged(database, caplog, lose):
    database.write(count_up)
    lose(database.path)
    with pytest.raises(Unavailable) as caught:
        database.write(count_up)
    assert caught.value.code == "database_unavailable"
    assert "was removed or replaced while in use" in caplog.text


def test_a_reader_leaves_no_empty_file_where_the_database_was(database):
    remove(database.path)
    with pytest.raises(Unavailable), database.read():
        pass
    assert not database.path.exists()


def damage(path):
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2)
        file.write(b"\xa5" * 8192)


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (lambda path: path.write_bytes(b""), "damaged"),
        (lambda path: path.write_bytes(b"not a database at all" * 400), "damaged"),
        (damage, "damaged"),
        (lambda path: path.write_bytes(path.read_bytes()[:5000]), "damaged"),
    ],
)
def test_a_damaged_file_is_refused_and_left_as_it_is(tmp_path, spoil, sentence):
    database = Database(tmp_path)
    for number in range(200):
        database.write(lambda c, n=number: c.execute("INSERT INTO monitor VALUES (?, 1)", (f"{n}" * 50,)))
    database.close()
    path = tmp_path / FILE_NAME
    spoil(path)
    before = path.read_bytes()
    with pytest.raises(StartupError, match=sentence):
        Database(tmp_path)
    assert path.read_bytes() == before


def test_a_damaged_file_keeps_the_wal_that_a_crash_left(tmp_path):
    database = Database(tmp_path / "live")
    for number in range(200):
        database.write(lambda c, n=number: c.execute("INSERT INTO monitor VALUES (?, 1)", (f"{n}" * 50,)))
    database._writer.execute("PRAGMA wal_checkpoint")
    database.write(count_up)
    shutil.copytree(tmp_path / "live", tmp_path / "crashed")
    database.close()
    damage(tmp_path / "crashed" / FILE_NAME)
    files = [tmp_path / "crashed" / f"{FILE_NAME}{end}" for end in ("", "-wal")]
    before = [file.read_bytes() for file in files]
    for use in (Database, integrity_problems, lambda folder: back_up(folder, tmp_path / "copy.db")):
        with pytest.raises(StartupError, match="damaged"):
            use(tmp_path / "crashed")
        assert [file.read_bytes() for file in files] == before
    # doctor looks into a damaged file too, as far as it can be read.
    last_moment_stored(tmp_path / "crashed")
    assert [file.read_bytes() for file in files] == before


def test_a_damaged_file_can_be_moved_away_as_its_refusal_says(tmp_path):
    Database(tmp_path).close()
    damage(tmp_path / FILE_NAME)
    with pytest.raises(StartupError, match="move it away"):
        Database(tmp_path)
    (tmp_path / FILE_NAME).rename(tmp_path / "away.db")
    Database(tmp_path).close()


def test_a_newer_file_is_refused(tmp_path):
    Database(tmp_path).close()
    with sqlite3.connect(tmp_path / FILE_NAME) as connection:
        connection.execute(f"PRAGMA user_version = {schema_version() + 1}")
    connection.close()
    with pytest.raises(StartupError, match="newer"):
        Database(tmp_path)


def test_another_programs_database_is_refused(tmp_path):
    with sqlite3.connect(tmp_path / FILE_NAME) as connection:
        connection.execute("CREATE TABLE theirs (a)")
    connection.close()
    with pytest.raises(StartupError, match="not a cardbeat database"):
        Database(tmp_path)


def test_a_wal_without_its_database_is_not_thrown_away(tmp_path):
    (tmp_path / f"{FILE_NAME}-wal").write_bytes(b"precious")
    with pytest.raises(StartupError, match="missing"):
        Database(tmp_path)
    assert (tmp_path / f"{FILE_NAME}-wal").read_bytes() == b"precious"


@pytest.mark.parametrize("target", ["nowhere.db", FILE_NAME])
def test_a_link_to_nothing_is_never_replaced_by_a_new_database(tmp_path, target):
    link = tmp_path / FILE_NAME
    link.symlink_to(target)
    for use in (Database, integrity_problems):
        with pytest.raises(StartupError, match="is a link to nothing"):
            use(tmp_path)
    assert os.readlink(link) == target


def test_a_folder_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StartupError, match="data folder"):
        Database(tmp_path / "file" / "data")


def test_all_that_a_new_database_makes_is_for_the_owner_alone(tmp_path, usual_umask):
    database = Database(tmp_path / "data")
    database.write(count_up)
    made = [tmp_path / "data", *(tmp_path / "data").iterdir()]
    assert {path.name for path in made} == {"data", FILE_NAME, f"{FILE_NAME}-wal", f"{FILE_NAME}-shm", "writer.lock"}
    assert [path.name for path in made if path.stat().st_mode & 0o077] == []
    database.close()


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda folder: folder.write_text(""), "data is not a folder"),
        (lambda folder: folder.symlink_to("nowhere"), "data is not a folder"),
        (lambda folder: (folder / "writer.lock").mkdir(parents=True), "writer.lock: Is a directory"),
    ],
)
def test_what_keeps_the_lock_from_being_taken_is_named(tmp_path, spoil, words):
    spoil(tmp_path / "data")
    with pytest.raises(StartupError, match=words):
        Database(tmp_path / "data")


def test_a_backup_taken_under_load_is_whole_and_opens(tmp_path):
    database = Database(tmp_path / "live")
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
    assert integrity_problems(tmp_path / "restored") == []
    restored = Database(tmp_path / "restored")
    assert before <= counted(restored) <= after
    restored.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0.db", "1.db", "live", "restored"]


def test_a_backup_of_nothing_or_to_nowhere_is_refused(tmp_path):
    with pytest.raises(StartupError, match="no database"):
        back_up(tmp_path, tmp_path / "copy.db")
    Database(tmp_path).close()
    with pytest.raises(StartupError, match="can't"):
        back_up(tmp_path, tmp_path / "missing" / "copy.db")


@pytest.fixture
def live(tmp_path):
    """The folder of a database in use, so that everything stands in it that ever does."""
    database = Database(tmp_path / "live")
    database.write(count_up)
    (tmp_path / "live" / "delivery.lock").touch()
    yield tmp_path / "live"
    database.close()


def files(folder):
    return {path.name: (path.stat().st_ino, path.stat().st_size) for path in folder.iterdir()}


@pytest.mark.parametrize("name", ["", "-wal", "-shm", "-journal", ".new"])
def test_a_backup_never_replaces_the_database_nor_what_stands_beside_it(live, name):
    before = files(live)
    with pytest.raises(StartupError, match="belongs to the database"):
        back_up(live, live / f"{FILE_NAME}{name}")
    assert files(live) == before


@pytest.mark.parametrize("name", ["writer.lock", "delivery.lock"])
def test_a_backup_never_replaces_a_lock_file(live, name):
    before = files(live)
    with pytest.raises(StartupError, match="belongs to the database"):
        back_up(live, live / name)
    assert files(live) == before


@pytest.mark.parametrize("link", ["symlink_to", "hardlink_to"])
def test_a_backup_never_replaces_the_database_by_another_name(live, tmp_path, link):
    other = tmp_path / "other.db"
    getattr(other, link)(live / FILE_NAME)
    before = files(live)
    with pytest.raises(StartupError, match="belongs to the database"):
        back_up(live, other)
    assert files(live) == before
    assert other.samefile(live / FILE_NAME)


def test_a_backup_never_replaces_a_database_that_the_folder_has_a_link_to(tmp_path):
    Database(tmp_path / "real").close()
    (tmp_path / "live").mkdir()
    (tmp_path / "live" / FILE_NAME).symlink_to(tmp_path / "real" / FILE_NAME)
    for name in (FILE_NAME, f"{FILE_NAME}-wal"):
        with pytest.raises(StartupError, match="belongs to the database"):
            back_up(tmp_path / "live", tmp_path / "real" / name)


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_a_backup_replaces_nothing_but_a_regular_file(live, tmp_path, make):
    target = tmp_path / "there"
    make(target)
    before = target.stat()
    with pytest.raises(StartupError, match="there is not a regular file"):
        back_up(live, target)
    assert os.path.samestat(target.stat(), before)


def test_a_backup_through_a_link_replaces_the_file_and_leaves_the_link(live, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "old.db").write_text("yesterday's")
    link = tmp_path / "link.db"
    link.symlink_to("elsewhere/old.db")
    back_up(live, link)
    assert link.is_symlink()
    assert (tmp_path / "elsewhere" / "old.db").read_bytes().startswith(b"SQLite format 3")
    assert sorted(path.name for path in tmp_path.rglob("*.db")) == [FILE_NAME, "link.db", "old.db"]


def test_a_backup_may_have_as_long_a_name_as_the_system_takes(live, tmp_path):
    longest = tmp_path / ("b" * os.pathconf(tmp_path, "PC_NAME_MAX"))
    back_up(live, longest)
    back_up(live, longest)
    assert longest.stat().st_size > 0
    with pytest.raises(StartupError, match=r"can't write .*bb: File name too long"):
        back_up(live, longest.with_name(longest.name + "b"))


def test_a_backup_is_for_the_owner_alone_even_while_it_is_made(live, tmp_path, monkeypatch, usual_umask):
    seen = []
    monkeypatch.setattr(database_file, "sync", lambda path: seen.append(path.stat().st_mode & 0o777))
    back_up(live, tmp_path / "copy.db")
    assert seen[0] == (tmp_path / "copy.db").stat().st_mode & 0o777 == 0o600


def test_a_backup_that_cannot_be_written_names_its_file_and_leaves_nothing(live, tmp_path):
    with pytest.raises(StartupError, match=r"can't write .*missing/copy\.db: No such file"):
        back_up(live, tmp_path / "missing" / "copy.db")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, hard))
    try:
        with pytest.raises(StartupError, match=r"to .*copy\.db: "):
            back_up(live, tmp_path / "copy.db")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert [path.name for path in tmp_path.iterdir()] == ["live"]
