"""Files of a data folder that processes lock: what one of them holds, the system frees with it, however it ends."""

import errno
import logging
import os
import stat
import time
from pathlib import Path

from cardbeat import ownership
from cardbeat.database.queue import database_unavailable
from cardbeat.errors import StartupError
from cardbeat.system import LOCK_FLAGS, try_lock

log = logging.getLogger(__name__)

LOCK_POLL_SECONDS = 0.0005
"""Short enough to find the lock free between two commits of another process that writes all the time."""


class FileLease:
    """A `Lease` on a lock file: nobody takes it from a process that lives. Raises `StartupError` without one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = open_lock_file(path)
        self._is_held = False

    def take(self) -> bool:
        try:
            self._is_held = self._is_held or try_lock(self._descriptor)
        except OSError as error:
            log.error("can't lock %s (%s); what needs it waits until that works", self._path, error.strerror)
            raise database_unavailable() from error
        return self._is_held

    def held(self) -> bool:
        return self._is_held

    def release(self) -> None:
        self._is_held = False
        os.close(self._descriptor)


def open_lock_file(path: Path) -> int:
    """A descriptor of a data folder's lock file; it and the folder are made if missing.

    Raises `StartupError`, also for a link: who can write to the folder but not to what it leads to must not have that
    opened and locked.
    """
    folder = path.parent
    try:
        ownership.make_folder(folder)
        try:
            return ownership.create_private(path)
        except FileExistsError:
            return _open_only(path)
    except OSError as error:
        if os.path.lexists(path):
            reason = "it is a link" if path.is_symlink() else error.strerror
            raise StartupError(f"can't use {path}: {reason}") from None
        raise StartupError(f"can't write in the data folder {folder}: {error.strerror}") from None


def _open_only(path: Path) -> int:
    """Open a file that is there, but neither what a link leads to nor anything else that has no locks of a file's."""
    if path.is_symlink():
        # Where the system can, it refuses to follow one, also one that is made only now.
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    descriptor = os.open(path, LOCK_FLAGS)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is not a file")
    return descriptor


def take_lock(descriptor: int, give_up_at: float) -> bool:
    """Whether the file's lock could be taken before this monotonic time; it is tried once at least.

    Raises `OSError` where files have no locks.
    """
    while not try_lock(descriptor):
        if time.monotonic() >= give_up_at:
            return False
        time.sleep(LOCK_POLL_SECONDS)
    return True
