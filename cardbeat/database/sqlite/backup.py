"""Copies the database of a data folder to one file, as of one moment, also while it is served."""

import contextlib
import os
import sqlite3
import stat
from pathlib import Path

from cardbeat.database.sqlite.file import (
    FILE_NAME,
    FILES,
    open_file,
    require_database,
    require_file,
    require_ours,
    start_up_errors,
)
from cardbeat.database.sqlite.rows import limited, why_refused
from cardbeat.errors import StartupError
from cardbeat.host.ownership import status_of
from cardbeat.host.staging import staging_folder
from cardbeat.host.stopping import RequireGoing, always_going
from cardbeat.host.system import replace, sync_file, sync_folder


def back_up(
    folder: Path, target: Path, require_going: RequireGoing = always_going
) -> tuple[Path, str | None]:
    """Copy the database of a data folder, in use or not, to a file that appears whole.

    Returns the file, and why `restore` would refuse it. Then it is beside the target, named
    `.refused`: the target may be the last backup that can be restored.

    Raises `StartupError` if the database can't be read or the file not written, and for a target
    that belongs to the database or is no regular file, and what `require_going` raises. Then the
    target stays as it was, and nothing is left beside it.
    """
    require_database(folder)
    source = folder / FILE_NAME
    _require_apart(target, folder)
    place = Path(os.path.realpath(target))
    try:
        with staging_folder(place.parent) as beside:
            copy = beside / "copy"
            copy.touch(0o600)
            _copy(source, copy, target, require_going)
            sync_file(copy)
            reason = next(iter(why_refused(copy, require_going, "rw")), None)
            require_going()
            if reason:
                place = place.with_name(f"{place.name}.refused")
                target = place
                _require_apart(target, folder)
                reason = reason.replace(str(copy), str(target))
            replace(copy, place)
        sync_folder(place.parent)
    except OSError as error:
        raise StartupError(f"can't write {target}: {error.strerror}") from None
    return target, reason


def _require_apart(target: Path, folder: Path) -> None:
    """Raise `StartupError` for a file of the database, and for what is no regular file."""
    found = status_of(target)
    for path in (folder / name for name in FILES):
        own = status_of(path)
        if found and own and os.path.samestat(found, own):
            raise StartupError(
                f"{target} belongs to the database that is copied; choose another file"
            )
    if found and not stat.S_ISREG(found.st_mode):
        raise StartupError(
            f"{target} is not a regular file, so no backup replaces it; choose another file"
        )


def _copy(source: Path, copy: Path, target: Path, require_going: RequireGoing) -> None:
    with start_up_errors(source), contextlib.ExitStack() as opened:
        require_file(source)
        # SQLite can copy the tables with their rules only from a file that it may write.
        connection = opened.enter_context(contextlib.closing(open_file(source, "rw")))
        require_ours(connection, source)
        try:
            with limited(connection, source, require_going):
                connection.execute("VACUUM INTO ?", (str(copy),))
        except sqlite3.Error as error:
            raise StartupError(f"can't copy {source} to {target}: {error}") from None
