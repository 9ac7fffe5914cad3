"""The SQLite file: made, refused, locked, and what is on disk when."""

import contextlib
import os
import shutil
import sqlite3
import threading
import time
from pathlib import Path

import pytest

from cardbeat.database import open_database
from cardbeat.database.sqlite.database import SqliteDatabase
from cardbeat.database.sqlite.file import (
    FILE_NAME,
    last_moment_stored,
    served_version,
)
from cardbeat.errors import StartupError, Unavailable
from cardbeat.host import system
from tests.kit.lists import each, times
from tests.kit.support import begun, count_up, counted
from tests.kit.systems import IN_USE, LINKS, MODES


def fill(database):
    for number in range(200):
        database.write(
            lambda c, n=number: c.execute(
                "INSERT INTO monitor VALUES (?, 1)", (f"{n}" * 50,)
            )
        )


def damage(path):
    with path.open("r+b") as file:
        # Indexes of alerts, in an empty database.
        file.seek(12 * 4096)
        file.write(b"\xa5" * 8192)


def test_a_damaged_file_keeps_the_wal_that_a_crash_left(tmp_path):
    with contextlib.closing(open_database(tmp_path / "live")) as database:
        fill(database)
        with contextlib.closing(
            sqlite3.connect(tmp_path / "live" / FILE_NAME)
        ) as other:
            assert (
                other.execute("PRAGMA wal_checkpoint(FULL)").fetchone()[0]
                == 0
            )
        database.write(count_up)
        shutil.copytree(tmp_path / "live", tmp_path / "crashed")
    damage(tmp_path / "crashed" / FILE_NAME)
    files = [
        tmp_path / "crashed" / f"{FILE_NAME}{end}" for end in ("", "-wal")
    ]
    before = [*map(Path.read_bytes, files)]
    for use in (
        open_database,
        lambda folder: served_version(folder / FILE_NAME),
    ):
        with pytest.raises(StartupError, match="damaged"):
            use(tmp_path / "crashed")
    # doctor looks into a damaged file too, as far as it can be read.
    last_moment_stored(tmp_path / "crashed")
    assert [*map(Path.read_bytes, files)] == before


def test_a_wal_without_its_database_is_not_thrown_away(tmp_path):
    (tmp_path / f"{FILE_NAME}-wal").write_bytes(b"precious")
    with pytest.raises(StartupError, match="missing"):
        open_database(tmp_path)
    assert (tmp_path / f"{FILE_NAME}-wal").read_bytes() == b"precious"


@LINKS
@pytest.mark.parametrize("name", ["writer.lock", "delivery.lock"])
def test_no_lock_file_follows_a_link(tmp_path, name):
    (tmp_path / "others").write_text("theirs")
    (tmp_path / name).symlink_to(tmp_path / "others")
    with pytest.raises(StartupError, match=name):
        open_database(tmp_path).claim()
    assert (tmp_path / "others").read_text() == "theirs"


@MODES
def test_all_that_a_new_database_makes_is_for_the_owner_alone(
    tmp_path, usual_umask
):
    with contextlib.closing(open_database(tmp_path / "data")) as database:
        database.write(count_up)
        made = [tmp_path / "data", *(tmp_path / "data").iterdir()]
        assert set(each(made, "name")) == {
            "data", FILE_NAME, f"{FILE_NAME}-wal", f"{FILE_NAME}-shm", "writer.lock",
        }  # fmt: skip
        assert [
            path.name for path in made if path.stat().st_mode & 0o077
        ] == []


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (
            lambda folder: folder.write_text(""),
            "can.t write in the data folder",
        ),
        pytest.param(
            lambda folder: folder.symlink_to("nowhere"),
            "can.t write in the data folder",
            marks=LINKS,
        ),
        (
            lambda folder: (folder / "writer.lock").mkdir(parents=True),
            "writer.lock: (Is a directory|Permission denied)",
        ),
    ],
)
def test_what_keeps_the_folder_from_being_used_is_named(
    tmp_path, spoil, words
):
    spoil(tmp_path / "data")
    with pytest.raises(StartupError, match=words):
        open_database(tmp_path / "data")


def test_one_server_uses_a_folder_and_commands_beside_it_write(tmp_path):
    with (
        contextlib.closing(open_database(tmp_path)) as server,
        contextlib.closing(open_database(tmp_path)) as command,
    ):
        server.claim()
        with pytest.raises(
            StartupError, match="another server uses the data folder"
        ):
            command.claim()
        for database in (server, command, server):
            database.write(count_up)
        assert counted(command) == 3
        server.close()
        command.claim()


def test_settings_that_keep_what_was_acknowledged_hold(database):
    for pragma, value in (
        ("journal_mode", "wal"),
        ("synchronous", 2),
        ("foreign_keys", 1),
        ("temp_store", 2),
    ):
        assert (
            database.write(
                lambda it, pragma=pragma: it.execute(
                    f"PRAGMA {pragma}"
                ).fetchone()[0]
            )
            == value
        )


def test_a_process_that_holds_the_lock_costs_seconds_and_no_more(
    database,
):
    holder = os.open(database.path.with_name("writer.lock"), os.O_RDWR)
    with contextlib.closing(os.fdopen(holder)):
        assert system.try_lock(holder)
        with pytest.raises(Unavailable):
            database.write(count_up)
        threading.Timer(0.1, system.unlock, (holder,)).start()
        database.write(count_up)
    assert counted(database) == 1


def remove(path):
    for file in path.parent.glob(f"{FILE_NAME}*"):
        file.unlink()


def replace(path):
    remove(path)
    open_database(path.parent).close()


@IN_USE
@pytest.mark.parametrize(
    "lose",
    [
        remove,
        replace,
        lambda path: path.rename(path.with_name("away")),
        lambda path: path.with_name(f"{FILE_NAME}-wal").unlink(),
    ],
)
def test_no_write_is_acknowledged_once_a_file_is_gone_from_its_place(
    database, caplog, lose
):
    database.write(count_up)
    lose(database.path)
    with pytest.raises(Unavailable):
        database.write(count_up)
    assert "was removed or replaced while in use" in caplog.text
    if (away := database.path.with_name("away")).exists():
        assert not database.path.exists()
        away.rename(database.path)
        database.write(count_up)
        assert counted(database) == 2


def write_much(connection):
    """Some 3 MB of -wal."""
    connection.execute("DELETE FROM monitor")
    connection.executemany(
        "INSERT INTO monitor VALUES (?, 1)",
        ((f"{n}" + "x" * 1000,) for n in range(500)),
    )


@pytest.fixture
def small_wal(tmp_path):
    """A database whose -wal counts as large from 5 MB on."""
    with contextlib.closing(
        SqliteDatabase(tmp_path, wal_bytes=5_000_000)
    ) as database:
        yield database


def wal_bytes(database):
    return database.path.with_name(f"{FILE_NAME}-wal").stat().st_size


def test_readers_who_always_overlap_do_not_let_the_wal_grow(small_wal):
    stopping, sizes = threading.Event(), []

    def read_on():
        while not stopping.is_set():
            with small_wal.read() as connection:
                connection.execute("BEGIN")
                connection.execute("SELECT * FROM monitor").fetchall()
                stopping.wait(0.005)
                connection.execute("ROLLBACK")

    reading = times(4, begun, read_on)
    try:
        for _ in range(16):
            small_wal.write(write_much)
            sizes.append(wal_bytes(small_wal))
    finally:
        stopping.set()
    for reader in reading:
        reader.result(60)
    assert max(sizes) < 25_000_000


def test_a_reader_that_stays_is_told_and_holds_up_no_write_for_long(
    small_wal, caplog
):
    with small_wal.read() as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM monitor").fetchall()
        for _ in range(10):
            began = time.monotonic()
            small_wal.write(write_much)
            assert time.monotonic() - began < 4
        grown = wal_bytes(small_wal)
        assert (
            "the -wal grows until the disk is full, because a reader stays"
            in caplog.text
        )
        reader.execute("ROLLBACK")
    for _ in range(10):
        small_wal.write(write_much)
    assert wal_bytes(small_wal) < grown / 2
