"""A folder beside a file's place in which its new content is made, so that it moves there in one step.

A process that is killed leaves the folder behind. The lock file in it tells that from one in use: the system frees the
lock with its process, however that ends.
"""

import contextlib
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from cardbeat.system import LOCK_FLAGS, current_user, try_lock

PREFIX = ".cardbeat-"
LOCK = "lock"
NAMES = {"copy", "copy-journal", "copy-wal", "copy-shm", "kept", LOCK}
"""All that is ever made in such a folder; one with anything else in it is somebody else's."""
UNLOCKED_SECONDS = 3600
"""How old a folder must be whose lock was not taken yet, or can't be on its file system, to count as left behind."""


@contextlib.contextmanager
def staging_folder(parent: Path) -> Iterator[Path]:
    """A new folder in `parent` that only this user can look into, removed at the end with all that is in it.

    Removes first what killed processes have left in `parent`. Raises `OSError`.
    """
    remove_left_behind(parent)
    with tempfile.TemporaryDirectory(prefix=PREFIX, dir=parent) as name:
        descriptor = os.open(Path(name, LOCK), LOCK_FLAGS | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            _lock(descriptor)
            yield Path(name)
        finally:
            os.close(descriptor)


def remove_left_behind(parent: Path) -> None:
    """Remove the staging folders in `parent` that belong to this user and that no process uses."""
    with contextlib.suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            if entry.name.startswith(PREFIX) and entry.is_dir(follow_symlinks=False):
                with contextlib.suppress(OSError):
                    _remove_if_left_behind(Path(entry.path))


def _lock(descriptor: int) -> None:
    # Where files have no locks, the file stays empty: then the folder's age has to tell.
    with contextlib.suppress(OSError):
        if try_lock(descriptor):
            os.write(descriptor, b"\n")


def _remove_if_left_behind(folder: Path) -> None:
    user = current_user()
    names = set(os.listdir(folder))
    if (user is not None and folder.stat().st_uid != user) or not names <= NAMES or _is_in_use(folder):
        return
    # The lock last: without the others it would still tell what the folder is.
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
