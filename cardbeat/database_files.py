"""Whether the files of an open database still stand in their folder, and what is done where they do not."""

import contextlib
import logging
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from cardbeat.database_errors import as_sqlite
from cardbeat.database_file import WAL_BYTES

log = logging.getLogger(__name__)


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
