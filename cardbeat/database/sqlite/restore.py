"""Puts a copy of a backup in the place of a data folder's database.

At any moment the folder holds the database it had or the new one, whole: the old one gets a second
name, and then the new one replaces it in one step.
"""

import contextlib
import os
import shutil
import time
from pathlib import Path
from typing import NamedTuple

from cardbeat.database.database import Transaction
from cardbeat.database.schema import last_moment
from cardbeat.database.sqlite.file import (
    BUSY_SECONDS,
    FILE_NAME,
    FILES_BESIDE,
    SERVER_LOCK,
    WRITER_LOCK,
    Damaged,
    locked,
    make_one_file,
    open_read_only,
    require_file,
    require_no_link,
    start_up_errors,
)
from cardbeat.database.sqlite.rows import copy_rows, nothing_restored, require_sound
from cardbeat.errors import StartupError
from cardbeat.host import ownership
from cardbeat.host.staging import staging_folder
from cardbeat.host.stopping import RequireGoing, always_going
from cardbeat.host.system import replace, sync_file, sync_folder


class Restored(NamedTuple):
    """A database that was restored: its path or URL, what it holds, and where the old one is kept.

    `served_at` is the Unix time at which it was last served, 0 if never.
    """

    database: str
    keys: int
    checks: int
    served_at: int
    kept: Path | None = None


def described(database: str, connection: Transaction, kept: Path | None = None) -> Restored:
    """What was restored, by its path or URL and a connection to it."""
    (keys,) = connection.execute("SELECT count(*) FROM keys").fetchone()
    (checks,) = connection.execute("SELECT count(*) FROM checks").fetchone()
    return Restored(database, keys, checks, last_moment(connection), kept)


def restore(
    folder: Path, source: Path, now: float, require_going: RequireGoing = always_going
) -> Restored:
    """Make a copy of `source` the database of a data folder, and keep the old one.

    1. Hold the locks of servers and of commands that write.
    2. Copy the rows of the backup, which was checked, into a new file.
    3. Bring the -wal of the old database into it.
    4. Give the old database a second name, with the time `now` in it.
    5. Move the new file into its place.

    Raises `StartupError`, with nothing changed, for a file that is not sound or of a version that
    can't be used, and while a server or another command uses the folder. What `require_going`
    raises ends the restore with nothing changed.
    """
    place = folder / FILE_NAME
    with nothing_restored():
        require_sound(source, require_going)
    require_no_link(place)
    ownership.prepare_folder(folder)
    with contextlib.ExitStack() as held:
        in_use = f"the data folder {folder} is in use; stop the server, then restore"
        held.callback(os.close, locked(folder / SERVER_LOCK, 0, in_use))
        held.callback(os.close, locked(folder / WRITER_LOCK, BUSY_SECONDS, in_use))
        try:
            beside = held.enter_context(staging_folder(folder))
            copy = beside / "copy"
            with nothing_restored():
                copy_rows(source, copy, require_going)
            # If the old one is damaged, its -wal is kept with it.
            with contextlib.suppress(Damaged):
                if os.path.lexists(place):
                    require_file(place)
                    make_one_file(place)
            require_going()
            kept = _keep(place, beside, now)
            replace(copy, place)
            sync_folder(folder)
        except OSError as error:
            raise StartupError(
                f"can't write in {folder}: {error.strerror}; nothing was restored"
            ) from None
        with start_up_errors(place), open_read_only(place) as connection:
            return described(str(place), connection, kept)


def _keep(place: Path, beside: Path, now: float) -> Path | None:
    """Give the old database a second name; None without one.

    What is left beside it gets such a name too: SQLite would write it into the new database.
    """
    while True:
        moment = time.strftime("%Y%m%d-%H%M%S", time.gmtime(now))
        kept = place.with_name(f"{place.name}.before-restore-{moment}")
        if not any(os.path.lexists(f"{kept}{end}") for end in FILES_BESIDE):
            break
        now += 1
    for end in ("-wal", "-journal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            replace(f"{place}{end}", f"{kept}{end}")
    if not place.exists():
        return None
    try:
        os.link(place, kept)
    except OSError:
        # The file system has no hard links: a copy that appears whole.
        copy = beside / "kept"
        os.close(ownership.create_private(copy, place.parent))
        shutil.copyfile(place, copy)
        sync_file(copy)
        replace(copy, kept)
    with contextlib.suppress(PermissionError):
        kept.chmod(0o600)
    sync_folder(place.parent)
    return kept
