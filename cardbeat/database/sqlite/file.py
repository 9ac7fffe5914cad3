"""The SQLite file: makes it, checks it, brings its tables up to date and connects to it."""

import contextlib
import os
import sqlite3
import stat
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from cardbeat.database.schema import last_moment, missing_scripts, require_known
from cardbeat.database.sqlite.objects import require_usable
from cardbeat.errors import StartupError
from cardbeat.host import ownership
from cardbeat.host.output import tell_if_slow
from cardbeat.host.staging import staging_folder
from cardbeat.host.system import replace, sync_file, sync_folder

FILE_NAME = "cardbeat.db"
WRITER_LOCK = "writer.lock"
DELIVERY_LOCK = "delivery.lock"
LOCKS = (WRITER_LOCK, DELIVERY_LOCK)
FILES = (FILE_NAME, f"{FILE_NAME}-wal", f"{FILE_NAME}-shm", *LOCKS)
"""The files of a data folder that a server must be able to use."""
FILES_BESIDE = ("", "-wal", "-journal", "-shm")
"""What SQLite adds to a database's name: the file itself and those beside it."""
APPLICATION_ID = 0x43424541
BUSY_SECONDS = 5
"""Longest wait for another program that has the file locked, such as a backup tool."""
WAL_BYTES = 64 * 1024 * 1024
"""From this size on the writer empties the -wal, and it keeps this size, because a file that must grow makes commits
slow. A large sweep writes much less before SQLite begins again at the start of the file."""
QUICK_CHECK_BYTES = 64 * 1024 * 1024
"""A larger file is not checked whole at the start, because clients would wait. `doctor` does it."""


class Damaged(StartupError):
    """The file is no database, or only a part of one."""


def lock_path(path: Path, name: str) -> Path:
    """The path of a database's lock file: beside the file that a link refers to, so folders with such links share it.

    Raises `StartupError` for a link into a folder that is missing.
    """
    if not path.is_symlink():
        return path.with_name(name)
    place = Path(os.path.realpath(path))
    if not place.parent.is_dir():
        raise StartupError(f"{path} is a link to nothing; put back what it refers to, or move the link away")
    # Other databases may be in the same folder.
    return place.with_name(name if place.name == FILE_NAME else f"{place.name}.{name}")


@contextlib.contextmanager
def looking(path: Path) -> Iterator[sqlite3.Connection]:
    """A read-only connection to a database that can be served. Raises `StartupError` for any other."""
    check(path)
    with start_up_errors(path), open_read_only(path) as connection:
        yield connection


def last_moment_stored(folder: Path) -> int:
    """As `schema.last_moment`, of a data folder; 0 without a database. Raises `StartupError`."""
    path = folder / FILE_NAME
    if not os.path.exists(path):
        return 0
    with start_up_errors(path), open_read_only(path) as connection:
        return last_moment(connection)


def connect(path: Path, query_only: bool = False) -> sqlite3.Connection:
    """A connection with all settings that serving needs. Makes a missing file unless it is to be `query_only`."""
    # A reader must not leave an empty file, which counts as damaged.
    connection = open_file(path, "rw" if query_only else "rwc")
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
    """The URI by which SQLite opens a file: `ro` reads, `rw` writes too, `rwc` makes a missing one."""
    return f"{path.absolute().as_uri()}?mode={mode}"


def open_file(path: Path, mode: str) -> sqlite3.Connection:
    """A connection that makes no files but those beside the database. The mode is that of `address_of`."""
    connection = sqlite3.connect(
        address_of(path, mode), uri=True, isolation_level=None, timeout=BUSY_SECONDS, check_same_thread=False
    )
    # Else a savepoint that changes more than about 16 pages needs a temporary file, and fails if the folder for these
    # is full or read-only. In memory it takes at most the pages that one write changes.
    connection.execute("PRAGMA temp_store = MEMORY")
    return connection


def empty_wal(connection: sqlite3.Connection, seconds: float, mode: str = "TRUNCATE") -> bool:
    """Bring the -wal into the file and empty it, or begin it again (`RESTART`); False if others read for so long."""
    connection.execute(f"PRAGMA busy_timeout = {int(1000 * seconds)}")
    try:
        return not connection.execute(f"PRAGMA wal_checkpoint({mode})").fetchone()[0]
    finally:
        connection.execute(f"PRAGMA busy_timeout = {int(1000 * BUSY_SECONDS)}")


def create_if_missing(path: Path) -> None:
    """Make a new database beside its place and move it there, so that an empty file always means damage."""
    # A link counts even if its file is missing: that may be on a disk that is not mounted now.
    if os.path.lexists(path):
        return
    wal = path.with_name(path.name + "-wal")
    if wal.exists() and wal.stat().st_size > 0:
        raise StartupError(f"{path} is missing though its -wal file is there; restore both, or move the -wal away")
    with staging_folder(path.parent) as beside:
        copy = beside / "copy"
        # SQLite gives the files beside it the same mode and owner.
        os.close(ownership.create_private(copy, path.parent))
        with contextlib.closing(connect(copy)) as connection:
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            # Not with a -wal: if a failing disk keeps what it holds out of the file, the close does not tell.
            run_scripts(connection)
        sync_file(copy)
        replace(copy, path)
    sync_folder(path.parent)


def require_database(folder: Path) -> None:
    """Raise `StartupError` if there is no database yet."""
    path = folder / FILE_NAME
    if not os.path.lexists(path):
        with contextlib.suppress(OSError):  # of a working folder that was removed
            path = path.absolute()
        advice = "name the server's data folder with --data, or start the server first, which makes it"
        raise StartupError(f"there is no database at {path}; {advice}")


def check(path: Path, *, may_be_foreign: bool = False) -> None:
    """Raise `StartupError` for a file that can't be used, `Damaged` if that is why. Leaves it and its -wal unchanged.

    With `may_be_foreign`, another program may have made the file, or another version.
    """
    with start_up_errors(path):
        require_files(path)
        try:
            _check_content(path, may_be_foreign)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_READONLY_ROLLBACK:
                raise
            # A process was killed in a write before it could turn on the -wal. To read undoes that write.
            with contextlib.closing(open_file(path, "rw")) as connection:
                connection.execute("SELECT 1 FROM sqlite_schema").fetchone()
            _check_content(path, may_be_foreign)


def require_files(path: Path) -> None:
    """Raise `StartupError` or `OSError` unless there is a file, not empty, and no pipe or folder is beside it.

    SQLite would wait for ever for what comes through a pipe.
    """
    if path.is_symlink() and not path.exists():
        raise StartupError(f"{path} is a link to nothing; put back what it refers to, or move the link away")
    require_regular(path)
    if path.stat().st_size == 0:
        raise Damaged(f"{path} is damaged (empty); restore a backup or move it away")


def require_regular(path: Path) -> None:
    """Raise `StartupError` for a pipe or a folder in the place of a database or of a file beside it."""
    for name in (f"{path}{end}" for end in FILES_BESIDE):
        if (found := ownership.status_of(Path(name))) and not stat.S_ISREG(found.st_mode):
            raise StartupError(f"{name} is not a regular file; move it away")


def open_read_only(path: Path) -> contextlib.closing[sqlite3.Connection]:
    """A read-only connection to a file that may be damaged. Closing one that can write would copy the -wal into it.

    Raises as `require_files`.
    """
    require_files(path)
    return contextlib.closing(open_file(path, "ro"))


def require_ours(connection: sqlite3.Connection, path: Path) -> None:
    """Raise `StartupError` for a file of another program, or of a version that can't be used."""
    (application_id,) = connection.execute("PRAGMA application_id").fetchone()
    if application_id != APPLICATION_ID:
        raise StartupError(f"{path} is not a cardbeat database; move it away or choose another data folder")
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    require_known("sqlite", version, str(path))


def _check_content(path: Path, may_be_foreign: bool) -> None:
    with open_read_only(path) as connection:
        if not may_be_foreign:
            require_ours(connection, path)
            require_usable(connection, path)
        if path.stat().st_size <= QUICK_CHECK_BYTES:
            (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
            if found != "ok":
                raise Damaged(f"{path} is damaged; restore a backup or move it away")


def is_behind(connection: sqlite3.Connection) -> bool:
    """Whether the tables are those of an older version."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return bool(missing_scripts("sqlite", version))


def migrate(connection: sqlite3.Connection) -> None:
    """Bring the tables of a database in its place up to date."""
    # First, because a kill in a script would else leave a -journal, and then no read-only connection can open the file.
    connection.execute("PRAGMA journal_mode = WAL")
    run_scripts(connection)


def run_scripts(connection: sqlite3.Connection) -> None:
    """Make the tables or bring them up to date, with one transaction for each script."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    # A script may replace a table. With foreign keys on, to drop the old one would delete all rows that refer to it.
    connection.execute("PRAGMA foreign_keys = OFF")
    with tell_if_slow("bringing the database up to date"):
        for number, script in missing_scripts("sqlite", version):
            connection.executescript(f"BEGIN IMMEDIATE; {script}; PRAGMA user_version = {number}; COMMIT;")
    connection.execute("PRAGMA foreign_keys = ON")


@contextlib.contextmanager
def start_up_errors(path: Path) -> Iterator[None]:
    """Raise SQLite's and the system's errors as `StartupError`. `path` names the file in the sentence."""
    try:
        yield
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        primary = getattr(error, "sqlite_errorcode", 0) & 0xFF
        # SQLite names what is wrong in the schema, and the name may be no text.
        if isinstance(error, UnicodeDecodeError) or primary in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
            raise Damaged(f"{path} is damaged; restore a backup or move it away") from None
        # SQLite calls it a "disk I/O error".
        is_full = getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_IOERR_SHMSIZE
        raise StartupError(f"can't use {path}: {'the disk is full' if is_full else error}") from None
    except OSError as error:
        raise StartupError(f"can't use {path}: {error.strerror}") from None
