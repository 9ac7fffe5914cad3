"""Puts a copy of a backup in the place of a data folder's database.

At any moment the folder holds either the database it had or the new one, whole: the old one gets a second name, and
then the new one replaces it in one step.
"""

import contextlib
import os
import shutil
import sqlite3
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from cardbeat.database.schema import last_moment
from cardbeat.database.sqlite.file import (
    BUSY_SECONDS,
    DELIVERY_LOCK,
    FILE_NAME,
    FILES,
    FILES_BESIDE,
    WRITER_LOCK,
    Damaged,
    check,
    connect,
    lock_path,
    open_read_only,
    require_regular,
    start_up_errors,
)
from cardbeat.database.sqlite.lock_file import open_lock_file, take_lock
from cardbeat.database.sqlite.rows import copy_rows, nothing_restored, opened
from cardbeat.errors import StartupError
from cardbeat.host import ownership
from cardbeat.host.staging import staging_folder
from cardbeat.host.stopping import RequireGoing, always_going
from cardbeat.host.system import remove, replace, sync_file, sync_folder


class Restored(NamedTuple):
    """A database that was restored: its path or URL, what it holds, and the path of the old one, if there was one.

    `served_at` is the Unix time at which it was last served, 0 if never.
    """

    database: str
    keys: int
    checks: int
    served_at: int
    kept: Path | None = None


def described(database: str, connection: sqlite3.Connection, kept: Path | None = None) -> Restored:
    """What was restored, by its path or URL and a connection to the file."""
    keys, checks = (connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in ("keys", "checks"))
    return Restored(database, keys, checks, last_moment(connection), kept)


def restore(folder: Path, source: Path, now: float, require_going: RequireGoing = always_going) -> Restored:
    """Make a copy of `source` the database of a data folder, and keep the old one.

    Raises `StartupError`, with nothing changed, for a file that is not sound or of a version that can't be used, and
    while a server or another command uses the folder. `now` is a Unix time. What `require_going` raises ends the
    restore with nothing changed.
    """
    ownership.check_writable(folder, FILES)
    check_source(source)
    with contextlib.suppress(OSError):
        if os.path.samefile(source, folder / FILE_NAME):
            raise StartupError(f"{source} is the database of {folder} itself; name a backup")
    # The file of a link may be on another disk, and only on one disk a file can be moved in one step.
    place = Path(os.path.realpath(folder / FILE_NAME))
    with start_up_errors(place):
        require_regular(place)
    ownership.keep_others_out(folder)
    with contextlib.ExitStack() as held:
        # A server holds the first all the time. All that write or make a database hold the second.
        for name, seconds in ((DELIVERY_LOCK, 0), (WRITER_LOCK, BUSY_SECONDS)):
            held.enter_context(_lock(lock_path(folder / FILE_NAME, name), seconds))
        try:
            # Root changes owners in this folder by name, so no other user may look into it.
            beside = held.enter_context(staging_folder(place.parent))
            copy = beside / "copy"
            copy_rows(source, copy, require_going)
            _adopt(copy, place)
            require_going()
            _checkpoint(place)
            with contextlib.ExitStack() as undo:
                kept = _keep(place, now, beside, undo)
                replace(copy, place)
                undo.pop_all()
            # Only the owner reads what is kept. It may be another user, who then has the mode that it has.
            for path in (Path(f"{kept}{end}") for end in FILES_BESIDE if kept):
                with contextlib.suppress(FileNotFoundError, PermissionError):
                    path.chmod(0o600)
        except OSError as error:
            raise StartupError(f"can't write in {place.parent}: {error.strerror}; nothing was restored") from None
        with start_up_errors(place), open_read_only(place) as connection:
            sync_folder(place.parent)
            return described(str(folder / FILE_NAME), connection, kept)


def check_source(source: Path) -> None:
    """Raise `StartupError` for a file that can't be restored, as far as that shows without reading its rows."""
    with nothing_restored(source), opened(source):
        pass


@contextlib.contextmanager
def _lock(path: Path, seconds: float) -> Iterator[None]:
    """Hold a lock file of a data folder.

    Raises `StartupError` if another process holds it during all of these seconds, and where files have no locks.
    """
    descriptor = open_lock_file(path)
    try:
        with start_up_errors(path):
            if not take_lock(descriptor, time.monotonic() + seconds):
                raise StartupError(f"the data folder {path.parent} is in use; stop the server, then restore")
        yield
    finally:
        os.close(descriptor)


def _adopt(copy: Path, place: Path) -> None:
    """Give the copy the mode of the old database and, as root, its owner, or else the folder's.

    A mode by which all users read it is an oversight, and not taken over.
    """
    there = place if place.exists() else None
    _give_away(copy, there or place.parent)
    if there and not (mode := stat.S_IMODE(there.stat().st_mode)) & stat.S_IRWXO:
        copy.chmod(mode)


def _give_away(path: Path, like: Path) -> None:
    descriptor = os.open(path, os.O_RDWR)
    try:
        ownership.give_away(descriptor, like)
    finally:
        os.close(descriptor)


def _checkpoint(place: Path) -> None:
    """Copy the -wal into the database, so that one file is left. If the database is damaged, both may stay.

    Raises `StartupError` if another program has it open.
    """
    if not place.exists():
        return
    with contextlib.suppress(Damaged):
        check(place, may_be_foreign=True)
        # This too may find damage, as the check does not read all of a large file.
        with start_up_errors(place), contextlib.closing(connect(place)) as connection:
            busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            if busy:
                raise StartupError(f"another program reads {place}; end it, then restore")
            connection.execute("PRAGMA journal_mode = DELETE")


def _keep(place: Path, now: float, beside: Path, undo: contextlib.ExitStack) -> Path | None:
    """Give the old database a second name with the time in it. Returns that name. `undo` gets how to take it back.

    The -wal of a damaged database goes with it. Beside the new database SQLite would write it into that.
    """
    kept = _free_name(place, now)
    with contextlib.suppress(FileNotFoundError):
        _second_name(place, kept, beside)
        undo.callback(remove, kept)
    for end in ("-wal", "-journal"):
        with contextlib.suppress(FileNotFoundError):
            replace(f"{place}{end}", f"{kept}{end}")
            undo.callback(replace, f"{kept}{end}", f"{place}{end}")
    with contextlib.suppress(FileNotFoundError):
        remove(Path(f"{place}-shm"))
    sync_folder(place.parent)
    return kept if kept.exists() else None


def _free_name(place: Path, now: float) -> Path:
    """`cardbeat.db.before-restore-YYYYMMDD-HHMMSS` in UTC, of the first second from now on that gives a free name."""
    while True:
        moment = time.strftime("%Y%m%d-%H%M%S", time.gmtime(now))
        name = place.with_name(f"{place.name}.before-restore-{moment}")
        if not any(os.path.lexists(f"{name}{end}") for end in ("", "-wal", "-journal")):
            return name
        now += 1


def _second_name(path: Path, name: Path, beside: Path) -> None:
    """Make a hard link or, where the file system has none, a copy that appears whole."""
    try:
        os.link(path, name)
    except FileNotFoundError:
        raise
    except OSError:
        partial = beside / "kept"
        shutil.copy2(path, partial)
        _give_away(partial, path)
        sync_file(partial)
        replace(partial, name)
