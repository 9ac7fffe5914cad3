"""New files of the newest schema, with the rows of others: upgrade, backup and restore.

Nothing that is in a backup runs: its schema must be ours before a row is read, and no page of it
gets into the database. Each file is made beside its place and moved there in one step, so a kill at
any point leaves the file that was there or the new one, whole.
"""

import contextlib
import os
import shutil
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from cardbeat.clock import time_or_none
from cardbeat.database.database import Transaction
from cardbeat.database.schema import TABLES, WHOLE, last_moment, script
from cardbeat.database.sqlite.file import (
    FILE_NAME,
    FILES,
    Damaged,
    address_of,
    connect,
    make_one_file,
    make_tables,
    opened,
    require_database,
    require_version,
    server_locked,
    start_up_errors,
    version_of,
)
from cardbeat.errors import StartupError
from cardbeat.files import read_text
from cardbeat.host.ownership import create_private, prepare_folder
from cardbeat.host.staging import staging_folder
from cardbeat.host.system import replace, sync

SECONDS = 300
BYTES_A_SECOND = 500_000
"""A copy may take these seconds, and one more for each so many bytes: 20 times the usual time."""
STEPS_BETWEEN_LOOKS = 100_000
"""Steps of SQLite's virtual machine, about 1 ms, between two looks at the clock."""


def make_database(path: Path, source: Path | None = None) -> None:
    """Put a new database in its place, with the rows of `source`, which may be the one there."""
    with start_up_errors(path.parent), _in_place(path) as copy:
        copy_rows(source, copy)


@contextlib.contextmanager
def _in_place(place: Path) -> Iterator[Path]:
    """Where to make a file in the block; when that ends without an error, it gets its place."""
    with staging_folder(place.parent) as beside:
        yield beside / "copy"
        replace(beside / "copy", place)
    sync(place.parent)


def back_up(folder: Path, target: Path) -> None:
    """Copy the database of a data folder, in use or not, as of one moment, to a private file.

    Raises `StartupError` if `restore` would refuse the copy, if it can't be made, and for a target
    that belongs to the database or is no regular file. Then, and after a `KeyboardInterrupt`, the
    target stays as it was, and nothing is left beside it.
    """
    require_database(folder)
    source = folder / FILE_NAME
    with start_up_errors(target):
        place = Path(os.path.realpath(target))
        home = Path(os.path.realpath(folder))
        is_own = place.parent == home and place.name in FILES
        if is_own or (place.exists() and not place.is_file()):
            raise StartupError(
                f"no backup replaces {target}; choose another file"
            )
        with _in_place(place) as copy:
            copy.touch(0o600)
            # SQLite copies tables with their rules only from a file that it may write.
            with (
                opened(source, "rw") as connection,
                limited(connection, source),
            ):
                connection.execute("VACUUM INTO ?", (str(copy),))
            sync(copy)
            require_sound(copy, mode="rw", name=source)


def restore(folder: Path, source: Path, now: float) -> dict[str, Any]:
    """Make a copy of `source` the database of a data folder, and keep the old one.

    1. Check the backup, and copy its rows into a new file.
    2. Hold the server's lock.
    3. Bring the -wal of the old database into it.
    4. Give the old database a second name, with the time `now` in it.
    5. Move the new file into its place.

    Returns what `described` does, and where the old one is `kept`. Raises `StartupError`, with
    nothing changed, for a file that is not sound or of a version that can't be used, and while a
    server or another command uses the folder. A `KeyboardInterrupt`, at any point, leaves the old
    database or the new one in the place.
    """
    place = folder / FILE_NAME
    with copy_to_restore(source, folder) as copy, server_locked(folder):
        with opened(copy) as connection:
            restored = described(str(place), connection)
        # If the old one is damaged, its -wal is kept with it.
        with contextlib.suppress(Damaged):
            if os.path.lexists(place):
                make_one_file(place)
        kept = _keep(place, now)
        if kept is not None:
            restored["kept"] = str(kept)
        replace(copy, place)
        sync(folder)
    return restored


def described(database: str, connection: Transaction) -> dict[str, Any]:
    """What the command `restore` tells of a database, by its path or URL and a connection to it."""
    counts = connection.execute(
        "SELECT (SELECT count(*) FROM keys) AS keys, (SELECT count(*) FROM checks) AS checks"
    )
    return {
        "database": database,
        "kept": None,
        **counts.fetchone(),
        "last_served_at": time_or_none(last_moment(connection) or None),
    }


@contextlib.contextmanager
def copy_to_restore(source: Path, folder: Path) -> Iterator[Path]:
    """A copy of a sound backup, of the newest schema, in a staging folder of `folder`.

    Raises `StartupError` that says that nothing was restored, also for what the block raises of
    files, SQLite and the start.
    """
    try:
        with start_up_errors(folder):
            require_sound(source)
            prepare_folder(folder)
            with staging_folder(folder) as beside:
                copy_rows(source, beside / "copy")
                yield beside / "copy"
    except StartupError as error:
        raise StartupError(
            f"{str(error).partition('; ')[0]}; nothing was restored"
        ) from None


def _keep(place: Path, now: float) -> Path | None:
    """Give the old database a second name; None without one.

    What is left beside it gets such a name too: SQLite would write it into the new database.
    """
    moment = time.strftime("%Y%m%d-%H%M%S", time.gmtime(now))
    kept = place.with_name(f"{place.name}.before-restore-{moment}")
    if os.path.lexists(kept):
        return _keep(place, now + 1)
    for end in ("-wal", "-journal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            replace(f"{place}{end}", f"{kept}{end}")
    if not place.exists():
        return None
    try:
        os.link(place, kept)
    except OSError:
        # The file system has no hard links.
        os.close(create_private(kept))
        shutil.copyfile(place, kept)
        sync(kept)
    sync(place.parent)
    return kept


def require_sound(
    source: Path,
    seconds: float = SECONDS,
    mode: str = "ro",
    *,
    name: Path | None = None,
) -> None:
    """Raise `StartupError` unless a file's schema is ours and it passes SQLite's full check.

    The mode is that of `connect`. SQLite checks what the tables themselves ask for, such as a
    CHECK, only in a file that it may write. `name` stands in errors.
    """
    name = name or source
    with (
        opened(source, mode) as connection,
        limited(connection, source, seconds),
    ):
        require_ours(connection, name)
        for (problem,) in connection.execute("PRAGMA integrity_check(1)"):
            if problem != "ok":
                raise Damaged(
                    name, f"is damaged ({' '.join(problem.split())})"
                )
        for row in connection.execute("PRAGMA foreign_key_check"):
            raise Damaged(
                name, f"has a row of {row['table']} that refers to no row"
            )


def require_ours(connection: sqlite3.Connection, path: Path) -> None:
    """Raise `StartupError` unless the schema is what our scripts make for its version.

    Also for a version that can't be used.
    """
    require_version(connection, path)
    with contextlib.closing(
        sqlite3.connect(":memory:", isolation_level=None)
    ) as made:
        make_tables(made, version_of(connection))
        wrong = _schema(made) ^ _schema(connection)
    # Tables first.
    for kind, name, _ in sorted(wrong, reverse=True):
        raise Damaged(
            path, f"has the {kind} {name[:60]} not as cardbeat makes it"
        )


def _schema(connection: sqlite3.Connection) -> set[tuple[str, str, str]]:
    """The kind, name and statement of each table, index, trigger and view, without white space.

    It differs where a column was added later. What SQLite makes for a UNIQUE has no statement, and
    what ANALYZE makes is no part of the schema.
    """
    rows = connection.execute(
        "SELECT type, name, sql FROM sqlite_schema"
        " WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_stat%'"
    )
    return {
        (kind, name, "".join(sql.split())) for kind, name, sql in rows
    }


def copy_rows(source: Path | None, target: Path) -> None:
    """Make a file of the newest schema with all rows of `source`, as of one moment.

    `source` may have any version from `OLDEST` on. `target` is in a staging folder; it is private,
    and root gives it to the owner of the folder around that. Raises `StartupError`, also when it
    takes too long.
    """
    os.close(create_private(target, target.parent.parent))
    with (
        start_up_errors(source or target),
        contextlib.closing(connect(target)) as copy,
    ):
        # The file is thrown away if anything fails, and synced at the end.
        copy.executescript(
            "PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF"
        )
        make_tables(copy)
        if source is not None:
            with limited(copy, source):
                _fill(copy, source, target.with_name("old"))
    sync(target)


def _fill(copy: sqlite3.Connection, source: Path, old: Path) -> None:
    with opened(source) as connection:
        version = version_of(connection)
        if version < WHOLE - 1:
            # A copy of it is brought to the last version before.
            with contextlib.closing(connect(old, "rwc")) as changed:
                connection.backup(changed)
                for number in range(version + 1, WHOLE):
                    changed.executescript(script("sqlite", number))
            source = old
    copy.create_function("host_of", 1, _host_of, deterministic=True)
    copy.execute("ATTACH ? AS old", (address_of(source, "ro"),))
    filling = read_text("database/sqlite/from_9.sql")
    if version >= WHOLE:
        filling = _filling(copy)
    # From the first read on, the transaction sees the file as of one moment.
    copy.executescript(f"BEGIN; {filling}; COMMIT; DETACH old")


def _filling(copy: sqlite3.Connection) -> str:
    """Statements that copy the columns that both files have."""
    filling = ""
    for table in TABLES:
        kept = columns_of(copy, table, "old")
        both = [name for name in columns_of(copy, table) if name in kept]
        names = ", ".join(both)
        filling += f"INSERT INTO {table} ({names}) SELECT {names} FROM old.{table};"
    return filling


def columns_of(
    connection: sqlite3.Connection, table: str, file: str = "main"
) -> list[str]:
    """The names of a table's columns, without those that are computed from others."""
    info = connection.execute(f"PRAGMA {file}.table_info({table})")
    return [row["name"] for row in info]


def _host_of(url: str | None) -> str | None:
    try:
        return urlsplit(url).hostname if url else None
    except ValueError:
        return None


@contextlib.contextmanager
def limited(
    connection: sqlite3.Connection,
    source: Path,
    seconds: float = SECONDS,
) -> Iterator[None]:
    """End a statement after a stop signal, with `KeyboardInterrupt`, or when it takes too long."""
    seconds += source.stat().st_size / BYTES_A_SECOND
    end = time.monotonic() + seconds

    # Also if the handler of a signal raises in it, the statement ends with SQLite's own error.
    connection.set_progress_handler(
        lambda: time.monotonic() >= end, STEPS_BETWEEN_LOOKS
    )
    try:
        yield
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_INTERRUPT:
            raise
        if time.monotonic() < end:
            raise KeyboardInterrupt from None
        raise StartupError(
            f"{source} could not be read within {seconds:.0f} s"
        ) from None
    finally:
        connection.set_progress_handler(None, 0)
