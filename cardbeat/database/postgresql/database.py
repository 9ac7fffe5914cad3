"""PostgreSQL, for several processes on several hosts: one connection that writes, others that read.

A write succeeds only if the server has confirmed its COMMIT. Without an answer in time its caller
gets `MaybeDone`, and the connection is left waiting: to cut it would keep what no standby has.

All servers lock rows of `checks` in the same order, and each transaction is one call.
"""

import time
from pathlib import Path
from typing import Any

import psycopg

from cardbeat.database.database import Database, Made, Write, make_all
from cardbeat.database.postgresql.connection import (
    WORKS,
    Connection,
    Unconfirmed,
    Unreachable,
    connect,
    is_trouble,
    may_be_repeated,
    start_up_errors,
)
from cardbeat.database.postgresql.lease import Lease
from cardbeat.database.postgresql.schema import bring_up_to_date
from cardbeat.errors import MaybeDone, Unavailable

PAUSES_SECONDS = (0.005, 0.02, 0.1, None)
"""Pauses before repeating a transaction that the server undid because of others."""
AWAY_SECONDS = 1.0
"""Pause between two attempts to reach the server."""
CONNECT_SECONDS = 6.0
"""Longer than an attempt to reach it takes."""
SLOW_SECONDS = 1.0
"""An answer that took longer does not tell the time."""


class PostgresqlDatabase(Database):
    """The database that a URL names, as `open_database` has it. `folder` is that of the cards."""

    errors_of_one = (psycopg.errors.LockNotAvailable,)
    row_lock = "FOR NO KEY UPDATE"

    def __init__(self, folder: Path, url: str) -> None:
        self._url = url
        # Read and written by any thread; each value is replaced as a whole.
        self._away_until = 0.0
        self._ahead = 0.0
        self.fence = Lease(self)
        with start_up_errors():
            self._writer = connect(url)
            try:
                bring_up_to_date(self._writer)
                self._set_clock()
            except BaseException:
                self._writer.close()
                raise
            self._writer.roll_back()
        super().__init__(folder)

    def clock(self) -> float:
        return time.monotonic() + self._ahead

    def claim(self) -> None:
        """Do nothing: any number of servers share the database."""

    def _set_clock(self) -> None:
        """Begin a transaction, and take the server's clock: all machines have the same time."""
        asked_at = time.monotonic()
        now = self._writer.begin()
        answered_at = time.monotonic()
        if not self._ahead or answered_at - asked_at < SLOW_SECONDS:
            self._ahead = now - (asked_at + answered_at) / 2

    def _commit(self, group: list[Write[Any]]) -> Made:
        # The server may undo it because of others.
        for pause_seconds in PAUSES_SECONDS:
            self._use_writer()
            try:
                self._set_clock()
                made = make_all(self._writer, group)
            except BaseException as error:
                self._writer.roll_back()
                if pause_seconds is None or not may_be_repeated(error):
                    raise
                # It may be a server that was the primary a moment ago.
                self._writer.close()
                time.sleep(pause_seconds)
            else:
                break
        self._writer.commit()
        return made

    def _use_writer(self) -> None:
        """Have a connection that is ready for a transaction. Raises `Unreachable`.

        The server may still work on the last one, such as a COMMIT that waits for a standby: others
        would come to wait behind it. Unless that server hangs and another one took its place.
        """
        if self._writer.is_idle():
            return
        connection = self._connect()
        process = (self._writer.process,)
        if connection.execute(WORKS, process).fetchone():
            connection.close()
            self._away_until = time.monotonic() + AWAY_SECONDS
            raise Unreachable("the last transaction has not ended")
        self._writer.close()
        self._writer = connection

    def _reader(self, connection: Connection | None) -> Connection:
        if connection is not None:
            if connection.is_idle():
                return connection
            connection.close()
        return self._connect(only_reads=True)

    def _connect(self, *, only_reads: bool = False) -> Connection:
        """A new connection. While the server is away, one caller tries every second.

        A host that does not answer at all would keep each caller waiting for seconds.
        """
        if time.monotonic() < self._away_until:
            raise Unreachable(
                "the server could not be reached a moment ago"
            )
        if self._away_until:
            self._away_until = time.monotonic() + CONNECT_SECONDS
        try:
            connection = connect(self._url, only_reads=only_reads)
        except psycopg.Error as error:
            self._away_until = time.monotonic() + AWAY_SECONDS
            raise Unreachable(str(error)) from None
        self._away_until = 0.0
        return connection

    def _close_writer(self) -> None:
        self._writer.close()

    def _translated(self, error: BaseException) -> BaseException:
        if isinstance(error, Unconfirmed):
            return MaybeDone()
        return (
            Unavailable("database_unavailable")
            if is_trouble(error)
            else error
        )
