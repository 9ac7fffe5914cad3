"""Whether the files of an open database still stand in their folder, and what is done where they do not."""

import contextlib
import logging
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from cardbeat.database.sqlite_errors import as_sqlite
from cardbeat.database.sqlite_file import WAL_BYTES

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
"""How seldom the -shm is looked at while there are many commits: its loss does harm once another process makes one."""
READERS_LEAVE_SECONDS = 0.05
"""How long the writer waits for those who read, of this process and then of others, to empty the -wal."""
WAL_GROWTH_BYTES = 4 * 1024 * 1024
"""How much more is written after readers who stayed longer have kept it from that, until it tries again."""


class OpenFiles:
    """The database file, its -wal and its -shm, as they stood there when they were opened.

    SQLite leaves all three in place while a connection is open. What is written after something else has removed or
    replaced one of them, nobody finds again once this process has ended.
    """

    def __init__(self, path: Path, checkpoint: Callable[[], bool]) -> None:
        """`checkpoint` brings the -wal into the database file, False where it could not."""
        self._path = path
        self._checkpoint = checkpoint
        self._wal_is_saved = False
        self.wal_may_reach_bytes = WAL_BYTES
        # SQLite puts its own files beside what a link refers to.
        real = os.path.realpath(path)
        self.wal_path = f"{real}-wal"
        # Where the file system is not made for WAL mode, the last two are never there.
        found = {name: _status(name) for name in (os.fspath(path), self.wal_path, f"{real}-shm")}
        self._opened = {name: status for name, status in found.items() if status is not None}
        self.database = os.stat(path)
        self.wal = self._opened.get(self.wal_path)
        """As `os.stat` tells of it; None where there is none."""

    def misplaced(self) -> str | None:
        """The path of a file that is not in its place any more; None while all are."""
        return next((name for name in self._opened if not self._is_in_place(name)), None)

    def may_close(self, last: sqlite3.Connection) -> bool:
        """Whether the connections may be closed now, the `last` of them at last.

        Where a file is not in its place, what another process has written to the -wal since would be removed with that,
        as this one does not know of it. If SQLite can't be told to leave it, the end of the process is to close them.
        """
        if self.misplaced() is None:
            return True
        # From Python 3.12 on.
        leave, option = getattr(last, "setconfig", None), getattr(sqlite3, "SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE", None)
        if leave is None or option is None:
            log.error("files of the database were removed while in use, so it is not closed in order")
            return False
        leave(option, True)
        return True

    def refuse(self, misplaced: str) -> NoReturn:
        """Raise SQLite's error for a write while that file is not in its place.

        What only a removed -wal holds is brought into the database file first, as long as this process still has it
        open. Nothing is written after that: the next start finds all that was acknowledged.
        """
        if not self._wal_is_saved and self._only_wal_is_gone() and self._checkpoint():
            self._wal_is_saved = True
            log.error("%s-wal was removed while in use; what it held is now in %s", self._path, self._path)
        if self._wal_is_saved:
            raise as_sqlite(f"{self._path}-wal was removed while in use; restart the server", sqlite3.SQLITE_READONLY)
        raise as_sqlite(f"{misplaced} was removed or replaced while in use", sqlite3.SQLITE_READONLY)

    def _only_wal_is_gone(self) -> bool:
        """Whether the -wal is gone, nobody has written another one, and the other two are in place."""
        others = all(self._is_in_place(name) for name in self._opened if name != self.wal_path)
        # A connection that is opened afterwards makes a new one, which stays empty until it writes.
        is_gone = self.wal is not None and not self._is_in_place(self.wal_path)
        found = _status(self.wal_path)
        return others and is_gone and (found is None or not found.st_size)

    def _is_in_place(self, name: str) -> bool:
        found = _status(name)
        return found is not None and os.path.samestat(found, self._opened[name])


def _status(name: str) -> os.stat_result | None:
    with contextlib.suppress(OSError):
        return os.stat(name)
    return None
