"""Puts a copy of a database, such as a backup, in the place of a data folder's own.

Whenever this is interrupted, the folder holds either the database it had or the new one: the one before gets a second
name, and only then, in one step, the new one takes its place.
"""

import contextlib
import os
import shutil
import sqlite3
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from cardbeat import ownership
from cardbeat.clock import utc_text
from cardbeat.database.lock_file import open_lock_file, take_lock
from cardbeat.database.sqlite_file import (
    BUSY_SECONDS,
    DELIVERY_LOCK,
    FILE_NAME,
    FILES,
    WRITER_LOCK,
    check,
    connect,
    copy_into,
    open_read_only,
    start_up_errors,
)
from cardbeat.errors import StartupError
from cardbeat.staging import staging_folder
from cardbeat.stopping import RequireGoing, always_going
from cardbeat.system import remove, replace, sync_file, sync_folder

STEPS_BETWEEN_LOOKS = 1_000_000
"""Of SQLite's machine, some 10 ms: between two looks at whether to stop."""


def restore(folder: Path, source: Path, now: float, require_going: RequireGoing = always_going) -> Path | None:
    """Make a copy of `source` the database of a data folder. Returns where the one before is kept, if there was one.

    Raises `StartupError`, with nothing changed, for a file that is no sound database of this program or an earlier
    one, and while a server or another command uses the folder. `now` is Unix time in seconds. What `require_going`
    raises ends the restore with nothing changed.
    """
    ownership.check_writable(folder, FILES)
    check_source(source)
    _check_is_another(folder, source)
    ownership.keep_others_out(folder)
    with contextlib.ExitStack() as held:
        # Whoever serves holds the first all the time; whoever writes or makes a database holds the second.
        held.enter_context(_lock(folder / DELIVERY_LOCK, 0))
        held.enter_context(_lock(folder / WRITER_LOCK, BUSY_SECONDS))
        # What a link refers to may be on another disk, and a file can be moved in one step on one disk only.
        place = Path(os.path.realpath(folder / FILE_NAME))
        try:
            # As root, a folder that nobody else may look into: owners are changed in it by name.
            beside = held.enter_context(staging_folder(place.parent))
            copy = sound_copy(source, beside / "copy", require_going)
            _adopt(copy, place)
            require_going()
            _checkpoint(place)
            kept = _keep(place, now, beside)
            replace(copy, place)
        except OSError as error:
            raise StartupError(f"can't write in {place.parent}: {error.strerror}; nothing was restored") from None
        with start_up_errors(place.parent):
            sync_folder(place.parent)
        return kept


def check_source(source: Path) -> None:
    """Raise `StartupError` for a file that can't be restored, as far as that is soon seen."""
    try:
        check(source)
    except StartupError as error:
        found = str(error).partition("; ")[0]
        raise StartupError(f"{found}; nothing was restored") from None


def _check_is_another(folder: Path, source: Path) -> None:
    with contextlib.suppress(OSError):
        if os.path.samefile(source, folder / FILE_NAME):
            raise StartupError(f"{source} is the database of {folder} itself; name a backup")


@contextlib.contextmanager
def _lock(path: Path, seconds: float) -> Iterator[None]:
    """Hold a lock file of a data folder.

    Raises `StartupError` if another process holds it for all of these seconds, and where files have no locks.
    """
    descriptor = open_lock_file(path)
    try:
        with start_up_errors(path):
            if not take_lock(descriptor, time.monotonic() + seconds):
                raise StartupError(f"the data folder {path.parent} is in use; stop the server, then restore")
        yield
    finally:
        os.close(descriptor)


def sound_copy(source: Path, copy: Path, require_going: RequireGoing) -> Path:
    """A copy as of one moment, on disk, that SQLite's full check finds sound. Raises `StartupError`."""
    with start_up_errors(source):
        os.close(os.open(copy, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        with open_read_only(source) as original:
            copy_into(original, copy, require_going)
        with open_read_only(copy) as connection:
            found = _first_problem(connection, require_going)
    if found != "ok":
        raise StartupError(f"{source} is damaged ({found}); nothing was restored")
    sync_file(copy)
    return copy


def _first_problem(connection: sqlite3.Connection, require_going: RequireGoing) -> str:
    """What SQLite's full check finds first, "ok" if it is nothing."""
    # What is raised in there ends the statement, and only that is told.
    connection.set_progress_handler(require_going, STEPS_BETWEEN_LOOKS)
    try:
        return str(connection.execute("PRAGMA integrity_check(1)").fetchone()[0])
    except sqlite3.OperationalError:
        require_going()
        raise


def _adopt(copy: Path, place: Path) -> None:
    """Give the copy the mode of the database before and, as root, its owner or else the folder's."""
    there = place if place.exists() else None
    descriptor = os.open(copy, os.O_RDWR)
    try:
        ownership.give_away(descriptor, there or place.parent)
    finally:
        os.close(descriptor)
    if there:
        copy.chmod(stat.S_IMODE(there.stat().st_mode))


def _checkpoint(place: Path) -> None:
    """Bring what stands in the -wal into the database, so that it is one file, unless it is damaged.

    Raises `StartupError` if another program has it open.
    """
    try:
        check(place)
    except StartupError:
        return
    with start_up_errors(place), contextlib.closing(connect(place)) as connection:
        busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if busy:
            raise StartupError(f"another program reads {place}; end it, then restore")
        connection.execute("PRAGMA journal_mode = DELETE")


def _keep(place: Path, now: float, beside: Path) -> Path | None:
    """Give what is there a second name, in which the moment stands. Returns that name.

    Of a damaged database the -wal, which could not be brought into it, is moved along: it must not come to stand
    beside the new one, into which SQLite would write it.
    """
    kept = _free_name(place, now)
    for end in ("", "-wal", "-journal"):
        with contextlib.suppress(FileNotFoundError):
            _second_name(Path(f"{place}{end}"), Path(f"{kept}{end}"), beside)
    sync_folder(place.parent)
    for end in ("-wal", "-journal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            remove(Path(f"{place}{end}"))
    return kept if kept.exists() else None


def _free_name(place: Path, now: float) -> Path:
    """`cardbeat.db.before-restore-YYYYMMDD-HHMMSS`, in UTC, of this second or the next that no file is named after."""
    while True:
        moment = utc_text(now).translate({ord("-"): None, ord(":"): None, ord(" "): "-"})
        name = place.with_name(f"{place.name}.before-restore-{moment}")
        if not any(os.path.lexists(f"{name}{end}") for end in ("", "-wal", "-journal")):
            return name
        now += 1


def _second_name(path: Path, name: Path, beside: Path) -> None:
    """A hard link or, where the file system has none, a copy that appears whole."""
    try:
        os.link(path, name)
    except FileNotFoundError:
        raise
    except OSError:
        partial = beside / "kept"
        shutil.copy2(path, partial)
        descriptor = os.open(partial, os.O_RDWR)
        try:
            ownership.give_away(descriptor, path)
        finally:
            os.close(descriptor)
        sync_file(partial)
        replace(partial, name)
