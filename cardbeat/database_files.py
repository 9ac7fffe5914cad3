"""Whether the files of an open database still stand in their folder."""

import contextlib
import os
from pathlib import Path


class OpenFiles:
    """The database file, its -wal and its -shm, as they stood there when they were opened.

    SQLite leaves all three in place while a connection is open. What is written after something else has removed or
    replaced one of them, nobody finds again once this process has ended.
    """

    def __init__(self, path: Path) -> None:
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

    def only_wal_is_gone(self) -> bool:
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
