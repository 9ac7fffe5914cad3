"""Space that is kept for pings and deletions: a file of the data folder that gives way while the disk is full."""

import contextlib
import errno
import os
from pathlib import Path
from typing import IO, Final

from cardbeat.database.sqlite.lock_file import open_lock_file
from cardbeat.errors import StartupError
from cardbeat.host.disk import Reserve

ROOM: Final = "cardbeat.room"
ROOM_BYTES: Final = 8 * 1024 * 1024
CHECK_BYTES: Final = 4096
"""More than all that a check can still need: two alerts take 1 KB with their indexes, and a row that shared a page with
another of 2 KB moves to one of its own if its first ping makes it longer."""
KEYS_AS_CHECK: Final = 24  # whose first notes of use take at most `CHECK_BYTES`: they add a page for every three
STEP_BYTES: Final = 1024 * 1024
"""What is given up at once. Other programs may take what SQLite does not take in that moment."""
OPEN_BYTES: Final = 128 * 1024
"""What is given up to open the database, which needs 36 KiB."""


class Room:
    """The file: 8 MiB, or the reserve of a small disk, and `CHECK_BYTES` for each check and 24 keys.

    Without it a full disk only refuses pings sooner. Few writes need it: most change pages where they stand, by a -wal
    that is used again and again.
    """

    def __init__(self, folder: Path, reserve: Reserve) -> None:
        self._path = folder / ROOM
        self._reserve = reserve
        self._bytes = self._path.stat().st_size if os.path.isfile(self._path) else 0
        """The size of the file, or what it would be if it could be written: each size is tried once."""
        self._wanted = 0

    def fill(self, checks: int, keys: int = 0) -> None:
        """Bring the file to the size for them, at most 8 MiB in one call, and not while the disk is low."""
        is_low = self._reserve.is_low()
        size = min(ROOM_BYTES, self._reserve.bytes) + (checks + keys // KEYS_AS_CHECK) * CHECK_BYTES
        self._wanted = size
        if size != self._bytes and not is_low:
            self._bytes = min(size, self._bytes + ROOM_BYTES)
            with contextlib.suppress(OSError, StartupError), open(open_lock_file(self._path), "r+b", 0) as file:
                _grow(file, self._bytes)
                file.truncate(self._bytes)
        self._reserve.owed = max(0, size - self._bytes)

    def give_way(self, least: int = 0, step: int = STEP_BYTES) -> bool:
        """Free a step of the disk, and return whether there were more than `least` bytes, which are kept."""
        self._reserve.look_again()
        with contextlib.suppress(OSError, StartupError), open(open_lock_file(self._path), "r+b", 0) as file:
            size = file.seek(0, os.SEEK_END)
            self._bytes = max(min(size, least), size - step)
            file.truncate(self._bytes)
            return size > least
        return False

    def is_at_quota(self) -> bool:
        """Whether a quota lets the file grow by no step: for it SQLite has no error of its own, as for a full disk."""
        if not os.path.isfile(self._path):
            return False
        with contextlib.suppress(OSError, StartupError), open(open_lock_file(self._path), "r+b", 0) as file:
            size = file.seek(0, os.SEEK_END)
            try:
                _grow(file, size + STEP_BYTES)
            except OSError as error:
                if error.errno == errno.EDQUOT:
                    self._reserve.note_quota()
                    return True
            finally:
                file.truncate(size)
        return False

    def give_way_to_open(self) -> bool:
        """Free a small step if the disk is full, and return whether there was one."""
        is_full = self._reserve.is_low() and self._reserve.free_bytes < STEP_BYTES
        return (is_full or self.is_at_quota()) and self.give_way(step=OPEN_BYTES)

    def take_back(self, count: int) -> None:
        """While the disk is low, take the bytes that SQLite has just freed, as far as they lack: others may do so."""
        if self._reserve.is_low():
            with contextlib.suppress(OSError, StartupError), open(open_lock_file(self._path), "r+b", 0) as file:
                _grow(file, min(file.seek(0, os.SEEK_END) + count, self._wanted))


def _grow(file: IO[bytes], size: int) -> None:
    while (missing := size - file.seek(0, os.SEEK_END)) > 0:
        # At random: a file system that compresses, such as ZFS, would keep nothing for zeros.
        file.write(os.urandom(min(missing, STEP_BYTES)))
