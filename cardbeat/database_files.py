"""Whether the files of an open database still stand in their folder, and how large its -wal is."""

import contextlib
import os
import time
from math import inf
from pathlib import Path

LOOK_SECONDS = 1.0
"""How seldom the -shm is looked at while there are many commits: its loss does harm once another process makes one."""


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
        found = {name: _identity(name) for name in (self._database, self._wal, self._shm)}
        self._opened = {name: identity for name, identity in found.items() if identity is not None}
        self._look_at = -inf

    def misplaced(self) -> str | None:
        """The path of a file that is not in its place any more; None while all are."""
        return next((name for name in self._opened if not self._is_in_place(name)), None)

    def misplaced_at_a_glance(self) -> str | None:
        """As `misplaced`, for each commit: without the -wal, which `wal_bytes` looks at, and seldom the -shm."""
        if not self._is_in_place(self._database):
            return self._database
        now = time.monotonic()
        if now < self._look_at:
            return None
        self._look_at = now + LOOK_SECONDS
        return self.misplaced()

    def only_wal_is_gone(self) -> bool:
        """Whether the -wal is gone, nobody has written another one, and the other two are in place."""
        others = all(self._is_in_place(name) for name in self._opened if name != self._wal)
        # A connection that is opened afterwards makes a new one, which stays empty until it writes.
        return others and self.wal_bytes() is None and not _size(self._wal)

    def wal_bytes(self) -> int | None:
        """How large the -wal is; None where it is not in its place any more."""
        opened = self._opened.get(self._wal)
        if opened is None:
            return 0
        try:
            found = os.stat(self._wal)
        except OSError:
            return None
        return found.st_size if (found.st_ino, found.st_dev) == opened else None

    def _is_in_place(self, name: str) -> bool:
        return _identity(name) == self._opened[name]


def _identity(name: str) -> tuple[int, int] | None:
    """What tells a file from any other; None where there is none."""
    try:
        found = os.stat(name)
    except OSError:
        return None
    return found.st_ino, found.st_dev


def _size(name: str) -> int:
    with contextlib.suppress(OSError):
        return os.stat(name).st_size
    return 0
