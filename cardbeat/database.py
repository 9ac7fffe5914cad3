"""The SQLite file: one writer with group commit, and a pool of connections to read with. It knows no table.

SQLite before 3.51.3 can corrupt a WAL database when two connections write or checkpoint at the same moment, so
one connection writes, all others are `query_only`, and a lock file keeps a second process's writer apart.
"""

import contextlib
import logging
import os
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Generic, TypeVar

from cardbeat.database_file import (
    BUSY_SECONDS,
    FILE_NAME,
    WRITER_LOCK,
    check,
    check_writable,
    connect,
    create_if_missing,
    migrate,
    open_lock_file,
    start_up_errors,
    take_lock,
)
from cardbeat.disk import Reserve
from cardbeat.errors import Unavailable
from cardbeat.later import Later
from cardbeat.ownership import keep_others_out
from cardbeat.system import try_lock, unlock

log = logging.getLogger(__name__)

T = TypeVar("T")

READ_CONNECTIONS = 8
GROUP_SIZE = 500
"""Jobs in one commit at the most: bounds how long the first of them waits."""
RETRY_AFTER_SECONDS = 5


class Database:
    """The open database of one data folder.

    Raises `StartupError` from the constructor for a folder or file that can't be used: unwritable, damaged,
    someone else's, or made by a newer version. A file that exists is never replaced. `reserve` tells whether the
    folder's disk has room for anything new.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE_NAME
        self.reserve = Reserve(folder)
        check_writable(folder)
        keep_others_out(folder)
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
            self._file = os.stat(self.path)
            undo.pop_all()
        # For any thread that holds one of the slots; a connection is with one thread at a time.
        self._reader_slots = threading.BoundedSemaphore(READ_CONNECTIONS)
        self._idle_readers: deque[sqlite3.Connection] = deque()
        # Read and written by callers and the writer's thread, under this condition's lock only.
        self._queued = threading.Condition()
        self._queue: deque[_Job[Any]] = deque()
        self._closing = False
        # From here on `self._writer` is used by this thread alone.
        self._thread = threading.Thread(target=self._write_queued, name="database-writer", daemon=True)
        self._thread.start()

    @contextlib.contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """A `query_only` connection for a few statements; never hold it across the network.

        Raises `Unavailable` when the file can't be read.
        """
        with self._reader_slots, _unavailable("read"):
            try:
                connection = self._idle_readers.pop()
            except IndexError:
                connection = connect(self.path, query_only=True)
            try:
                yield connection
            finally:
                self._idle_readers.append(connection)
                if self._closing:
                    self._close_readers()

    def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` in a transaction and return its result once that is on disk.

        `work` must be quick: it shares its commit with whatever else is queued. What it raises undoes its own
        changes only, and is raised here. Raises `Unavailable` when the database can't be written.
        """
        return self.write_later(work).wait()

    def write_later(self, work: Callable[[sqlite3.Connection], T]) -> Later[T]:
        """As `write`, without waiting; the writer's thread settles the result. Raises `Unavailable` at a stop."""
        job = _Job(work)
        with self._queued:
            if self._closing:
                raise Unavailable("stopping", "The server is stopping; try again in a moment.", RETRY_AFTER_SECONDS)
            self._queue.append(job)
            self._queued.notify()
        return job.committed

    def create_later(self, work: Callable[[sqlite3.Connection], T]) -> Later[T]:
        """As `write_later`, for what stores something new. Raises `Unavailable` also while the disk is low."""
        self.reserve.require()
        return self.write_later(work)

    def close(self) -> None:
        """Finish what is queued, then close every connection."""
        with self._queued:
            self._closing = True
            self._queued.notify()
        self._thread.join()
        self._close_readers()
        self._writer.close()
        os.close(self._lock_file)

    def _close_readers(self) -> None:
        """Close the connections that nobody reads from. One in use at the end is closed by its thread."""
        with contextlib.suppress(IndexError):
            while True:
                self._idle_readers.pop().close()

    def _write_queued(self) -> None:
        while True:
            with self._queued:
                while not self._queue and not self._closing:
                    self._queued.wait()
                jobs = [self._queue.popleft() for _ in range(min(len(self._queue), GROUP_SIZE))]
            if not jobs:
                return
            self._commit(jobs)
            for job in jobs:
                _tell(job)

    def _commit(self, jobs: "list[_Job[Any]]") -> None:
        """One transaction for all jobs; each has its own savepoint."""
        try:
            with _unavailable("write"), self._only_writer(jobs[0].came_at):
                self._require_file_in_place()
                try:
                    self._writer.execute("BEGIN IMMEDIATE")
                    for job in jobs:
                        self._run(job)
                    self._writer.execute("COMMIT")
                finally:
                    if self._writer.in_transaction:
                        self._writer.execute("ROLLBACK")
        except BaseException as error:
            for job in jobs:
                job.error = error

    def _run(self, job: "_Job[Any]") -> None:
        self._writer.execute("SAVEPOINT job")
        try:
            job.result = job.work(self._writer)
        except Exception as error:
            # A full disk undoes the whole transaction by itself: then every job of the group has failed.
            if not self._writer.in_transaction:
                raise
            job.error = _translated(error)
            self._writer.execute("ROLLBACK TO job")
        self._writer.execute("RELEASE job")

    def _require_file_in_place(self) -> None:
        """Raise SQLite's error unless the file is in its place: writes to a removed one would end with the process."""
        try:
            in_place = os.path.samestat(os.stat(self.path), self._file)
        except OSError:
            in_place = False
        if not in_place:
            raise _as_sqlite(f"{self.path} was removed or replaced while in use", sqlite3.SQLITE_READONLY)

    @contextlib.contextmanager
    def _only_writer(self, came_at: float) -> Iterator[None]:
        """Keep other processes from writing. Raises SQLite's error `BUSY_SECONDS` after `came_at`, a monotonic time."""
        if not self._lock_taken(came_at + BUSY_SECONDS):
            # The process that holds it may be suspended for ever.
            raise _as_sqlite(f"another process holds {WRITER_LOCK}", sqlite3.SQLITE_BUSY)
        try:
            yield
        finally:
            unlock(self._lock_file)

    def _lock_taken(self, give_up_at: float) -> bool:
        try:
            # It is free, as a rule: there is but one process.
            return try_lock(self._lock_file) or take_lock(self._lock_file, give_up_at)
        except OSError as error:
            raise _as_sqlite(f"can't lock {WRITER_LOCK}: {error.strerror}", sqlite3.SQLITE_IOERR) from None


class _Job(Generic[T]):
    """One write, handed to the writer's thread, which settles `committed` once it is on disk or has failed."""

    __slots__ = ("came_at", "committed", "error", "result", "work")

    def __init__(self, work: Callable[[sqlite3.Connection], T]) -> None:
        self.work = work
        self.committed: Later[T] = Later()
        self.came_at = time.monotonic()
        self.result: T
        self.error: BaseException | None = None

    def tell(self) -> None:
        if self.error is None:
            self.committed.succeed(self.result)
        else:
            self.committed.fail(self.error)


def _tell(job: _Job[Any]) -> None:
    try:
        job.tell()
    except Exception:
        # A defect of whoever is called back; it must not keep everybody from writing.
        log.exception("what was written could not be told")


@contextlib.contextmanager
def _unavailable(deed: str) -> Iterator[None]:
    try:
        yield
    except sqlite3.DatabaseError as error:
        log.error("the database can't %s: %s", deed, error)
        raise _translated(error) from error


_DISK_TROUBLE = {
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_NOTADB,
    sqlite3.SQLITE_NOMEM,
}


def _as_sqlite(message: str, code: int) -> sqlite3.OperationalError:
    """Trouble that SQLite does not see, to be treated as its own of that code."""
    error = sqlite3.OperationalError(message)
    error.sqlite_errorcode = code
    return error


def _translated(error: Exception) -> Exception:
    """SQLite's trouble with its disk as a refusal; any other error as it is."""
    if getattr(error, "sqlite_errorcode", 0) & 0xFF in _DISK_TROUBLE:
        sentence = "The database can't be used now; try again soon."
        return Unavailable("database_unavailable", sentence, RETRY_AFTER_SECONDS)
    return error
