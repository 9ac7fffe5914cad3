"""PostgreSQL, for several processes on several hosts: one connection that writes, others that read.

A write succeeds only if the server has confirmed its COMMIT. Without an answer in time its caller
gets `MaybeDone`, and the connection is left waiting: to cut it would keep what no standby has.

Servers lock rows of `checks` in the same order. Two writes in one transaction could lock them in
the opposite order to another server's, so each transaction is one call.
"""

import contextlib
import time
from pathlib import Path
from typing import Any

import psycopg

from cardbeat.database.database import Database, Write, by_work, make_together
from cardbeat.database.postgresql.connection import (
    COMMIT_SECONDS,
    Connection,
    LockNotAvailable,
    Unconfirmed,
    Unreachable,
    connect,
    is_trouble,
    may_be_repeated,
    start_up_errors,
)
from cardbeat.database.postgresql.lease import RowLease
from cardbeat.database.postgresql.schema import bring_up_to_date
from cardbeat.errors import MaybeDone, Unavailable
from cardbeat.host.disk import Reserve
from cardbeat.host.ownership import prepare_folder
from cardbeat.host.staging import remove_left_behind

PAUSES_SECONDS = (0.005, 0.02, 0.1, None)
"""Pauses before repeating a transaction that the server undid because of others."""
AWAY_SECONDS = 1.0
"""Pause between two attempts to reach the server."""
CONNECT_SECONDS = 6.0
"""Longer than an attempt to reach it takes."""
SLOW_SECONDS = 1.0
"""An answer that took longer does not tell the time."""
_WORKS = "SELECT 1 FROM pg_stat_activity WHERE pid = ? AND coalesce(state, '') NOT LIKE 'idle%'"
"""Whether a process of the server runs a statement. Its state is NULL if the role must not know.

Another server may have a process of the same number: then the commit's connection must end first.
"""


class PostgresqlDatabase(Database):
    """The database that a URL names, as `open_database` has it. `folder` is that of the cards."""

    row_lock = "FOR NO KEY UPDATE"

    def __init__(
        self,
        folder: Path,
        url: str,
        *,
        stores_cards: bool = True,
        commit_seconds: float = COMMIT_SECONDS,
    ) -> None:
        if stores_cards:
            prepare_folder(folder)
        # From a restore that was killed.
        remove_left_behind(folder)
        self._url = url
        self._commit_seconds = commit_seconds
        # Read and written by any thread; each value is replaced as a whole.
        self._away_until = 0.0
        self._ahead = 0.0
        self._waiting: Connection | None = None
        """The connection that waits for the answer to its COMMIT, which did not come in time."""
        self.fence: RowLease = RowLease(self)
        with start_up_errors(), contextlib.ExitStack() as undo:
            self._writer = connect(url)
            undo.callback(self._writer.close)
            bring_up_to_date(self._writer)
            self._set_clock()
            self._writer.roll_back()
            undo.pop_all()
        super().__init__(Reserve(folder))

    def clock(self) -> float:
        return time.monotonic() + self._ahead

    def create(self, work: Any) -> Any:
        # It takes no room on the disk of the data folder.
        return self.write(work)

    def lease(self) -> RowLease:
        return self.fence

    def _set_clock(self) -> None:
        """Begin a transaction, and take the server's clock: all machines have the same time."""
        asked_at = time.monotonic()
        now = self._writer.begin()
        answered_at = time.monotonic()
        if not self._ahead or answered_at - asked_at < SLOW_SECONDS:
            self._ahead = now - (asked_at + answered_at) / 2

    def _parts(self, group: list[Write[Any]]) -> list[list[Write[Any]]]:
        return by_work(group)

    def _commit(self, group: list[Write[Any]]) -> None:
        with self._errors("write"):
            try:
                return self._transact(group)
            except Exception as error:
                # A row that stays locked concerns one write, as an error of the work does.
                if is_trouble(error) and not isinstance(
                    error, LockNotAvailable
                ):
                    raise
                if len(group) == 1:
                    group[0].error = self._translated(error)
                    return None
        for write in group:
            try:
                self._commit([write])
            except Unavailable as error:
                write.error = error
        return None

    def _transact(self, writes: list[Write[Any]]) -> None:
        """Make writes in one transaction, again if the server undid it because of others."""
        for pause_seconds in PAUSES_SECONDS:
            self._use_writer()
            try:
                self._set_clock()
                make_together(self._writer, writes)
                return self._writer.commit(self._commit_seconds)
            except Unconfirmed:
                if self._writer.is_waiting():
                    self._waiting = self._writer
                raise
            except BaseException as error:
                self._writer.roll_back()
                if not may_be_repeated(error):
                    raise
                # It may be a server that was the primary a moment ago.
                self._writer.close()
                if pause_seconds is None:
                    raise
            time.sleep(pause_seconds)
        return None

    def _use_writer(self) -> None:
        """Have a connection that is ready for a transaction. Raises `Unreachable`."""
        if self._waiting is not None:
            if self._waiting.is_waiting():
                # All others would wait behind it.
                self._writer = self._connect_elsewhere(self._waiting)
            self._waiting.close()
            self._waiting = None
        if not self._writer.is_idle():
            self._writer.close()
            self._writer = self._connect()

    def _connect_elsewhere(self, waiting: Connection) -> Connection:
        """Connect to another server, in case the one that does not answer hangs and was replaced.

        Or to the same one if it is done with that commit: a proxy can lose an answer.
        """
        connection = self._connect()
        if connection.execute(_WORKS, (waiting.process,)).fetchone() is None:
            return connection
        connection.close()
        self._away_until = time.monotonic() + AWAY_SECONDS
        raise Unreachable("a commit waits for a standby")

    def _connect_reader(self) -> Connection:
        return self._connect(only_reads=True)

    def _connect(self, *, only_reads: bool = False) -> Connection:
        """A new connection. While the server is away, one caller tries every second.

        A host that does not answer at all would keep each caller waiting for seconds.
        """
        if time.monotonic() < self._away_until:
            raise Unreachable("the server could not be reached a moment ago")
        if self._away_until:
            self._away_until = time.monotonic() + CONNECT_SECONDS
        try:
            connection = connect(self._url, only_reads=only_reads)
        except psycopg.Error as error:
            self._away_until = time.monotonic() + AWAY_SECONDS
            raise Unreachable(str(error)) from None
        self._away_until = 0.0
        return connection

    def _is_usable(self, connection: Connection) -> bool:
        if connection.is_idle():
            return True
        connection.close()
        return False

    def _close_writer(self) -> None:
        self._writer.close()
        if self._waiting is not None:
            self._waiting.close()

    def _translated(self, error: Exception) -> Exception:
        if isinstance(error, Unconfirmed):
            return MaybeDone()
        return (
            Unavailable("database_unavailable") if is_trouble(error) else error
        )
