"""The server that a URL names, and the one connection that writes to it."""

import logging
import threading
import time
from typing import Final

import psycopg

from cardbeat.concurrency.threads import DaemonThread
from cardbeat.database.postgresql.connection import WORKS, Connection, connect
from cardbeat.database.postgresql.errors import Unreachable, in_one_line

log = logging.getLogger(__name__)

UNREACHABLE_SECONDS: Final = 1.0
"""Pause before the next attempt to reach the server."""
TELL_SECONDS: Final = 60.0
"""Time between two lines of the log that say that it can't be reached."""


class Server:
    """Makes connections. While the server can't be reached, a thread tries it, and callers get the error at once.

    A host that does not answer at all would keep each caller waiting for seconds.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        # Any thread sets it, only the one that tries clears it.
        self._is_away = threading.Event()
        self._closed = threading.Event()
        self._begin = threading.Lock()

    def connect(self, *, only_reads: bool = False) -> Connection:
        """A new connection. Raises `Unreachable`."""
        if self._is_away.is_set():
            raise Unreachable("the server could not be reached a moment ago")
        try:
            return connect(self._url, only_reads=only_reads)
        except psycopg.Error as error:
            log_unreachable(error)
            self._look_out()
            raise Unreachable("the server can't be reached") from None

    def close(self) -> None:
        self._closed.set()

    def _look_out(self) -> None:
        """Start the thread that tries, unless it runs. If the system grants no thread, the next caller tries."""
        with self._begin:
            if self._is_away.is_set():
                return
            self._is_away.set()
            try:
                DaemonThread(self._try_again, "database-reach").start()
            except RuntimeError:
                self._is_away.clear()

    def _try_again(self) -> None:
        tell_at = time.monotonic() + TELL_SECONDS
        while not self._closed.wait(UNREACHABLE_SECONDS):
            try:
                connect(self._url).close()
                log.warning("the database can be reached again")
                break
            except Exception as error:
                if time.monotonic() >= tell_at:
                    tell_at += TELL_SECONDS
                    log_unreachable(error)
        self._is_away.clear()


def log_unreachable(error: Exception) -> None:
    log.error("the database can't be reached: %s", in_one_line(error))


class Writer:
    """The connection to write by, replaced when it has ended. One thread uses it."""

    def __init__(self, server: Server, connection: Connection) -> None:
        self.connection = connection
        self._server = server
        self.unconfirmed: Connection | None = None
        """The connection that waits for the answer to its COMMIT, which was not confirmed in time."""
        self._look_elsewhere_at = 0.0

    def connected(self) -> Connection:
        """A connection that is ready for a transaction. Raises psycopg's errors if there is none."""
        if self.unconfirmed and self.unconfirmed.is_waiting():
            # At most one transaction waits for a standby that does not answer. All others would wait behind it.
            self.connection = self._connected_elsewhere(self.unconfirmed)
            self.unconfirmed.close()
        if self.unconfirmed:
            log.info("the commit that was not confirmed in time has ended")
            self.unconfirmed = None
        if not self.connection.is_idle():
            self.connection.close()
            self.connection = self._server.connect()
        return self.connection

    def close(self) -> None:
        self.connection.close()
        if self.unconfirmed:
            self.unconfirmed.close()

    def _connected_elsewhere(self, waiting: Connection) -> Connection:
        """A connection to another server, in case the one that does not answer hangs and was replaced.

        Or to the same one, if it is done with that commit: a proxy can lose an answer and keep the connection open.
        Else raises `Unreachable`, without asking again for `UNREACHABLE_SECONDS`.
        """
        if time.monotonic() >= self._look_elsewhere_at:
            connection = self._server.connect()
            self._look_elsewhere_at = time.monotonic() + UNREACHABLE_SECONDS
            ((works,),) = connection.execute(WORKS, (waiting.process,)).fetchall()
            if connection.server != waiting.server or not works:
                return connection
            connection.close()
        raise Unreachable("a commit waits for a standby")
