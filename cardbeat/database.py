"""The SQLite file: one writer that groups commits, a pool of readers, migrations. No business in it.

SQLite before 3.51.3 can corrupt a WAL database when two connections write or checkpoint at the same moment, so
one connection writes, all others are `query_only`, and a lock file keeps a second process's writer apart.
"""

import contextlib
import logging
import os
import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Iterator
from importlib import resources
from pathlib import Path
from typing import Any, Generic, TypeVar

from cardbeat.errors import StartupError, Unavailable

try:
    import fcntl
except ImportError:  # Windows: one process a data folder
    fcntl = None  # type: ignore[assignment]

log = logging.getLogger(__name__)

T = TypeVar("T")

FILE_NAME = "cardbeat.db"
APPLICATION_ID = 0x43424541
READERS = 8
GROUP_SIZE = 500
"""Jobs in one commit at the most: bounds the wait of the first of them."""
BUSY_SECONDS = 5
"""How long to wait for another program that holds the file, such as a backup tool."""
RETRY_AFTER_SECONDS = 5
QUICK_CHECK_BYTES = 64 * 1024 * 1024
"""A larger file is not read through at start-up, which would keep clients waiting; `doctor` does it."""


class Database:
    """The open database of one data folder.

    Raises `StartupError` from the constructor for a folder or file that can't be used: unwritable, damaged,
    someone else's, or made by a newer version. A file that exists is never replaced.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE_NAME
        self._lock_file = _open_lock_file(folder)
        with contextlib.ExitStack() as undo, _start_up_errors(self.path):
            undo.callback(os.close, self._lock_file)
            with self._only_writer():
                _create_if_missing(self.path)
            self._writer = _connect(self.path)
            undo.callback(self._writer.close)
            _check(self._writer, self.path)
            with self._only_writer():
                _migrate(self._writer)
            undo.pop_all()
        self._idle_readers: deque[sqlite3.Connection] = deque()
        self._reader_slots = threading.BoundedSemaphore(READERS)
        self._queue: deque[_Job[Any]] = deque()
        self._queued = threading.Condition()
        self._closing = False
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
                connection = _connect(self.path, query_only=True)
            try:
                yield connection
            finally:
                self._idle_readers.append(connection)

    def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` in a transaction and return its result once that is on disk.

        `work` must be quick: it shares its commit with whatever else is queued. What it raises undoes its own
        changes only, and is raised here. Raises `Unavailable` when the database can't be written.
        """
        job = _Job(work)
        with self._queued:
            if self._closing:
                raise Unavailable("stopping", "The server is stopping; try again in a moment.", RETRY_AFTER_SECONDS)
            self._queue.append(job)
            self._queued.notify()
        return job.outcome()

    def close(self) -> None:
        """Finish what is queued, then close every connection."""
        with self._queued:
            self._closing = True
            self._queued.notify()
        self._thread.join()
        while self._idle_readers:
            self._idle_readers.pop().close()
        self._writer.close()
        os.close(self._lock_file)

    def _write_queued(self) -> None:
        while True:
            with self._queued:
                self._queued.wait_for(lambda: self._queue or self._closing)
                jobs = [self._queue.popleft() for _ in range(min(len(self._queue), GROUP_SIZE))]
            if not jobs:
                return
            self._commit(jobs)
            for job in jobs:
                job.done.release()

    def _commit(self, jobs: "list[_Job[Any]]") -> None:
        """One transaction for all jobs; each has its own savepoint."""
        try:
            with _unavailable("write"), self._only_writer():
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

    @contextlib.contextmanager
    def _only_writer(self) -> Iterator[None]:
        if fcntl is None:
            yield
            return
        fcntl.flock(self._lock_file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self._lock_file, fcntl.LOCK_UN)


class _Job(Generic[T]):
    """One call of `write`, handed to the writer thread; `done` is held until it is committed or has failed."""

    __slots__ = ("done", "error", "result", "work")

    def __init__(self, work: Callable[[sqlite3.Connection], T]) -> None:
        self.work = work
        self.result: T
        self.error: BaseException | None = None
        self.done = threading.Lock()
        self.done.acquire()

    def outcome(self) -> T:
        self.done.acquire()
        if self.error is not None:
            raise self.error
        return self.result


def back_up(folder: Path, target: Path) -> None:
    """Copy the database of a data folder, in use or not, as of one moment to one file that appears whole.

    Raises `StartupError` when the one can't be read or the other not written.
    """
    source_path = folder / FILE_NAME
    if not source_path.is_file():
        raise StartupError(f"there is no database at {source_path}")
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    try:
        with (
            _start_up_errors(source_path),
            contextlib.closing(_connect(source_path, query_only=True)) as source,
            contextlib.closing(sqlite3.connect(partial, isolation_level=None)) as copy,
        ):
            _check(source, source_path)
            source.backup(copy)
            # Out of WAL mode the backup is one file, with nothing beside it to forget.
            copy.execute("PRAGMA journal_mode = DELETE")
        _sync(partial)
        partial.replace(target)
        _sync(target.parent)
    except OSError as error:
        raise StartupError(f"can't write {target}: {error.strerror}") from None
    finally:
        partial.unlink(missing_ok=True)


def integrity_problems(folder: Path) -> list[str]:
    """What SQLite's full check finds wrong, nothing if the file is sound. Reads the whole file."""
    path = folder / FILE_NAME
    with _start_up_errors(path), contextlib.closing(_connect(path, query_only=True)) as connection:
        _check(connection, path)
        found = [row[0] for row in connection.execute("PRAGMA integrity_check(20)")]
        return [] if found == ["ok"] else found


def last_moment_stored(folder: Path) -> int:
    """The latest Unix second that the monitor has noted of itself, 0 if there is none. Raises `StartupError`."""
    path = folder / FILE_NAME
    if not path.exists():
        return 0
    with _start_up_errors(path), contextlib.closing(_connect(path, query_only=True)) as connection:
        (latest,) = connection.execute("SELECT max(value) FROM monitor WHERE name LIKE 'last_%_at'").fetchone()
        return int(latest or 0)


def schema_version() -> int:
    """The version of the schema that this program writes."""
    return len(_migrations())


def _connect(path: Path, query_only: bool = False) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, timeout=BUSY_SECONDS, check_same_thread=False)
    try:
        connection.row_factory = sqlite3.Row
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA journal_size_limit = 67108864")
        if query_only:
            connection.execute("PRAGMA query_only = ON")
    except BaseException:
        connection.close()
        raise
    return connection


def _create_if_missing(path: Path) -> None:
    """Build a new database beside its place and move it there, so that an empty file always means damage."""
    if path.exists():
        return
    if path.with_name(path.name + "-wal").exists():
        raise StartupError(f"{path} is missing though its -wal file is there; restore both, or move the -wal away")
    partial = path.with_name(path.name + ".new")
    partial.unlink(missing_ok=True)
    with contextlib.closing(_connect(partial)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        _migrate(connection)
    _sync(partial)
    partial.replace(path)
    _sync(path.parent)


def _check(connection: sqlite3.Connection, path: Path) -> None:
    if path.stat().st_size == 0:
        raise StartupError(f"{path} is damaged (empty); restore a backup or move it away")
    (application_id,) = connection.execute("PRAGMA application_id").fetchone()
    if application_id != APPLICATION_ID:
        raise StartupError(f"{path} is not a cardbeat database; move it away or choose another data folder")
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > schema_version():
        raise StartupError(f"{path} was written by a newer cardbeat (schema {version}); run that version")
    if path.stat().st_size <= QUICK_CHECK_BYTES:
        (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        if found != "ok":
            raise StartupError(f"{path} is damaged; run doctor, then restore a backup or move it away")


def _migrate(connection: sqlite3.Connection) -> None:
    """Bring the schema up to date, each numbered file with its version in one transaction."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    for number, script in enumerate(_migrations(), 1):
        if number > version:
            connection.executescript(f"BEGIN IMMEDIATE; {script}; PRAGMA user_version = {number}; COMMIT;")
    connection.execute("PRAGMA journal_mode = WAL")


def _migrations() -> list[str]:
    folder = resources.files("cardbeat") / "schema"
    return [file.read_text("utf-8") for file in sorted(folder.iterdir(), key=lambda file: file.name)]


def _open_lock_file(folder: Path) -> int:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Owner only: the folder holds webhook secrets and check ids.
        return os.open(folder / "writer.lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise StartupError(f"can't write in the data folder {folder}: {error.strerror}") from None


@contextlib.contextmanager
def _start_up_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.DatabaseError as error:
        primary = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if primary in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
            raise StartupError(f"{path} is damaged; restore a backup or move it away") from None
        raise StartupError(f"can't use {path}: {error}") from None
    except OSError as error:
        raise StartupError(f"can't use {path}: {error.strerror}") from None


@contextlib.contextmanager
def _unavailable(deed: str) -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:
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


def _translated(error: Exception) -> Exception:
    """SQLite's trouble with its disk as a refusal; any other error as it is."""
    if getattr(error, "sqlite_errorcode", 0) & 0xFF in _DISK_TROUBLE:
        sentence = "The database can't be used now; try again soon."
        return Unavailable("database_unavailable", sentence, RETRY_AFTER_SECONDS)
    return error


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
