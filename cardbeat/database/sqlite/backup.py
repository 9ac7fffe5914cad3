"""Copies the database of a data folder to one file, as of one moment, also while it is being served."""

import contextlib
import os
import sqlite3
import stat
from pathlib import Path

from cardbeat.database.sqlite.file import (
    FILE_NAME,
    FILES_BESIDE,
    LOCKS,
    check,
    connect,
    lock_path,
    open_file,
    require_database,
    start_up_errors,
)
from cardbeat.database.sqlite.objects import leave_out_foreign
from cardbeat.database.sqlite.room import ROOM
from cardbeat.database.sqlite.rows import why_refused
from cardbeat.errors import StartupError
from cardbeat.host.ownership import CARDS, status_of
from cardbeat.host.staging import staging_folder
from cardbeat.host.stopping import RequireGoing, always_going
from cardbeat.host.system import killed_if_stuck, replace, sync_file, sync_folder

COPY_PAGES = 100
"""Pages of 4 KiB that are copied between two looks for a stop signal."""
STUCK_SECONDS = 30
"""A copy that takes longer for one step is killed: until it ends, the server's -wal grows, and may fill the disk."""


def back_up(folder: Path, target: Path, require_going: RequireGoing = always_going) -> tuple[Path, str | None]:
    """Copy the database of a data folder, in use or not, as of one moment to one file that appears whole.

    Returns the file, and why `restore` would refuse it. Then it is beside the target, named `.refused`: the target
    stays as it was, because it may be the last backup that can be restored.

    Raises `StartupError` if the database can't be read or the file not written, and for a target that is no regular
    file or belongs to the database. What `require_going` raises ends the backup. In all these cases the target stays as
    it was, and nothing is left beside it.
    """
    require_database(folder)
    source_path = folder / FILE_NAME
    try:
        place = _place_for_backup(source_path, target)
        with staging_folder(place.parent) as beside:
            partial = beside / "copy"
            partial.touch(0o600)
            _copy(source_path, partial, target, require_going)
            sync_file(partial)
            reason = next(iter(why_refused(partial, require_going)), None)
            require_going()
            if reason:
                # Beside the file that a link refers to, because only on one disk a file can be moved in one step.
                target = Path(f"{place if target.is_symlink() else target}.refused")
                reason = reason.replace(str(partial), str(target))
                place = _place_for_backup(source_path, target)
            replace(partial, place)
        sync_folder(place.parent)
        return target, reason
    except OSError as error:
        raise StartupError(f"can't write {target}: {error.strerror}") from None


def _place_for_backup(source_path: Path, target: Path) -> Path:
    """The target, or the file that it is a link to. Raises `StartupError` for what a backup must not replace."""
    place = Path(os.path.realpath(target))
    found = status_of(target)
    # SQLite puts its own files beside the file that a link refers to, as we do with lock files. The others are in the
    # data folder itself.
    own = (f"{os.path.realpath(source_path)}{end}" for end in FILES_BESIDE)
    beside = (source_path.with_name(ROOM), source_path.with_name(CARDS), *(lock_path(source_path, it) for it in LOCKS))
    for path in [*map(Path, own), *(Path(os.path.realpath(name)) for name in beside)]:
        status = status_of(path)
        if place == path or (found and status and os.path.samestat(found, status)):
            raise StartupError(f"{target} belongs to the database that is copied; choose another file")
    if found and not stat.S_ISREG(found.st_mode):
        raise StartupError(f"{target} is not a regular file, so no backup replaces it; choose another file")
    return place


def _copy(source_path: Path, partial: Path, target: Path, require_going: RequireGoing) -> None:
    with start_up_errors(source_path), contextlib.closing(open_file(partial, "rw")) as copy:
        copy.execute("PRAGMA synchronous = OFF")  # the caller syncs the file, and no server waits for it then
        try:
            with killed_if_stuck("the backup", STUCK_SECONDS) as going_on:
                check(source_path)
                with contextlib.closing(connect(source_path, query_only=True)) as source:
                    # Without one transaction over all steps, a change between two of them makes the copy begin again.
                    source.executescript("BEGIN; SELECT 1 FROM sqlite_schema")
                    source.backup(copy, pages=COPY_PAGES, progress=lambda *_: [f() for f in (require_going, going_on)])
            # Without a -wal beside it. Serving changes that again.
            copy.execute("PRAGMA journal_mode = DELETE")
            # Such as an operator's own index: `restore` takes only what is ours.
            leave_out_foreign(copy)
        except sqlite3.Error as error:
            raise StartupError(f"can't copy {source_path} to {target}: {error}") from None
