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

from cardbeat import threads
from cardbeat.database_file import (
    BUSY_SECONDS,
    FILE_NAME,
    WAL_BYTES,
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
from cardbeat.database_files import OpenFiles
from cardbeat.database_readers import Readers
from cardbeat.disk import Reserve
from cardbeat.errors import Unavailable
from cardbeat.later import Later
from cardbeat.ownership import keep_others_out
from cardbeat.precedence import Precedence
from cardbeat.staging import remove_left_behind
from cardbeat.system import try_lock, unlock

log = logging.getLogger(__name__)

T = TypeVar("T")

GROUP_SIZE = 500
"""Jobs in one commit at the most: bounds how long the first of them waits."""
RETRY_AFTER_SECONDS = 5
READERS_LEAVE_SECONDS = 0.05
"""How long the writer waits for those who read, of this process and then of others, to empty the -wal."""
WAL_GROWTH_BYTES = 4 * 1024 * 1024
"""How much more is written after readers who stayed longer have kept it from that, until it tries again."""


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
            self._files = OpenFiles(self.path)
            undo.pop_all()
        self._readers = Readers(self.path)
        # Read and written by callers and the writer's thread, under this condition's lock only.
        self._queued = threading.Condition()
        self._queue: deque[_Job[Any]] = deque()
        self._closing = False
        self.precedence = Precedence()
        """Of the writer's thread, over those that compute meanwhile."""
        # From here on `self._writer` and what follows are used by this thread alone.
        self._wal_is_saved = False
        self._wal_bytes: int | None = 0
        self._wal_may_reach_bytes = WAL_BYTES
        self._thread = threading.Thread(target=self._write_queued, name="database-writer", daemon=True)
        threads.start(self._thread)

    @contextlib.contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """A `query_only` connection for a few statements; never hold it across the network.

        Raises `Unavailable` when the file can't be read.
        """
        with _unavailable("read"), self._readers.one() as connection:
            yield connection

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
            self.precedence.has_work = True
            self._queued.notify()
        return job.committed

    def create_later(self, work: Callable[[sqlite3.Connection], T]) -> Later[T]:
        """As `write_later`, for what stores something new. Raises `Unavailable` also while the disk is low."""
        self.reserve.require()
        return self.write_later(work)

    def close(self, seconds: float | None = None) -> bool:
        """Finish what is queued, then close every connection. False, with none closed, where that takes longer."""
        with self._queued:
            self._closing = True
            self._queued.notify()
        if not threads.has_ended(self._thread, seconds):
            return False
        self._readers.close()
        self._writer.close()
        os.close(self._lock_file)
        return True

    def _write_queued(self) -> None:
        while True:
            with self._queued:
                while not self._queue and not self._closing:
                    self.precedence.has_work = False
                    self._queued.wait()
                jobs = [self._queue.popleft() for _ in range(min(len(self._queue), GROUP_SIZE))]
            if not jobs:
                return
            self._commit(jobs)
            for job in jobs:
                _tell(job)
            self._keep_wal_small()

    def _commit(self, jobs: "list[_Job[Any]]") -> None:
        """One transaction for all jobs; each has its own savepoint."""
        try:
            with _unavailable("write"), self._only_writer(jobs[0].came_at):
                self._require_in_place(self._misplaced_before())
                try:
                    self._writer.execute("BEGIN IMMEDIATE")
                    for job in jobs:
                        self._run(job)
                    self._writer.execute("COMMIT")
                finally:
                    if self._writer.in_transaction:
                        self._writer.execute("ROLLBACK")
                self._wal_bytes = self._files.wal_bytes()
                if self._wal_bytes is None:
                    # Nothing of this has been told yet.
                    self._require_in_place(self._files.misplaced())
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

    def _misplaced_before(self) -> str | None:
        """The path of a file that was found to be gone from its place before a commit, with few calls while all are."""
        if self._wal_bytes is None:
            return self._files.misplaced()
        return self._files.misplaced_at_a_glance()

    def _require_in_place(self, misplaced: str | None) -> None:
        """Raise SQLite's error unless the files are in their places: writes to a removed one end with the process."""
        if misplaced is not None and self._files.only_wal_is_gone():
            self._save_wal()
        if self._wal_is_saved:
            raise _as_sqlite(f"{self.path}-wal was removed while in use; restart the server", sqlite3.SQLITE_READONLY)
        if misplaced is not None:
            raise _as_sqlite(f"{misplaced} was removed or replaced while in use", sqlite3.SQLITE_READONLY)

    def _save_wal(self) -> None:
        """Bring all that a removed -wal holds into the database file, as long as this process still has it open.

        Nothing is written after that: the next start finds all that was acknowledged.
        """
        if not self._wal_is_saved and self._checkpoint():
            self._wal_is_saved = True
            log.error("%s-wal was removed while in use; what it held is now in %s", self.path, self.path)

    def _keep_wal_small(self) -> None:
        """Empty the -wal once it is large: SQLite does so only at a moment without readers, who may always overlap."""
        size = self._wal_bytes
        if size is None or size <= WAL_BYTES:
            self._wal_may_reach_bytes = WAL_BYTES
        elif size > self._wal_may_reach_bytes:
            self._wal_may_reach_bytes = size + WAL_GROWTH_BYTES
            # Where another process writes just now, as where readers stay, it is tried again after some more writes.
            at_once = self._only_writer(time.monotonic() - BUSY_SECONDS)
            with contextlib.suppress(Unavailable, sqlite3.Error), _unavailable("checkpoint"), at_once:
                self._checkpoint()

    def _checkpoint(self) -> bool:
        """Bring the -wal into the database file and empty it; False where somebody reads for longer than that waits."""
        with self._readers.paused(READERS_LEAVE_SECONDS):
            self._set_busy_seconds(READERS_LEAVE_SECONDS)
            try:
                (busy, _, _) = self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            finally:
                self._set_busy_seconds(BUSY_SECONDS)
        return not busy

    def _set_busy_seconds(self, seconds: float) -> None:
        self._writer.execute(f"PRAGMA busy_timeout = {int(1000 * seconds)}")

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
