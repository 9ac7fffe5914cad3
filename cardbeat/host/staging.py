"""New files are written beside their final place, and then moved there in one step.

`written_whole` writes one file, `staging_folder` is a folder for several. A killed process leaves
its staging folder behind. The lock file in it shows whether it is still in use, because the system
frees the lock when the process ends.
"""

import contextlib
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from cardbeat.host.system import (
    LOCK_FLAGS,
    current_user,
    give_away,
    remove,
    replace,
    try_lock,
)

PREFIX = ".cardbeat-"
LOCK = "lock"
NAMES = {"copy", "copy-journal", "copy-wal", "copy-shm", "kept", "old", "old-journal", LOCK}
"""The names of all files that cardbeat creates in a staging folder. A folder with any other file is
never removed."""
UNLOCKED_SECONDS = 3600
"""A folder without a lock counts as left behind at this age: its process was killed early, or its
disk has no locks."""


@contextlib.contextmanager
def written_whole(path: Path) -> Iterator[BinaryIO]:
    """A new file that takes the place, mode and owner of `path`; after an error nothing changed."""
    # A name that can't be guessed, and "x": else a link of that name would lead elsewhere.
    temporary = path.with_name(f".cardbeat-{os.urandom(8).hex()}.tmp")
    try:
        with temporary.open("xb") as file:
            yield file
            if path.exists():
                give_away(file.fileno(), path)
                temporary.chmod(stat.S_IMODE(path.stat().st_mode))
        replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            remove(temporary)
        raise


@contextlib.contextmanager
def staging_folder(parent: Path) -> Iterator[Path]:
    """A new private folder in `parent`; the folder and its content are removed at the end.

    First removes the staging folders that were left in `parent`, by killed processes or by a disk
    that did not let them be removed. Raises `OSError`.
    """
    import tempfile  # noqa: PLC0415 - the command `card` does without it

    remove_left_behind(parent)
    with tempfile.TemporaryDirectory(prefix=PREFIX, dir=parent, ignore_cleanup_errors=True) as name:
        descriptor = os.open(Path(name, LOCK), LOCK_FLAGS | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            # On a file system without locks the file stays empty, and the folder's age decides.
            with contextlib.suppress(OSError):
                if try_lock(descriptor):
                    os.write(descriptor, b"\n")
            yield Path(name)
        finally:
            os.close(descriptor)


def remove_left_behind(parent: Path) -> None:
    """Remove this user's staging folders in `parent` that no process uses."""
    for folder in parent.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            found = folder.lstat()
            is_ours = stat.S_ISDIR(found.st_mode) and current_user() in (None, found.st_uid)
            names = set(os.listdir(folder))
            if is_ours and names <= NAMES and not _is_in_use(folder):
                # The lock last: while it is there, the folder is known as a staging folder.
                for name in sorted(names, key=LOCK.__eq__):
                    (folder / name).unlink()
                folder.rmdir()


def _is_in_use(folder: Path) -> bool:
    lock = folder / LOCK
    if not lock.exists() or not lock.stat().st_size:
        return time.time() - folder.stat().st_mtime < UNLOCKED_SECONDS
    descriptor = os.open(lock, LOCK_FLAGS)
    try:
        return not try_lock(descriptor)
    finally:
        os.close(descriptor)
