"""The connections that read a database: a few, shared by all threads, and kept out for a moment when need be."""

import contextlib
import sqlite3
import threading
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from cardbeat.database_file import connect

READ_CONNECTIONS = 8


class Readers:
    """At most `READ_CONNECTIONS` `query_only` connections to one file, each with one thread at a time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        # All below is read and written under this lock only, which both conditions share.
        lock = threading.Lock()
        self._may_read = threading.Condition(lock)
        self._unused = threading.Condition(lock)
        self._idle: deque[sqlite3.Connection] = deque()
        self._in_use = 0
        self._is_paused = False
        self._is_closed = False

    @contextlib.contextmanager
    def one(self) -> Iterator[sqlite3.Connection]:
        """A connection that nobody else uses meanwhile. Raises SQLite's errors."""
        idle = self._enter()
        try:
            connection = idle or connect(self._path, query_only=True)
        except BaseException:
            self._leave(None)
            raise
        try:
            yield connection
        finally:
            self._leave(connection)

    @contextlib.contextmanager
    def paused(self, seconds: float) -> Iterator[None]:
        """Let nobody begin to read meanwhile, once those who read now have ended, for which this waits so long."""
        with self._unused:
            self._is_paused = True
            self._unused.wait_for(lambda: not self._in_use, seconds)
        try:
            yield
        finally:
            with self._may_read:
                self._is_paused = False
                self._may_read.notify_all()

    def close(self) -> None:
        """Close every connection that nobody reads from. One in use now is closed by its thread, after that."""
        with self._may_read:
            self._is_closed = True
            self._close_idle()

    def _enter(self) -> sqlite3.Connection | None:
        with self._may_read:
            while self._is_paused or self._in_use == READ_CONNECTIONS:
                self._may_read.wait()
            self._in_use += 1
            return self._idle.pop() if self._idle else None

    def _leave(self, connection: sqlite3.Connection | None) -> None:
        with self._may_read:
            self._in_use -= 1
            if connection is not None:
                self._idle.append(connection)
            if self._is_closed:
                self._close_idle()
            if not self._in_use:
                self._unused.notify()
            self._may_read.notify()

    def _close_idle(self) -> None:
        while self._idle:
            self._idle.pop().close()
