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
from cardbeat.database_errors import RETRY_AFTER_SECONDS, as_sqlite, translated
from cardbeat.database_file import (
    BUSY_SECONDS,
    FILE_NAME,
    WAL_BYTES,
    WRITER_LOCK,
    check,
    check_writable,
    checkpoint,
    connect,
    create_if_missing,
    migrate,
    open_lock_file,
    start_up_errors,
    take_lock,
)
from cardbeat.database_files import LOOK_SECONDS, READERS_LEAVE_SECONDS, WAL_GROWTH_BYTES, OpenFiles
from cardbeat.disk import Reserve
from cardbeat.errors import Unavailable
from cardbeat.later import Later, Precedence
from cardbeat.ownership import keep_others_out
from cardbeat.staging import remove_left_behind
from cardbeat.system import try_lock, unlock

log = logging.getLogger(__name__)

T = TypeVar("T")

READ_CONNECTIONS = 8
GROUP_SIZE = 500
"""Jobs in one commit at the most: bounds how long the first of them waits."""


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
            self._files = OpenFiles(self.path, self._checkpoint)
            undo.pop_all()
        # For any thread that holds one of the slots; a connection is with one thread at a time. Slots are taken behind
        # the gate, so that nobody begins to read while it is shut.
        self._gate = threading.Lock()
        self._reader_slots = threading.BoundedSemaphore(READ_CONNECTIONS)
        self._idle_readers: deque[sqlite3.Connection] = deque()
        # Read and written by callers and the writer's thread, under this condition's lock only.
        self._queued = threading.Condition()
        self._queue: deque[_Job[Any]] = deque()
        self._closing = False
        self.precedence = Precedence()
        """Of the writer's thread, over those that compute meanwhile."""
        # From here on `self._writer` and what follows are used by this thread alone.
        self._wal_bytes: int | None = 0
        self._look_at = 0.0
        self._thread = threading.Thread(target=self._write_queued, name="database-writer", daemon=True)
        threads.start(self._thread)

    @contextlib.contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """A `query_only` connection for a few statements; never hold it across the network.

        Raises `Unavailable` when the file can't be read.
        """
        with self._gate:
            self._reader_slots.acquire()
        try:
            with _unavailable("read"):
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
        finally:
            self._reader_slots.release()

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
        if not threads.has_ended(self._thread, seconds) or not self._files.may_close(self._writer):
            return False
        self._close_readers()
        self._writer.close()
        os.close(self._lock_file)
        return True

    def _close_readers(self) -> None:
        """Close the connections that nobody reads from. One in use at the end is closed by its thread."""
        with contextlib.suppress(IndexError):
            while True:
                self._idle_readers.pop().close()

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
                job.tell()
            if self._wal_bytes is None or self._wal_bytes <= WAL_BYTES:
                self._files.wal_may_reach_bytes = WAL_BYTES
            elif self._wal_bytes > self._files.wal_may_reach_bytes:
                self._empty_wal(self._wal_bytes)

    def _commit(self, jobs: "list[_Job[Any]]") -> None:
        """One transaction for all jobs; each has its own savepoint."""
        try:
            with _unavailable("write"), self._only_writer(jobs[0].came_at):
                if misplaced := self._misplaced():
                    self._files.refuse(misplaced)
                try:
                    self._writer.execute("BEGIN IMMEDIATE")
                    for job in jobs:
                        self._run(job)
                    self._writer.execute("COMMIT")
                finally:
                    if self._writer.in_transaction:
                        self._writer.execute("ROLLBACK")
                self._wal_bytes = self._wal_bytes_now()
                # Nothing of this has been told yet.
                if self._wal_bytes is None and (misplaced := self._files.misplaced()):
                    self._files.refuse(misplaced)
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
            job.error = translated(error)
            self._writer.execute("ROLLBACK TO job")
        self._writer.execute("RELEASE job")

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
        with contextlib.suppress(OSError, Unavailable), _unavailable("checkpoint"):
            if try_lock(self._lock_file):
                try:
                    self._checkpoint()
                finally:
                    unlock(self._lock_file)

    def _checkpoint(self) -> bool:
        """Bring the -wal into the database file while nobody reads; False where somebody reads longer than it waits."""
        ends_at, taken = time.monotonic() + READERS_LEAVE_SECONDS, 0
        with self._gate:
            try:
                while taken < READ_CONNECTIONS and self._reader_slots.acquire(
                    timeout=max(0, ends_at - time.monotonic())
                ):
                    taken += 1
                return checkpoint(self._writer, READERS_LEAVE_SECONDS)
            finally:
                if taken:
                    self._reader_slots.release(taken)

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
        try:
            self.committed.succeed(self.result) if self.error is None else self.committed.fail(self.error)
        except Exception:
            # A defect of whoever is called back; it must not keep everybody from writing.
            log.exception("what was written could not be told")


@contextlib.contextmanager
def _unavailable(deed: str) -> Iterator[None]:
    try:
        yield
    except sqlite3.DatabaseError as error:
        log.error("the database can't %s: %s", deed, error)
        raise translated(error) from error
