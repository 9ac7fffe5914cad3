"""Who writes, who reads and who waits at the database."""

import contextlib
import fcntl
import sqlite3
import threading

import pytest

from cardbeat.database import READERS, Database
from cardbeat.errors import Unavailable


def write(database):
    database.write(lambda connection: connection.execute("INSERT OR REPLACE INTO monitor VALUES ('n', 1)"))


def read(database):
    with database.read() as connection:
        connection.execute("SELECT 1")


def test_a_write_keeps_other_processes_from_writing(database):
    def is_held(_connection):
        with (database.path.parent / "writer.lock").open() as lock, contextlib.suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return False
        return True

    assert database.write(is_held)


def test_a_file_that_another_program_holds_too_long_is_a_503(tmp_path, monkeypatch):
    monkeypatch.setattr("cardbeat.database_file.BUSY_SECONDS", 0)
    database = Database(tmp_path)
    with contextlib.closing(sqlite3.connect(database.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(Unavailable) as caught:
            write(database)
    assert caught.value.status == 503
    write(database)
    database.close()


def test_only_so_many_read_at_once(database):
    with contextlib.ExitStack() as held:
        for _ in range(READERS):
            held.enter_context(database.read())
        reader = threading.Thread(target=read, args=(database,))
        reader.start()
        reader.join(0.1)
        assert reader.is_alive()
    reader.join(10)
    assert not reader.is_alive()
