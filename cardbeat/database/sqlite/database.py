"""The SQLite file: one connection that writes, others that read.

SQLite before 3.51.3 can corrupt a WAL database when two connections write or checkpoint at the same
moment. So one connection writes, all others are `query_only`, and a lock file keeps the writers of
other processes out.
"""

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cardbeat.clock import wall_clock
from cardbeat.database.database import (
    Database,
    Made,
    Write,
    make_all,
)
from cardbeat.database.schema import TABLES, VERSION
from cardbeat.database.sqlite.copies import make_database
from cardbeat.database.sqlite.file import (
    BUSY_SECONDS,
    FILE_NAME,
    FILES,
    WAL_BYTES,
    WRITER_LOCK,
    connect,
    lock_server,
    make_one_file,
    open_lock_file,
    served_version,
    server_locked,
    start_up_errors,
)
from cardbeat.errors import StartupError, Unavailable
from cardbeat.host.ownership import prepare_folder
from cardbeat.host.staging import remove_left_behind
from cardbeat.host.system import try_lock, unlock

READERS_LEAVE_MS = 100
"""How long the writer waits for readers that began before it empties the -wal."""
WAL_GROWTH_BYTES = 4 * 1024 * 1024
"""By how much the -wal grows until the writer tries again, after readers stayed for longer."""


class SqliteDatabase(Database):
    """The open database of one data folder, as `open_database` has it."""

    def __init__(self, folder: Path, wal_bytes: int = WAL_BYTES) -> None:
        prepare_folder(folder, FILES)
        remove_left_behind(folder)
        self._folder = folder
        self._wal_bytes = wal_bytes
        self._empty_wal_at = wal_bytes
        self.path = folder / FILE_NAME
        self._wal = f"{self.path}-wal"
        self._lock_file = open_lock_file(folder / WRITER_LOCK)
        self._locks = contextlib.ExitStack()
        self._locks.callback(os.close, self._lock_file)
        with start_up_errors(self.path):
            self._writer = self._open()
            self._opened = {str(self.path): os.stat(self.path)}
            """The files that are in use, as they were when they were opened."""
            # A file system without shared memory has no -wal.
            with contextlib.suppress(FileNotFoundError):
                self._opened[self._wal] = os.stat(self._wal)
        super().__init__(folder)

    def clock(self) -> float:
        return wall_clock()

    def claim(self) -> None:
        self._locks.callback(os.close, lock_server(self._folder))

    def _open(self) -> sqlite3.Connection:
        """The connection that writes, to a database that was checked and is up to date."""
        with self._only_writer():
            if not os.path.lexists(self.path):
                # An empty file would mean damage.
                if os.path.exists(self._wal):
                    raise StartupError(
                        f"{self.path} is missing though its -wal file is there; restore both, or"
                        " move the -wal away"
                    )
                make_database(self.path)
            if served_version(self.path) < VERSION:
                # No server of an older version may use the tables.
                with server_locked(self._folder):
                    make_one_file(self.path)
                    make_database(self.path, self.path)
        writer = connect(self.path)
        try:
            writer.execute("PRAGMA journal_mode = WAL")
            # SQLite makes its own files at the first read. A missing table is found too.
            for table in TABLES:
                writer.execute(f"SELECT 1 FROM {table}").fetchone()
        except BaseException:
            writer.close()
            raise
        return writer

    def _reader(
        self, connection: sqlite3.Connection | None
    ) -> sqlite3.Connection:
        return connection or connect(self.path, "ro")

    def _commit(self, group: list[Write[Any]]) -> Made:
        with self._only_writer():
            self._look_at_files()
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                made = make_all(self._writer, group)
                self._writer.execute("COMMIT")
            finally:
                if self._writer.in_transaction:
                    self._writer.execute("ROLLBACK")
        return made

    def _look_at_files(self) -> None:
        """Keep the -wal small. Raise an error if a file was removed or replaced while in use.

        No later process would find what is written to such a file.
        """
        for path, opened in self._opened.items():
            found = None
            with contextlib.suppress(OSError):
                found = os.stat(path)
            if found is None or not os.path.samestat(found, opened):
                raise sqlite3.OperationalError(
                    f"{path} was removed or replaced while in use; stop the server, put it back"
                    " and start it"
                )
            if path == self._wal and found.st_size > self._empty_wal_at:
                self._empty_wal(found.st_size)

    def _empty_wal(self, size: int) -> None:
        """Empty a large -wal. SQLite alone does it only at a moment without readers.

        Readers that begin during the wait do not need the -wal.
        """
        self._empty_wal_at = self._wal_bytes
        self._writer.execute(f"PRAGMA busy_timeout = {READERS_LEAVE_MS}")
        (is_read, *_) = self._writer.execute(
            "PRAGMA wal_checkpoint(TRUNCATE)"
        ).fetchone()
        self._writer.execute(
            f"PRAGMA busy_timeout = {1000 * BUSY_SECONDS}"
        )
        if is_read:
            self._empty_wal_at = size + WAL_GROWTH_BYTES
            if size > 2 * self._wal_bytes:
                self._told.error(
                    "the -wal grows until the disk is full, because a reader stays: end a backup"
                    " that hangs or is suspended"
                )

    def _close_writer(self) -> None:
        self._writer.close()
        self._locks.close()

    @contextlib.contextmanager
    def _only_writer(self) -> Iterator[None]:
        """Keep other processes from writing. Raises an error if one does not end."""
        if not try_lock(self._lock_file, BUSY_SECONDS):
            raise sqlite3.OperationalError(
                f"another process holds {WRITER_LOCK}"
            )
        try:
            yield
        finally:
            unlock(self._lock_file)

    def _translated(self, error: BaseException) -> BaseException:
        is_trouble = isinstance(
            error, sqlite3.OperationalError | MemoryError
        )
        # SQLite raises no subclass for a damaged file.
        if is_trouble or type(error) is sqlite3.DatabaseError:
            return Unavailable("database_unavailable")
        return error
