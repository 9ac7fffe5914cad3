"""Lock files of a data folder. The system frees a lock when its process ends, however it ends."""

import errno
import logging
import os
import stat
import time
from pathlib import Path

from cardbeat.errors import StartupError, Unavailable
from cardbeat.host import ownership
from cardbeat.host.system import LOCK_FLAGS, try_lock

log = logging.getLogger(__name__)

LOCK_POLL_SECONDS = 0.0005
"""From one attempt to the next: short enough to find the lock free between two commits of another process."""


class FileLease:
    """A `Lease` on a lock file. Another process can take it only after this one has ended or released it."""

    def __init__(self, path: Path) -> None:
        """Raises `StartupError`."""
        self._path = path
        self._descriptor = open_lock_file(path)
        self.opened = path.stat()
        self._is_held = False

    def take(self) -> bool:
        try:
            self._is_held = self._is_held or try_lock(self._descriptor)
        except OSError as error:
            log.error("can't lock %s (%s); what needs it waits until that works", self._path, error.strerror)
            raise Unavailable("database_unavailable") from error
        return self.held()

    def held(self) -> bool:
        # Another process would make a file that was removed, and hold a lock on that.
        return self._is_held and ownership.is_in_place(self._path, self.opened)

    def release(self) -> None:
        self._is_held = False
        os.close(self._descriptor)


def open_lock_file(path: Path) -> int:
    """A descriptor of a data folder's lock file. Makes the file and the folder if they are missing.

    Raises `StartupError`, also for a link: a user who may write to the folder could make one to any other file.
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
    """Open a regular file that exists. Raises `OSError` for anything else, such as a link."""
    if path.is_symlink():
        # Some systems also refuse, by a flag, a link that is made only after this check.
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    descriptor = os.open(path, LOCK_FLAGS)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is not a file")
    return descriptor


def take_lock(descriptor: int, give_up_at: float) -> bool:
    """Whether the file's lock was taken before this monotonic time. Tries at least once.

    Raises `OSError` where files have no locks.
    """
    while not try_lock(descriptor):
        if time.monotonic() >= give_up_at:
            return False
        time.sleep(LOCK_POLL_SECONDS)
    return True
