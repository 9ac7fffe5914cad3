"""Space that is kept for pings and deletions: a file of the data folder that gives way while the disk is full."""

import contextlib
import os
from pathlib import Path
from typing import Final

from cardbeat.database.sqlite.lock_file import open_lock_file
from cardbeat.errors import StartupError
from cardbeat.host.disk import Reserve

ROOM: Final = "cardbeat.room"
ROOM_BYTES: Final = 8 * 1024 * 1024
STEP_BYTES: Final = 1024 * 1024
"""What is given up at once. Other programs may take what SQLite does not take in that moment."""


class Room:
    """The file, at most as large as the reserve. Without it a full disk only refuses pings sooner.

    Few writes need it: most change pages where they stand, by a -wal that is used again and again.
    """

    def __init__(self, folder: Path, reserve: Reserve) -> None:
        self._path = folder / ROOM
        self._reserve = reserve
        self._was_filled = False

    def fill(self) -> None:
        """Make the file whole, once until some of it is given up, and not while the disk is low."""
        if self._was_filled or self._reserve.is_low():
            return
        self._was_filled = True
        with contextlib.suppress(OSError, StartupError), open(open_lock_file(self._path), "r+b", 0) as file:
            while (missing := min(ROOM_BYTES, self._reserve.bytes) - file.seek(0, os.SEEK_END)) > 0:
                # At random: a file system that compresses, such as ZFS, would keep nothing for zeros.
                file.write(os.urandom(min(missing, STEP_BYTES)))

    def give_way(self) -> bool:
        """Free one step of the disk, and return whether any was left."""
        self._was_filled = False
        self._reserve.look_again()
        with contextlib.suppress(OSError, StartupError), open(open_lock_file(self._path), "r+b", 0) as file:
            size = file.seek(0, os.SEEK_END)
            file.truncate(max(0, size - STEP_BYTES))
            return size > 0
        return False

    def give_way_to_open(self) -> None:
        """Free one step if less than that is free: SQLite makes two files to open a database."""
        if self._reserve.is_low() and self._reserve.free_bytes < STEP_BYTES:
            self.give_way()
