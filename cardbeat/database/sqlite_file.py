"""The database file on disk: created, checked, brought up to date and connected to."""

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from cardbeat import ownership
from cardbeat.database.schema import numbered_scripts
from cardbeat.errors import StartupError
from cardbeat.progress import tell_if_slow
from cardbeat.stopping import RequireGoing, always_going
from cardbeat.system import replace, sync_file, sync_folder

FILE_NAME = "cardbeat.db"
WRITER_LOCK = "writer.lock"
DELIVERY_LOCK = "delivery.lock"
LOCKS = (WRITER_LOCK, DELIVERY_LOCK)
FILES = (FILE_NAME, f"{FILE_NAME}-wal", f"{FILE_NAME}-shm", *LOCKS)
"""What must be usable for whoever serves a data folder."""
APPLICATION_ID = 0x43424541
BUSY_SECONDS = 5
"""How long to wait for another program that holds the file, such as a backup tool."""
WAL_BYTES = 64 * 1024 * 1024
"""How large the -wal may grow before the writer has it emptied, and how large it stays: several times what a large
sweep writes before SQLite itself begins it anew, since a file that must grow again makes commits slow."""
COPY_PAGES = 1000
"""Of 4 KiB each: copied between two looks at whether to stop."""
QUICK_CHECK_BYTES = 64 * 1024 * 1024
"""A larger file is not read through at start-up, which would keep clients waiting; `doctor` does it."""


def integrity_problems(folder: Path) -> list[str]:
    """What SQLite's full check finds wrong, nothing if the file is sound. Reads the whole file."""
    path = folder / FILE_NAME
    check(path)
    with start_up_errors(path), open_read_only(path) as connection:
        found = [row[0] for row in connection.execute("PRAGMA integrity_check(20)")]
        return [] if found == ["ok"] else found


def last_moment_stored(folder: Path) -> int:
    """The latest Unix second that the monitor has noted of itself, 0 if there is none. Raises `StartupError`."""
    path = folder / FILE_NAME
    if not os.path.exists(path):
        return 0
    with start_up_errors(path), open_read_only(path) as connection:
        return last_moment(connection)


def last_moment(connection: sqlite3.Connection) -> int:
    """As `last_moment_stored`. Raises SQLite's errors."""
    (latest,) = connection.execute("SELECT max(value) FROM monitor WHERE name LIKE 'last_%_at'").fetchone()
    return int(latest or 0)


def schema_version() -> int:
    """The version of the schema that this program writes."""
    return len(_migrations())


def connect(path: Path, query_only: bool = False) -> sqlite3.Connection:
    # A reader that found no file would leave an empty one, which counts as damaged.
    connection = _open(path, "rw" if query_only else "rwc")
    try:
        connection.row_factory = sqlite3.Row
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA synchronous = FULL")
        # For macOS, where a sync alone leaves data in the drive's own memory; elsewhere it changes nothing.
        connection.execute("PRAGMA fullfsync = ON")
        connection.execute(f"PRAGMA journal_size_limit = {WAL_BYTES}")
        if query_only:
            connection.execute("PRAGMA query_only = ON")
    except BaseException:
        connection.close()
        raise
    return connection


def _open(path: Path, mode: str) -> sqlite3.Connection:
    """A connection that makes no file anywhere but beside the database."""
    address = f"{path.absolute().as_uri()}?mode={mode}"
    connection = sqlite3.connect(address, uri=True, isolation_level=None, timeout=BUSY_SECONDS, check_same_thread=False)
    # Where the system's folders for temporary files are full or read-only, whatever needed one would fail: a savepoint
    # in which some 16 pages are changed does. What is kept in memory for it is at most the pages that one job changes.
    connection.execute("PRAGMA temp_store = MEMORY")
    return connection


def copy_into(source: sqlite3.Connection, path: Path, require_going: RequireGoing = always_going) -> None:
    """Copy all of a database, as of one moment, into an empty file that needs nothing beside it.

    Raises SQLite's errors, and what `require_going` raises.
    """
    with contextlib.closing(_open(path, "rw")) as copy:
        # Without a transaction over all steps, each change between two of them would have the copy begin anew.
        source.execute("BEGIN")
        source.execute("SELECT 1 FROM sqlite_schema").fetchone()
        try:
            source.backup(copy, pages=COPY_PAGES, progress=lambda *_: require_going())
        finally:
            source.execute("ROLLBACK")
        # Serving changes that again.
        copy.execute("PRAGMA journal_mode = DELETE")


def checkpoint(connection: sqlite3.Connection, seconds: float) -> bool:
    """Bring the -wal into the database file and empty it; False where somebody reads for longer than these seconds."""
    connection.execute(f"PRAGMA busy_timeout = {int(1000 * seconds)}")
    try:
        (busy, _, _) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    finally:
        connection.execute(f"PRAGMA busy_timeout = {int(1000 * BUSY_SECONDS)}")
    return not busy


def create_if_missing(path: Path) -> None:
    """Build a new database beside its place and move it there, so that an empty file always means damage."""
    # A link to nothing is there too: what it refers to may be on a disk that is not mounted now.
    if os.path.lexists(path):
        return
    wal = path.with_name(path.name + "-wal")
    if wal.exists() and wal.stat().st_size > 0:
        raise StartupError(f"{path} is missing though its -wal file is there; restore both, or move the -wal away")
    partial = path.with_name(path.name + ".new")
    partial.unlink(missing_ok=True)
    # SQLite gives the files beside it the same mode and owner.
    os.close(ownership.create_private(partial))
    with contextlib.closing(connect(partial)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        migrate(connection)
    sync_file(partial)
    replace(partial, path)
    sync_folder(path.parent)


def require_database(folder: Path) -> None:
    """Raise `StartupError` where there is no database yet, for what must not make one."""
    path = folder / FILE_NAME
    if not os.path.lexists(path):
        raise StartupError(f"there is no database at {path}")


def check(path: Path) -> None:
    """Raise `StartupError` for a file that can't be used, and leave it as it is, with the -wal beside it."""
    with start_up_errors(path):
        if path.is_symlink() and not path.exists():
            raise StartupError(f"{path} is a link to nothing; put back what it refers to, or move the link away")
        if path.stat().st_size == 0:
            raise StartupError(f"{path} is damaged (empty); restore a backup or move it away")
        with open_read_only(path) as connection:
            _check_content(connection, path)


def open_read_only(path: Path) -> contextlib.closing[sqlite3.Connection]:
    """For a file that may be damaged: any other connection would write the -wal into it when it is closed."""
    return contextlib.closing(_open(path, "ro"))


def _check_content(connection: sqlite3.Connection, path: Path) -> None:
    (application_id,) = connection.execute("PRAGMA application_id").fetchone()
    if application_id != APPLICATION_ID:
        raise StartupError(f"{path} is not a cardbeat database; move it away or choose another data folder")
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > schema_version():
        raise StartupError(f"{path} was written by a newer cardbeat (schema {version}); run that version")
    if path.stat().st_size <= QUICK_CHECK_BYTES:
        (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        if found != "ok":
            raise StartupError(f"{path} is damaged; restore a backup or move it away")


def migrate(connection: sqlite3.Connection) -> None:
    """Bring the schema up to date, each numbered file with its version in one transaction."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    # A script may have to rebuild a table; with foreign keys on, dropping the old one deletes all that refers to it.
    connection.execute("PRAGMA foreign_keys = OFF")
    with tell_if_slow("bringing the database up to date"):
        for number, script in enumerate(_migrations(), 1):
            if number > version:
                connection.executescript(f"BEGIN IMMEDIATE; {script}; PRAGMA user_version = {number}; COMMIT;")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA journal_mode = WAL")


def _migrations() -> list[str]:
    return numbered_scripts("sqlite")


@contextlib.contextmanager
def start_up_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.DatabaseError as error:
        primary = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if primary in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
            raise StartupError(f"{path} is damaged; restore a backup or move it away") from None
        raise StartupError(f"can't use {path}: {error}") from None
    except OSError as error:
        raise StartupError(f"can't use {path}: {error.strerror}") from None
