"""Whether the files of an open database still stand in their folder, and how large its -wal is."""

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
        self._database = os.fspath(path)
        self._wal = f"{real}-wal"
        self._shm = f"{real}-shm"
        # Where the file system is not made for WAL mode, the last two are never there.
        found = {name: _status(name) for name in (self._database, self._wal, self._shm)}
        self._opened = {name: status for name, status in found.items() if status is not None}

    def misplaced(self) -> str | None:
        """The path of a file that is not in its place any more; None while all are."""
        return next((name for name in self._opened if not self._is_in_place(name)), None)

    def only_wal_is_gone(self) -> bool:
        """Whether the -wal is gone, nobody has written another one, and the other two are in place."""
        others = all(self._is_in_place(name) for name in self._opened if name != self._wal)
        # A connection that is opened afterwards makes a new one, which stays empty until it writes.
        return others and not self._is_in_place(self._wal) and not self.wal_bytes()

    def wal_bytes(self) -> int:
        """How large the -wal that stands there is; 0 where none does."""
        status = _status(self._wal)
        return status.st_size if status else 0

    def _is_in_place(self, name: str) -> bool:
        opened, found = self._opened.get(name), _status(name)
        return opened is not None and found is not None and os.path.samestat(opened, found)


def _status(name: str) -> os.stat_result | None:
    try:
        return os.stat(name)
    except OSError:
        return None
