"""Copies the rows of a file into a new file of the newest schema.

This is how a database is brought up to date and how a backup is restored. Nothing that is in the
file runs: its schema must be ours before a row is read, and no page of it is copied.
"""

import contextlib
import os
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from cardbeat.database.schema import TABLES, WHOLE, script
from cardbeat.database.sqlite.file import (
    address_of,
    differences,
    make_one_file,
    make_tables,
    open_file,
    open_read_only,
    require_file,
    require_ours,
    start_up_errors,
    version_of,
)
from cardbeat.errors import StartupError
from cardbeat.files import read_text
from cardbeat.host.output import printable, tell_if_slow
from cardbeat.host.ownership import create_private
from cardbeat.host.staging import staging_folder
from cardbeat.host.stopping import RequireGoing, always_going
from cardbeat.host.system import replace, sync_file, sync_folder

SECONDS, BYTES_A_SECOND = 300, 500_000
"""A copy may take these seconds, and one more for each so many bytes: 20 times the usual time."""
STEPS_BETWEEN_LOOKS: Final = 100_000
"""Steps of SQLite's virtual machine, about 1 ms, between two looks at the clock."""
CACHE_KIB: Final = 64 * 1024


def copy_rows(source: Path, target: Path, require_going: RequireGoing = always_going) -> None:
    """Make a file of the newest schema with all rows of `source`, as of one moment.

    `source` may have any version from `OLDEST` on, and its schema must be ours. `target` is in a
    staging folder; it is private, and root gives it to the owner of the folder around that. Raises
    `StartupError`, also when it takes too long, and what `require_going` raises.
    """
    with start_up_errors(source):
        with open_read_only(source) as connection:
            version = version_of(connection)
        if version < WHOLE - 1:
            source = _brought_to_9(source, target.with_name("old"), version, require_going)
        os.close(create_private(target, target.parent.parent))
        with (
            contextlib.closing(open_file(target, "rw")) as copy,
            limited(copy, source, require_going),
        ):
            _fill(copy, source, version)
    sync_file(target)


def bring_up_to_date(path: Path) -> None:
    """Replace a database of an older version by a new file with its rows.

    A kill at any point leaves one of both, whole. Call with the lock by which others write.
    """
    make_one_file(path)
    try:
        with (
            tell_if_slow("bringing the database up to date"),
            staging_folder(path.parent) as beside,
        ):
            copy = beside / "copy"
            copy_rows(path, copy)
            replace(copy, path)
        sync_folder(path.parent)
    except OSError as error:
        raise StartupError(f"can't write in {path.parent}: {error.strerror}") from None


def require_sound(
    source: Path,
    require_going: RequireGoing = always_going,
    mode: str = "ro",
    seconds: float = SECONDS,
) -> None:
    """Raise `StartupError` unless a file's schema is ours and it passes SQLite's full check.

    The mode is that of `address_of`. SQLite checks what the tables themselves ask for, such as a
    CHECK, only in a file that it may write.
    """
    with start_up_errors(source), contextlib.ExitStack() as opened:
        require_file(source)
        connection = opened.enter_context(contextlib.closing(open_file(source, mode)))
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA cell_size_check = ON")
        require_ours(connection, source)
        if found := differences(connection):
            raise StartupError(f"{source} has {found}")
        with limited(connection, source, require_going, seconds):
            connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
            for (problem,) in connection.execute("PRAGMA integrity_check(1)"):
                if problem != "ok":
                    raise StartupError(f"{source} is damaged ({printable(problem)})")
            for (table,) in connection.execute('SELECT "table" FROM pragma_foreign_key_check'):
                raise StartupError(f"{source} has a row of {table} that refers to no row")


def why_refused(
    source: Path, require_going: RequireGoing = always_going, mode: str = "ro"
) -> list[str]:
    """Why `restore` would refuse a file; empty if it would not. Raises as `require_going`."""
    try:
        require_sound(source, require_going, mode)
    except StartupError as error:
        require_going()
        return [str(error).partition("; ")[0]]
    return []


@contextlib.contextmanager
def nothing_restored() -> Iterator[None]:
    """Raise what is wrong with a file as `StartupError` that says what came of it."""
    try:
        yield
    except StartupError as error:
        raise StartupError(f"{str(error).partition('; ')[0]}; nothing was restored") from None


def _brought_to_9(source: Path, old: Path, version: int, require_going: RequireGoing) -> Path:
    """A copy of a file of version 7 or 8 that has version 9."""
    with (
        contextlib.closing(open_file(old, "rwc")) as copy,
        open_read_only(source) as connection,
        limited(copy, source, require_going),
    ):
        connection.backup(copy)
        _be_quick(copy)
        for number in range(version + 1, WHOLE):
            copy.executescript(f"BEGIN; {script('sqlite', number)}; COMMIT")
    return old


def _fill(copy: sqlite3.Connection, source: Path, version: int) -> None:
    _be_quick(copy)
    make_tables(copy)
    copy.create_function("host_of", 1, _host_of, deterministic=True)
    copy.execute("PRAGMA foreign_keys = ON")
    copy.execute("ATTACH ? AS old", (address_of(source, "ro"),))
    # From the first read on, the transaction sees the file as of one moment.
    copy.execute("BEGIN")
    if version < WHOLE:
        for statement in read_text("database/sqlite/from_9.sql").split(";"):
            copy.execute(statement)
    else:
        for table in TABLES:
            old = _columns(copy, f"old.table_info({table})")
            both = [name for name in _columns(copy, f"main.table_info({table})") if name in old]
            names = ", ".join(both)
            copy.execute(f"INSERT INTO {table} ({names}) SELECT {names} FROM old.{table}")
    # The numbers of rows that were deleted are not given again.
    copy.execute("DELETE FROM sqlite_sequence")
    copy.execute("INSERT INTO sqlite_sequence SELECT * FROM old.sqlite_sequence")
    copy.execute("COMMIT")
    copy.execute("DETACH old")


def _columns(copy: sqlite3.Connection, info: str) -> list[str]:
    """The names of a table's columns, without those that are computed from others."""
    return [row[1] for row in copy.execute(f"PRAGMA {info}")]


def _be_quick(connection: sqlite3.Connection) -> None:
    """The file is thrown away if anything fails, and synced at the end."""
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
    connection.execute("PRAGMA journal_mode = MEMORY")
    connection.execute("PRAGMA synchronous = OFF")


def _host_of(url: str | None) -> str | None:
    try:
        return urlsplit(url).hostname if url else None
    except ValueError:
        return None


@contextlib.contextmanager
def limited(
    connection: sqlite3.Connection,
    source: Path,
    require_going: RequireGoing,
    seconds: float = SECONDS,
) -> Iterator[None]:
    """End a statement when `require_going` raises, with that error, or when it takes too long."""
    seconds += source.stat().st_size / BYTES_A_SECOND
    end = time.monotonic() + seconds

    def look() -> None:
        require_going()
        if time.monotonic() >= end:
            raise StartupError(f"{source} could not be read within {seconds:.0f} s")

    look()
    # If the handler raises, the statement ends with SQLite's own error.
    connection.set_progress_handler(look, STEPS_BETWEEN_LOOKS)
    try:
        yield
    except sqlite3.OperationalError:
        look()
        raise
    finally:
        connection.set_progress_handler(None, 0)
