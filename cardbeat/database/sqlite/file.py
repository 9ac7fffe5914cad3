"""The SQLite file: makes it, checks it, locks it and connects to it."""

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from cardbeat.database.schema import (
    OLDEST,
    VERSION,
    WHOLE,
    last_moment,
    require_known,
    script,
)
from cardbeat.errors import StartupError
from cardbeat.host.ownership import create_private
from cardbeat.host.system import LOCK_FLAGS, try_lock

FILE_NAME = "cardbeat.db"
SERVER_LOCK = "delivery.lock"
"""A server holds it as long as it runs, as those of earlier versions do."""
WRITER_LOCK = "writer.lock"
"""Held during each write, also by commands that write while a server runs."""
FILES = (
    FILE_NAME,
    f"{FILE_NAME}-wal",
    f"{FILE_NAME}-shm",
    WRITER_LOCK,
    SERVER_LOCK,
)
"""The files of a data folder that a server must be able to use."""
APPLICATION_ID = 0x43424541
BUSY_SECONDS = 5
"""Longest wait for another program that has the file locked, such as a backup tool."""
WAL_BYTES = 64 * 1024 * 1024
"""From this size on the writer empties the -wal. It keeps this size: to grow makes commits slow."""
QUICK_CHECK_BYTES = 64 * 1024 * 1024
"""A larger file is not checked whole at the start: clients would wait. `doctor` does it."""


class Damaged(StartupError):
    """The file is no database, only a part of one, or not as we make it."""

    def __init__(self, path: Path, found: str = "is damaged") -> None:
        super().__init__(
            f"{path} {found}; restore a backup, or do as docs/backup.md says"
        )


def connect(path: Path, mode: str = "rw") -> sqlite3.Connection:
    """A connection to a file. `ro` reads, `rw` writes too, `rwc` makes the file if it is missing.

    Nothing runs that a file brings, and it makes no files but those beside the database.
    """
    connection = sqlite3.connect(
        address_of(path, mode),
        uri=True,
        isolation_level=None,
        timeout=BUSY_SECONDS,
        check_same_thread=False,
    )
    connection.row_factory = sqlite3.Row
    # Else one text with a byte that a disk has changed ends the sweep of all checks.
    connection.text_factory = partial(
        str, encoding="utf-8", errors="replace"
    )
    try:
        connection.executescript(
            # Else a savepoint that changes more than about 16 pages needs a temporary file, and
            # fails if the folder for these is full or read-only.
            "PRAGMA temp_store = MEMORY;"
            " PRAGMA trusted_schema = OFF; PRAGMA foreign_keys = ON; PRAGMA synchronous = FULL;"
            # Only macOS has it: there a plain sync leaves data in the memory of the drive.
            f" PRAGMA fullfsync = ON; PRAGMA journal_size_limit = {WAL_BYTES}"
        )
    except BaseException:
        connection.close()
        raise
    return connection


def address_of(path: Path, mode: str) -> str:
    """The URI by which SQLite opens a file."""
    return f"{path.absolute().as_uri()}?mode={mode}"


@contextlib.contextmanager
def opened(path: Path, mode: str = "ro") -> Iterator[sqlite3.Connection]:
    """A connection to a file that may be damaged, in a mode of `connect`. Raises `StartupError`.

    Closing one that can write copies the -wal into the file.
    """
    with start_up_errors(path):
        # Raises a better error than SQLite if there is none.
        path.stat()
        if not path.is_file():
            raise StartupError(
                f"{path} is not a regular file; move it away"
            )
        # A process was killed before it could turn on the -wal: to read undoes its write.
        if os.path.exists(f"{path}-journal"):
            mode = "rw"
        with contextlib.closing(connect(path, mode)) as connection:
            yield connection


def served_version(path: Path) -> int:
    """The version of a database that can be served. Raises `StartupError` for any other."""
    require_no_link(path)
    with opened(path) as connection:
        require_version(connection, path)
        if path.stat().st_size <= QUICK_CHECK_BYTES:
            (found,) = connection.execute(
                "PRAGMA quick_check(1)"
            ).fetchone()
            if found != "ok":
                raise Damaged(path)
        return version_of(connection)


def last_moment_stored(folder: Path) -> int:
    """As `schema.last_moment`, of a data folder; 0 without a database. Raises `StartupError`."""
    path = folder / FILE_NAME
    if not os.path.exists(path):
        return 0
    with opened(path) as connection:
        return last_moment(connection)


def make_one_file(path: Path) -> None:
    """Copy the -wal into a database that is in its place, so that one file is left.

    Raises `StartupError` if another program has it open.
    """
    require_no_link(path)
    with opened(path, "rw") as connection:
        connection.execute("PRAGMA journal_mode = DELETE")


def require_database(folder: Path) -> None:
    """Raise `StartupError` if there is no database yet, or if this user can't see whether."""
    path = folder / FILE_NAME
    with start_up_errors(path):
        if not path.exists():
            raise StartupError(
                f"there is no database at {path.absolute()}; name the server's data folder with"
                " --data, or start the server first, which makes it"
            )


def require_no_link(path: Path) -> None:
    """Raise `StartupError` where a link is in the place of a database: its -wal is elsewhere."""
    if path.is_symlink():
        raise StartupError(
            f"{path} is a link, so move the file here or link the data folder instead"
        )


def require_version(connection: sqlite3.Connection, path: Path) -> None:
    """Raise `StartupError` unless a file is ours, and of a version that can be used."""
    (application_id,) = connection.execute(
        "PRAGMA application_id"
    ).fetchone()
    if application_id != APPLICATION_ID:
        raise StartupError(
            f"{path} is not a cardbeat database; move it away or choose another data folder"
        )
    require_known(version_of(connection), str(path))


def version_of(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def make_tables(
    connection: sqlite3.Connection, version: int = VERSION
) -> None:
    """Make all tables of a version in an empty file."""
    first = version if version >= WHOLE else OLDEST
    for number in range(first, version + 1):
        connection.executescript(script("sqlite", number))
    connection.execute(f"PRAGMA user_version = {version}")
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")


@contextlib.contextmanager
def start_up_errors(path: Path) -> Iterator[None]:
    """Raise SQLite's and the system's errors as `StartupError`, which names the file."""
    try:
        yield
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)
        # SQLite names what is wrong in the schema, and the name may be no text.
        if code & 0xFF in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
            raise Damaged(path) from None
        raise StartupError(f"can't use {path}: {error}") from None
    except OSError as error:
        raise StartupError(
            f"can't use {path}: {error.strerror}"
        ) from None


def open_lock_file(path: Path) -> int:
    """A descriptor of a lock file, which is made if it is missing.

    Raises `StartupError`, also for a link: it could lead to any other file.
    """
    with start_up_errors(path):
        try:
            return create_private(path)
        except FileExistsError:
            return os.open(path, LOCK_FLAGS)


def lock_server(folder: Path) -> int:
    """Take the lock of the only server of a folder, until this descriptor is closed.

    Raises `StartupError` if another server holds it.
    """
    descriptor = open_lock_file(folder / SERVER_LOCK)
    if not try_lock(descriptor):
        os.close(descriptor)
        raise StartupError(
            f"another server uses the data folder {folder}; stop it first"
        )
    return descriptor


@contextlib.contextmanager
def server_locked(folder: Path) -> Iterator[None]:
    """Keep servers from a folder. Raises `StartupError` if one uses it."""
    descriptor = lock_server(folder)
    try:
        yield
    finally:
        os.close(descriptor)
