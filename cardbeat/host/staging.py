"""Staging folders: a new file is written beside its final place, and then moved there in one step.

A killed process leaves its staging folder behind. The lock file in it shows whether it is still in use, because the
system frees the lock when the process ends.
"""

import contextlib
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from cardbeat.host.system import LOCK_FLAGS, current_user, try_lock

PREFIX = ".cardbeat-"
LOCK = "lock"
NAMES = {"copy", "copy-journal", "copy-wal", "copy-shm", "kept", LOCK}
"""The names of all files that cardbeat creates in a staging folder. A folder with any other file is never removed."""
UNLOCKED_SECONDS = 3600
"""A folder without a lock counts as left behind at this age: its process was killed early, or its disk has no locks."""


@contextlib.contextmanager
def staging_folder(parent: Path) -> Iterator[Path]:
    """A new private folder in `parent`; the folder and its content are removed at the end.

    First removes the staging folders that were left in `parent`, by killed processes or by a disk that did not let them
    be removed. Raises `OSError`.
    """
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
    with contextlib.suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            if entry.name.startswith(PREFIX) and entry.is_dir(follow_symlinks=False):
                with contextlib.suppress(OSError):
                    _remove_if_left_behind(Path(entry.path))


def _remove_if_left_behind(folder: Path) -> None:
    user = current_user()
    names = set(os.listdir(folder))
    if (user is not None and folder.stat().st_uid != user) or not names <= NAMES or _is_in_use(folder):
        return
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
