"""The SQLite file: one connection that writes, others that read.

SQLite before 3.51.3 can corrupt a WAL database when two connections write or checkpoint at the same moment. So one
connection writes, all others are `query_only`, and a lock file keeps the writers of other processes out.
"""

import contextlib
import itertools
import logging
import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from cardbeat.clock import wall_clock
from cardbeat.concurrency.later import Later
from cardbeat.database.queue import Readers, Write, WriteQueue
from cardbeat.database.sqlite.file import (
    BUSY_SECONDS,
    DELIVERY_LOCK,
    FILE_NAME,
    FILES,
    WAL_BYTES,
    WRITER_LOCK,
    check,
    connect,
    create_if_missing,
    empty_wal,
    is_behind,
    lock_path,
    migrate,
    start_up_errors,
)
from cardbeat.database.sqlite.lock_file import FileLease, open_lock_file, take_lock
from cardbeat.database.sqlite.room import ROOM_BYTES, Room
from cardbeat.errors import StartupError, Unavailable
from cardbeat.host.disk import Reserve
from cardbeat.host.ownership import check_writable, is_in_place, keep_others_out, status_of
from cardbeat.host.staging import remove_left_behind
from cardbeat.host.system import try_lock, unlock
from cardbeat.log import Seldom

if TYPE_CHECKING:
    from cardbeat.database.protocols import Transaction

log = logging.getLogger(__name__)

T = TypeVar("T")

READERS_LEAVE_SECONDS = 0.1
"""How long the writer waits for readers that began before it empties the -wal."""
WAL_GROWTH_BYTES = 4 * 1024 * 1024
"""By how much the -wal grows until the writer tries again, after readers stayed for longer than that."""
OPENINGS = 8
"""How often the database is opened anew on a full disk: other programs may take what the room gives up."""
_READ_ON = "the -wal grows until the disk is full, because a reader stays: end a backup that hangs or is suspended"
_DISK_TROUBLE = {
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_NOTADB,
}


class SqliteDatabase(WriteQueue[sqlite3.Connection]):
    """The open database of one data folder, as `open_database` has it."""

    fence = None

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE_NAME
        self.reserve = Reserve(folder)
        self._told = Seldom(log)
        self._room = Room(folder, self.reserve)
        check_writable(folder, FILES)
        keep_others_out(folder)
        remove_left_behind(folder)
        writer_lock = lock_path(self.path, WRITER_LOCK)
        self._lock_file = open_lock_file(writer_lock)
        with contextlib.ExitStack() as undo, start_up_errors(self.path):
            undo.callback(os.close, self._lock_file)
            self._writer = self._open_though_full()
            undo.callback(self._writer.close)
            # SQLite puts its own files beside the file that a link refers to.
            self._wal_path, shm_path = (Path(f"{os.path.realpath(self.path)}{end}") for end in ("-wal", "-shm"))
            self._opened = {path: path.stat() for path in (self.path, writer_lock)}
            """The status of lock files and of the files that SQLite keeps open, from the moment when it opened them."""
            # If the file system is not made for WAL mode, these two do not exist.
            self._opened |= {path: found for path in (self._wal_path, shm_path) if (found := status_of(path))}
            undo.pop_all()
        self._wal_may_reach_bytes = WAL_BYTES
        self._is_closed = False
        super().__init__(
            Readers(partial(connect, self.path, query_only=True), partial(unavailable, "read", self._told))
        )

    def _open_though_full(self) -> sqlite3.Connection:
        """As `_open`. SQLite makes two files for it: while the disk is full, the room gives way for them."""
        for _ in range(OPENINGS):
            try:
                return self._open()
            except (sqlite3.DatabaseError, StartupError):
                if not self._room.give_way_to_open():
                    raise
        return self._open()

    def _open(self) -> sqlite3.Connection:
        """The connection that writes, its tables up to date.

        Raises `StartupError` while a server of an older version uses them.
        """
        with self._only_writer(time.monotonic()):
            create_if_missing(self.path)
        check(self.path)
        with contextlib.ExitStack() as undo:
            writer = undo.enter_context(contextlib.closing(connect(self.path)))
            with self._only_writer(time.monotonic()):
                self._migrate(writer)
            undo.pop_all()
        return writer

    def _migrate(self, writer: sqlite3.Connection) -> None:
        with contextlib.ExitStack() as held:
            if is_behind(writer):
                lease = FileLease(lock_path(self.path, DELIVERY_LOCK))
                held.callback(lease.release)
                if not lease.take():
                    found = f"a server of an older version uses {self.path}"
                    raise StartupError(f"{found}; stop it, and start the server with this version first")
            migrate(writer)

    def create_later(self, work: Callable[[sqlite3.Connection], T]) -> Later[T]:
        self.reserve.require()
        return self.write_later(work)

    def clock(self) -> float:
        return wall_clock()

    def server(self) -> str:
        return ""

    def lease(self) -> FileLease:
        path = lock_path(self.path, DELIVERY_LOCK)
        lease = FileLease(path)
        # In a new dictionary: the writer's thread may go through the one before.
        self._opened = {**self._opened, path: lease.opened}
        return lease

    def hold(self, transaction: object, name: str, /) -> None:
        """Do nothing: there is one writer, and it holds its lock during the whole transaction."""

    def lock(self, transaction: object, sql: str, values: Sequence[object], /) -> None:
        """Do nothing, as `hold`."""

    def lock_free(self, transaction: "Transaction", sql: str, values: Sequence[Any], /) -> list[Any]:
        return [row[0] for row in transaction.execute(sql, values)]

    def close(self, seconds: float | None = None) -> bool:
        if self._is_closed:
            return True
        if not self._finish(seconds):
            return False
        self._is_closed = True
        self._readers.close()
        freed = sum(found.st_size for path in self._opened if path != self.path and (found := status_of(path)))
        self._writer.close()
        self._room.take_back(freed)
        os.close(self._lock_file)
        return True

    def _commit(self, group: list[Write[Any]]) -> bool:
        with unavailable("write", self._told), self._only_writer(group[0].came_at):
            self._require_in_place()
            is_read = False
            for attempt in itertools.count():
                try:
                    has_changed = self._transact(group)
                    break
                except sqlite3.DatabaseError as error:
                    # Once the database file has all that the -wal holds, as far as readers and the disk allow, the
                    # -wal needs no room to grow. The file may have to grow for that.
                    if not self._is_full(error) or (attempt and not self._room.give_way(is_read * ROOM_BYTES // 2)):
                        if is_read:
                            self._told.error(_READ_ON)
                        raise
                    with contextlib.suppress(sqlite3.DatabaseError):
                        is_read = not empty_wal(self._writer, READERS_LEAVE_SECONDS, "RESTART")
                    for write in group:
                        write.error = None
            # The callers have not been told yet: a file may have been removed during the transaction.
            self._require_in_place()
            return has_changed

    def _is_full(self, error: sqlite3.DatabaseError) -> bool:
        """Whether the disk has no room for the -wal, the database file or the -shm, or a quota leaves none."""
        code = getattr(error, "sqlite_errorcode", 0)
        is_full = code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE)
        return is_full or (code == sqlite3.SQLITE_IOERR_WRITE and self._room.is_at_quota())

    def _transact(self, group: list[Write[Any]]) -> bool:
        before = self._writer.total_changes
        try:
            self._writer.execute("BEGIN IMMEDIATE")
            self._make(self._writer, group)
            self._writer.execute("COMMIT")
            return self._writer.total_changes != before
        finally:
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")

    def _require_in_place(self) -> None:
        """Raise SQLite's error if a file of the database was removed or replaced while in use.

        No later process would find what is written to such a file, nor the lock on it.
        """
        for path, opened in self._opened.items():
            if not is_in_place(path, opened):
                message = f"{path} was removed or replaced while in use; stop the server, put it back and start it"
                raise as_sqlite(message, sqlite3.SQLITE_READONLY)

    def _translated(self, error: Exception) -> Exception:
        # A full disk makes SQLite undo the whole transaction, so every write of the group has failed.
        if not self._writer.in_transaction:
            raise error
        return translated(error)

    def _after_commit(self) -> None:
        """Keep room on the disk, and empty a large -wal.

        SQLite by itself does not wait for readers, and these may always overlap. Readers that begin while the writer
        waits do not need the -wal, so it waits only for those that began before.
        """
        with contextlib.suppress(sqlite3.DatabaseError):
            sql = "SELECT sum(checks), (SELECT coalesce(max(seq), 0) FROM keys) FROM totals_by_status"
            self._room.fill(*self._writer.execute(sql).fetchone())
        found = status_of(self._wal_path)
        if found is None or found.st_size <= WAL_BYTES:
            self._wal_may_reach_bytes = WAL_BYTES
        elif found.st_size > self._wal_may_reach_bytes:
            self._wal_may_reach_bytes = found.st_size + WAL_GROWTH_BYTES
            # If another process writes now, or readers stay, this is tried again after some more writes.
            with contextlib.suppress(OSError, Unavailable), unavailable("checkpoint", self._told):
                if try_lock(self._lock_file):
                    try:
                        if not empty_wal(self._writer, READERS_LEAVE_SECONDS) and found.st_size > 2 * WAL_BYTES:
                            self._told.error(_READ_ON)
                    finally:
                        unlock(self._lock_file)

    @contextlib.contextmanager
    def _only_writer(self, came_at: float) -> Iterator[None]:
        """Keep other processes from writing. Raises SQLite's error `BUSY_SECONDS` after `came_at`, a monotonic time."""
        try:
            is_taken = take_lock(self._lock_file, came_at + BUSY_SECONDS)
        except OSError as error:
            raise as_sqlite(f"can't lock {WRITER_LOCK}: {error.strerror}", sqlite3.SQLITE_IOERR) from None
        if not is_taken:
            # That process may be suspended for any time.
            raise as_sqlite(f"another process holds {WRITER_LOCK}", sqlite3.SQLITE_BUSY)
        try:
            yield
        finally:
            unlock(self._lock_file)


def as_sqlite(message: str, code: int) -> sqlite3.OperationalError:
    """An error as SQLite's own with that code, for trouble that SQLite does not notice."""
    error = sqlite3.OperationalError(message)
    error.sqlite_errorcode = code
    return error


def translated(error: Exception) -> Exception:
    """A refusal for SQLite's trouble with the disk or with memory; any other error unchanged."""
    if isinstance(error, MemoryError) or getattr(error, "sqlite_errorcode", 0) & 0xFF in _DISK_TROUBLE:
        return Unavailable("database_unavailable")
    return error


@contextlib.contextmanager
def unavailable(deed: str, told: Seldom) -> Iterator[None]:
    """Translate SQLite's errors and log them by `told`. `deed` names what the database can't do."""
    try:
        yield
    except (sqlite3.DatabaseError, MemoryError) as error:
        # A `MemoryError` has no text.
        told.error(f"the database can't {deed}: {str(error) or 'out of memory'}")
        raise translated(error) from error
