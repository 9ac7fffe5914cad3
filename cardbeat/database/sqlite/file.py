"""The SQLite file: makes it, checks it, locks it and connects to it."""

import contextlib
import os
import re
import sqlite3
import stat
import time
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Final

from cardbeat.database.schema import OLDEST, VERSION, WHOLE, last_moment, require_known, script
from cardbeat.errors import StartupError
from cardbeat.host import ownership
from cardbeat.host.output import printable
from cardbeat.host.staging import staging_folder
from cardbeat.host.system import LOCK_FLAGS, replace, sync_file, sync_folder, try_lock

FILE_NAME: Final = "cardbeat.db"
SERVER_LOCK: Final = "delivery.lock"
"""A server holds it as long as it runs, as those of earlier versions do."""
WRITER_LOCK: Final = "writer.lock"
"""Held during each write, also by commands that write while a server runs."""
LOCKS: Final = (WRITER_LOCK, SERVER_LOCK)
FILES: Final = (FILE_NAME, f"{FILE_NAME}-wal", f"{FILE_NAME}-shm", *LOCKS)
"""The files of a data folder that a server must be able to use."""
FILES_BESIDE: Final = ("", "-wal", "-journal", "-shm")
"""What SQLite adds to a database's name: the file itself and those beside it."""
APPLICATION_ID: Final = 0x43424541
BUSY_SECONDS: Final = 5
"""Longest wait for another program that has the file locked, such as a backup tool."""
LOCK_POLL_SECONDS: Final = 0.0005
"""From one attempt to the next: finds the lock free between two commits of another process."""
WAL_BYTES: Final = 64 * 1024 * 1024
"""From this size on the writer empties the -wal. It keeps this size: to grow makes commits slow."""
QUICK_CHECK_BYTES: Final = 64 * 1024 * 1024
"""A larger file is not checked whole at the start: clients would wait. `doctor` does it."""

_WORD: Final = re.compile(rb"'[^']*'|\w+|\S")
_SHOWN_CHARACTERS: Final = 60

Found = tuple[bytes, bytes, tuple[bytes, ...]]
"""The kind and the name of a table, index, trigger or view, and the words of its statement.

The spaces between them differ where a column was added later.
"""


class Damaged(StartupError):
    """The file is no database, or only a part of one."""


def connect(path: Path, *, query_only: bool = False) -> sqlite3.Connection:
    """A connection with the settings of serving. The file must exist."""
    connection = open_file(path, "rw")
    try:
        connection.row_factory = sqlite3.Row
        # Else one text with a byte that a disk has changed ends the sweep of all checks.
        connection.text_factory = partial(str, encoding="utf-8", errors="replace")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA synchronous = FULL")
        # Only macOS has it: there a plain sync leaves data in the memory of the drive.
        connection.execute("PRAGMA fullfsync = ON")
        connection.execute(f"PRAGMA journal_size_limit = {WAL_BYTES}")
        if query_only:
            connection.execute("PRAGMA query_only = ON")
    except BaseException:
        connection.close()
        raise
    return connection


def address_of(path: Path, mode: str) -> str:
    """The URI by which SQLite opens a file: `ro` reads, `rw` writes too, `rwc` makes a new one."""
    return f"{path.absolute().as_uri()}?mode={mode}"


def open_file(path: Path, mode: str) -> sqlite3.Connection:
    """A connection that makes no files but those beside the database."""
    connection = sqlite3.connect(
        address_of(path, mode),
        uri=True,
        isolation_level=None,
        timeout=BUSY_SECONDS,
        check_same_thread=False,
    )
    # Else a savepoint that changes more than about 16 pages needs a temporary file, and fails if
    # the folder for these is full or read-only.
    connection.execute("PRAGMA temp_store = MEMORY")
    return connection


@contextlib.contextmanager
def open_read_only(path: Path) -> Iterator[sqlite3.Connection]:
    """A read-only connection to a file that may be damaged. Raises as `require_file`.

    Closing one that can write would copy the -wal into it.
    """
    require_file(path)
    # A process was killed before it could turn on the -wal: to read undoes its write.
    mode = "rw" if os.path.exists(f"{path}-journal") else "ro"
    with contextlib.closing(open_file(path, mode)) as connection:
        yield connection


@contextlib.contextmanager
def looking(path: Path) -> Iterator[sqlite3.Connection]:
    """A read-only connection to a database that can be served. `StartupError` for any other.

    Further indexes do no harm.
    """
    require_no_link(path)
    with start_up_errors(path), open_read_only(path) as connection:
        require_ours(connection, path)
        if lacking := differences(connection, only_lacking=True):
            raise damaged(path, f"has {lacking}")
        if path.stat().st_size <= QUICK_CHECK_BYTES:
            (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
            if found != "ok":
                raise damaged(path)
        yield connection


def last_moment_stored(folder: Path) -> int:
    """As `schema.last_moment`, of a data folder; 0 without a database. Raises `StartupError`."""
    path = folder / FILE_NAME
    if not os.path.exists(path):
        return 0
    with start_up_errors(path), open_read_only(path) as connection:
        return last_moment(connection)


def create_if_missing(path: Path) -> None:
    """Make a new database beside its place and move it there: an empty file means damage."""
    require_no_link(path)
    if os.path.lexists(path):
        return
    wal = path.with_name(f"{path.name}-wal")
    if wal.exists() and wal.stat().st_size > 0:
        raise StartupError(
            f"{path} is missing though its -wal file is there; restore both, or move the -wal away"
        )
    with staging_folder(path.parent) as beside:
        copy = beside / "copy"
        # SQLite gives the files beside it the same mode and owner.
        os.close(ownership.create_private(copy, path.parent))
        with contextlib.closing(open_file(copy, "rw")) as connection:
            make_tables(connection)
        sync_file(copy)
        replace(copy, path)
    sync_folder(path.parent)


def empty_wal(connection: sqlite3.Connection, seconds: float) -> bool:
    """Bring the -wal into the file and empty it; False if others read for so long."""
    connection.execute(f"PRAGMA busy_timeout = {int(1000 * seconds)}")
    try:
        return not connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    finally:
        connection.execute(f"PRAGMA busy_timeout = {1000 * BUSY_SECONDS}")


def make_one_file(path: Path) -> None:
    """Copy the -wal into a database that is in its place, so that one file is left.

    Raises `StartupError` if another program has it open.
    """
    with start_up_errors(path), contextlib.closing(connect(path)) as connection:
        if not empty_wal(connection, BUSY_SECONDS):
            raise StartupError(f"another program reads {path}; end it first")
        connection.execute("PRAGMA journal_mode = DELETE")


def require_database(folder: Path) -> None:
    """Raise `StartupError` if there is no database yet, or if this user can't see whether."""
    path = folder / FILE_NAME
    try:
        path.lstat()
    except PermissionError as error:
        raise StartupError(
            f"can't use {path}: {error.strerror}; run this as the server's user or as root"
        ) from None
    except OSError:
        with contextlib.suppress(OSError):  # of a working folder that was removed
            path = path.absolute()
        raise StartupError(
            f"there is no database at {path}; name the server's data folder with --data, or start"
            " the server first, which makes it"
        ) from None


def require_no_link(path: Path) -> None:
    """Raise `StartupError` where a link is in the place of a database: its -wal is elsewhere."""
    if path.is_symlink():
        raise StartupError(f"{path} is a link; move the file here, or link the data folder instead")


def require_file(path: Path) -> None:
    """Raise `StartupError` or `OSError` for a pipe, a folder or an empty file."""
    for end in FILES_BESIDE:
        found = ownership.status_of(Path(f"{path}{end}"))
        if found and not stat.S_ISREG(found.st_mode):
            raise StartupError(f"{path}{end} is not a regular file; move it away")
    if not path.stat().st_size:
        raise damaged(path, "is damaged (empty)")


def require_ours(connection: sqlite3.Connection, path: Path) -> None:
    """Raise `StartupError` for a file of another program, or of a version that can't be used."""
    (application_id,) = connection.execute("PRAGMA application_id").fetchone()
    if application_id != APPLICATION_ID:
        raise StartupError(
            f"{path} is not a cardbeat database; move it away or choose another data folder"
        )
    require_known(version_of(connection), str(path))


def version_of(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def make_tables(connection: sqlite3.Connection, version: int = VERSION) -> None:
    """Make all tables of a version in an empty file."""
    first = version if version >= WHOLE else OLDEST
    for number in range(first, version + 1):
        connection.executescript(script("sqlite", number))
    connection.execute(f"PRAGMA user_version = {version}")
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")


def differences(connection: sqlite3.Connection, *, only_lacking: bool = False) -> str:
    """How the schema differs from what our scripts make for its version; empty if it does not.

    At most three differences, tables first. `only_lacking` leaves out what a file has beside.
    """
    ours = _ours(version_of(connection))
    found = _schema(connection)
    lacking = sorted(ours - found, reverse=True)
    told = [f"no {_named(one)} as cardbeat makes it" for one in lacking]
    if not only_lacking:
        changed = [one[:2] for one in lacking]
        foreign = sorted(found - ours, reverse=True)
        names = [_named(one) for one in foreign if one[:2] not in changed]
        told += [f"the {name}, which cardbeat did not make" for name in names]
    return ", ".join(told[:3])


@cache
def _ours(version: int) -> frozenset[Found]:
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as made:
        make_tables(made, version)
        return _schema(made)


def _schema(connection: sqlite3.Connection) -> frozenset[Found]:
    # As bytes, because a text need not be UTF-8. What SQLite makes for a UNIQUE has no statement,
    # and what ANALYZE makes is no part of the schema.
    rows = connection.execute(
        "SELECT CAST(type AS BLOB), CAST(name AS BLOB), CAST(sql AS BLOB) FROM sqlite_schema"
        " WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_stat%'"
    )
    return frozenset((kind, name, tuple(_WORD.findall(sql))) for kind, name, sql in rows)


def _named(found: Found) -> str:
    kind, name = (part.decode(errors="backslashreplace") for part in found[:2])
    return f"{kind} {printable(name)[:_SHOWN_CHARACTERS]}"


def damaged(path: Path, found: str = "is damaged") -> Damaged:
    return Damaged(f"{path} {found}; restore a backup or move it away")


@contextlib.contextmanager
def start_up_errors(path: Path) -> Iterator[None]:
    """Raise SQLite's and the system's errors as `StartupError`, which names the file."""
    try:
        yield
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)
        # SQLite names what is wrong in the schema, and the name may be no text.
        if code & 0xFF in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
            raise damaged(path) from None
        # SQLite calls it a "disk I/O error".
        told = "the disk is full" if code == sqlite3.SQLITE_IOERR_SHMSIZE else error
        raise StartupError(f"can't use {path}: {told}") from None
    except OSError as error:
        raise StartupError(f"can't use {path}: {error.strerror}") from None


def open_lock_file(path: Path) -> int:
    """A descriptor of a lock file, which is made if it is missing, as is its folder.

    Raises `StartupError`, also for a link: it could lead to any other file.
    """
    with start_up_errors(path):
        ownership.make_folder(path.parent)
        try:
            return ownership.create_private(path)
        except FileExistsError:
            return os.open(path, LOCK_FLAGS)


def take_lock(descriptor: int, seconds: float) -> bool:
    """Whether the lock was taken within these seconds; tries at least once.

    Raises `OSError` where files have no locks.
    """
    end = time.monotonic() + seconds
    while not try_lock(descriptor):
        if time.monotonic() >= end:
            return False
        time.sleep(LOCK_POLL_SECONDS)
    return True


def locked(path: Path, seconds: float, refusal: str) -> int:
    """A descriptor that holds the lock file until it is closed, also by the end of the process.

    Raises `StartupError(refusal)` if another process holds it for these seconds.
    """
    descriptor = open_lock_file(path)
    try:
        if take_lock(descriptor, seconds):
            return descriptor
        raise StartupError(refusal)
    except BaseException:
        os.close(descriptor)
        raise


class FileLease:
    """The `Lease` of a data folder: the server's lock, held until the process ends."""

    def __init__(self, folder: Path) -> None:
        """Raises `StartupError` if another server uses the folder."""
        refusal = f"another server uses the data folder {folder}; stop it first"
        self._descriptor = locked(folder / SERVER_LOCK, 0, refusal)
        self._is_held = True

    def take(self) -> bool:
        return self._is_held

    held = take

    def confirm(self, transaction: object) -> None:
        """Do nothing: no other process can take it."""

    def release(self) -> None:
        if self._is_held:
            self._is_held = False
            os.close(self._descriptor)
