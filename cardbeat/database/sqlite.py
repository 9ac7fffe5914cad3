"""The SQLite file: one connection that writes, others that read.

SQLite before 3.51.3 can corrupt a WAL database when two connections write or checkpoint at the same moment, so
one connection writes, all others are `query_only`, and a lock file keeps a second process's writer apart.
"""

import contextlib
import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from cardbeat.clock import wall_clock
from cardbeat.database.lock_file import FileLease, open_lock_file, take_lock
from cardbeat.database.queue import Readers, Write, WriteQueue
from cardbeat.database.sqlite_errors import as_sqlite, translated, unavailable
from cardbeat.database.sqlite_file import (
    BUSY_SECONDS,
    DELIVERY_LOCK,
    FILE_NAME,
    FILES,
    WAL_BYTES,
    WRITER_LOCK,
    check,
    checkpoint,
    connect,
    create_if_missing,
    migrate,
    start_up_errors,
)
from cardbeat.database.sqlite_open_files import LOOK_SECONDS, READERS_LEAVE_SECONDS, WAL_GROWTH_BYTES, OpenFiles
from cardbeat.disk import Reserve
from cardbeat.errors import Unavailable
from cardbeat.later import Later
from cardbeat.ownership import check_writable, keep_others_out
from cardbeat.staging import remove_left_behind
from cardbeat.system import try_lock, unlock

if TYPE_CHECKING:
    from cardbeat.database import Transaction

T = TypeVar("T")


class SqliteDatabase(WriteQueue[sqlite3.Connection]):
    """The open database of one data folder, as `open_database` has it."""

    fence = None

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE_NAME
        self.reserve = Reserve(folder)
        check_writable(folder, FILES)
        keep_others_out(folder)
        remove_left_behind(folder)
        self._lock_file = open_lock_file(folder / WRITER_LOCK)
        with contextlib.ExitStack() as undo, start_up_errors(self.path):
            undo.callback(os.close, self._lock_file)
            with self._only_writer(time.monotonic()):
                create_if_missing(self.path)
            check(self.path)
            self._writer = connect(self.path)
            undo.callback(self._writer.close)
            with self._only_writer(time.monotonic()):
                migrate(self._writer)
            self._files = OpenFiles(self.path, self._checkpoint)
            undo.pop_all()
        self._readers = Readers(partial(connect, self.path, query_only=True), partial(unavailable, "read"))
        # Once the writer's thread runs, `self._writer` and these are used by it alone.
        self._wal_bytes: int | None = 0
        self._look_at = 0.0
        self._is_closed = False
        super().__init__()

    def read(self) -> contextlib.AbstractContextManager[sqlite3.Connection]:
        return self._readers.read()

    def create_later(self, work: Callable[[sqlite3.Connection], T]) -> Later[T]:
        self.reserve.require()
        return self.write_later(work)

    def clock(self) -> float:
        return wall_clock()

    def server(self) -> str:
        return ""

    def lease(self) -> FileLease:
        return FileLease(self.path.with_name(DELIVERY_LOCK))

    def hold(self, transaction: object, name: str, /) -> None:
        """There is one writer, and its lock is held all the time."""

    def lock(self, transaction: object, sql: str, values: Sequence[object], /) -> None:
        """As `hold`."""

    def lock_free(self, transaction: "Transaction", sql: str, values: Sequence[Any], /) -> list[Any]:
        return [row[0] for row in transaction.execute(sql, values)]

    def close(self, seconds: float | None = None) -> bool:
        if self._is_closed:
            return True
        if not self._finish(seconds) or not self._files.may_close(self._writer):
            return False
        self._is_closed = True
        self._readers.close()
        self._writer.close()
        os.close(self._lock_file)
        return True

    def _commit(self, group: list[Write[Any]]) -> None:
        with unavailable("write"), self._only_writer(group[0].came_at):
            if misplaced := self._misplaced():
                self._files.refuse(misplaced)
            try:
                self._writer.execute("BEGIN IMMEDIATE")
                self._make(self._writer, group)
                self._writer.execute("COMMIT")
            finally:
                if self._writer.in_transaction:
                    self._writer.execute("ROLLBACK")
            self._wal_bytes = self._wal_bytes_now()
            # Nothing of this has been told yet.
            if self._wal_bytes is None and (misplaced := self._files.misplaced()):
                self._files.refuse(misplaced)

    def _translated(self, error: Exception) -> Exception:
        # A full disk undoes the whole transaction by itself: then every write of the group has failed.
        if not self._writer.in_transaction:
            raise error
        return translated(error)

    def _after_commit(self) -> None:
        if self._wal_bytes is None or self._wal_bytes <= WAL_BYTES:
            self._files.wal_may_reach_bytes = WAL_BYTES
        elif self._wal_bytes > self._files.wal_may_reach_bytes:
            self._empty_wal(self._wal_bytes)

    def _misplaced(self) -> str | None:
        """The path of a file that is gone from its place, with one call while all are: the -shm is looked at seldom."""
        now = time.monotonic()
        if self._wal_bytes is not None and now < self._look_at:
            with contextlib.suppress(OSError):
                if os.path.samestat(os.stat(self.path), self._files.database):
                    return None
        misplaced = self._files.misplaced()
        if misplaced is None:
            self._look_at = now + LOOK_SECONDS
        return misplaced

    def _wal_bytes_now(self) -> int | None:
        """How large the -wal is; None where it is not in its place any more."""
        if self._files.wal is None:
            return 0
        try:
            found = os.stat(self._files.wal_path)
        except OSError:
            return None
        return found.st_size if os.path.samestat(found, self._files.wal) else None

    def _empty_wal(self, size: int) -> None:
        """Empty a -wal that is large: SQLite does so only at a moment without readers, who may always overlap."""
        self._files.wal_may_reach_bytes = size + WAL_GROWTH_BYTES
        # Where another process writes just now, or readers stay, it is tried again after some more writes.
        with contextlib.suppress(OSError, Unavailable), unavailable("checkpoint"):
            if try_lock(self._lock_file):
                try:
                    self._checkpoint()
                finally:
                    unlock(self._lock_file)

    def _checkpoint(self) -> bool:
        """Bring the -wal into the database file while nobody reads; False where somebody reads longer than it waits."""
        with self._readers.kept_out(READERS_LEAVE_SECONDS):
            return checkpoint(self._writer, READERS_LEAVE_SECONDS)

    @contextlib.contextmanager
    def _only_writer(self, came_at: float) -> Iterator[None]:
        """Keep other processes from writing. Raises SQLite's error `BUSY_SECONDS` after `came_at`, a monotonic time."""
        try:
            is_taken = try_lock(self._lock_file) or take_lock(self._lock_file, came_at + BUSY_SECONDS)
        except OSError as error:
            raise as_sqlite(f"can't lock {WRITER_LOCK}: {error.strerror}", sqlite3.SQLITE_IOERR) from None
        if not is_taken:
            # The process that holds it may be suspended for ever.
            raise as_sqlite(f"another process holds {WRITER_LOCK}", sqlite3.SQLITE_BUSY)
        try:
            yield
        finally:
            unlock(self._lock_file)
