"""PostgreSQL, for several processes on several hosts: one connection that writes, others that read.

A write succeeds only if the server has confirmed its COMMIT. Without an answer the caller gets `MaybeDone`.
"""

import contextlib
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import psycopg

from cardbeat.concurrency.later import Later
from cardbeat.database.postgresql.connection import TABLES, TIME, Connection, connect, roll_back
from cardbeat.database.postgresql.errors import (
    LockNotAvailable,
    Unconfirmed,
    in_one_line,
    is_trouble,
    may_be_repeated,
    only_reads,
    translated,
    unavailable,
)
from cardbeat.database.postgresql.examination import require_rights
from cardbeat.database.postgresql.row_lease import RowLease
from cardbeat.database.postgresql.sampled_clock import SampledClock
from cardbeat.database.postgresql.schema import MIGRATION_LOCK, bring_up_to_date, check_server
from cardbeat.database.postgresql.server import Server, Writer
from cardbeat.database.queue import Readers, Write, WriteQueue
from cardbeat.database.schema import NUMBERED
from cardbeat.errors import StartupError
from cardbeat.host.disk import Reserve
from cardbeat.host.ownership import prepare_folder
from cardbeat.host.staging import remove_left_behind
from cardbeat.log import Seldom

if TYPE_CHECKING:
    from cardbeat.database.protocols import Transaction

log = logging.getLogger(__name__)

T = TypeVar("T")

PAUSES_SECONDS: Final = (0.005, 0.02, 0.1)
"""Pauses before repeating a transaction that the server undid because of others, so that those can finish."""
LOCK_SECONDS: Final = 5.0
"""Longest wait for a row that another session keeps locked. The other writes of the transaction wait too."""
NEXT_LOCK_SECONDS: Final = 0.25
"""The same during `CAUTIOUS_SECONDS` after a row was found locked, halved for each such row in a transaction."""
LEAST_LOCK_SECONDS: Final = 0.01
CAUTIOUS_SECONDS: Final = 60.0
GIVE_UP_SECONDS: Final = 8.0
"""How long a transaction goes on after locked rows, before it fails as a whole: the documented `curl` waits for 10."""


class PostgresqlDatabase(WriteQueue[Connection]):
    """The database that a URL names, as `open_database` has it. `folder` is that of the stored cards."""

    # All servers lock the rows of one write in the same order. Two writes in one transaction could lock rows in the
    # opposite order to another server's: a deadlock, which undoes one of them. So there is one large call.
    MOST_SINGLE, AT_ONCE, TOGETHER_SECONDS = 1, (256, 256), 0

    def __init__(self, folder: Path, url: str, *, stores_cards: bool = True) -> None:
        self.reserve = Reserve(folder)
        self._told = Seldom(log)
        if stores_cards:
            prepare_folder(folder)
        # From a restore that was killed.
        remove_left_behind(folder)
        self._server = Server(url)
        with start_up_errors():
            self._writer = Writer(self._server, prepared(url))
        self._clock = SampledClock(self._ask_time)
        self.fence = RowLease(self)
        # Only the writer's thread uses `self._writer` and these, once it runs.
        self._may_repeat = False
        self._found_locked = 0
        self._cautious_until = 0.0
        self._gives_up_at = 0.0
        connect_to_read = partial(self._server.connect, only_reads=True)
        super().__init__(Readers(connect_to_read, partial(unavailable, "read", self._told), Connection.is_idle))

    def create_later(self, work: Callable[[Connection], T]) -> Later[T]:
        # It takes no room on the disk of the data folder.
        return self.write_later(work)

    def clock(self) -> float:
        return self._clock()

    def server(self) -> str:
        with self.read() as connection:
            return str(connection.execute(TABLES).fetchone())

    def lease(self) -> RowLease:
        return self.fence

    def hold(self, transaction: "Transaction", name: str, /) -> None:
        # Locks with two keys do not collide with `MIGRATION_LOCK` itself, which has one.
        transaction.execute(f"SELECT pg_advisory_xact_lock({MIGRATION_LOCK}, hashtext(?))", (name,))

    def lock(self, transaction: "Transaction", sql: str, values: Sequence[Any], /) -> None:
        transaction.execute(f"{sql} FOR NO KEY UPDATE", values)

    def lock_free(self, transaction: "Transaction", sql: str, values: Sequence[Any], /) -> list[Any]:
        return [row[0] for row in transaction.execute(f"{sql} FOR NO KEY UPDATE SKIP LOCKED", values)]

    def close(self, seconds: float | None = None) -> bool:
        if not self._finish(seconds):
            return False
        self._server.close()
        self._readers.close()
        self._writer.close()
        return True

    def _commit(self, group: list[Write[Any]]) -> bool:
        with unavailable("write", self._told):
            for pause_seconds in PAUSES_SECONDS:
                try:
                    self._try(group, may_repeat=True)
                    return True
                except psycopg.Error as error:
                    if not may_be_repeated(error):
                        raise
                time.sleep(pause_seconds)
            self._try(group, may_repeat=False)
        return True

    def _try(self, group: list[Write[Any]], *, may_repeat: bool) -> None:
        self._may_repeat = may_repeat
        try:
            self._readers.require_one()
            connection = self._writer.connected()
        except psycopg.Error:
            # A node that writes but can't read would keep the lease and send nothing. Another may need its connections.
            if not self._writer.unconfirmed:
                self._readers.drop_idle()
                self._writer.connection.close()
            raise
        for write in group:
            write.error = None
        self._found_locked = 0
        self._gives_up_at = time.monotonic() + GIVE_UP_SECONDS
        try:
            self._clock.sample(partial(connection.begin, self._lock_seconds()))
            self._make(connection, group)
            connection.commit_in_time()
        except Unconfirmed:
            if connection.is_waiting():
                self._writer.unconfirmed = connection
            raise
        except BaseException as error:
            roll_back(connection)
            if only_reads(error):
                connection.close()
            raise

    def _ask_time(self) -> float:
        ((now,),) = self._writer.connection.execute(TIME).fetchall()
        return float(now)

    def _translated(self, error: Exception) -> Exception:
        if isinstance(error, LockNotAvailable):
            now = time.monotonic()
            is_first = now >= self._cautious_until
            self._found_locked += 1
            self._cautious_until = now + CAUTIOUS_SECONDS
            # Only the write that needs this row fails, unless there are many of them.
            if now < self._gives_up_at:
                if is_first:
                    log.error("the database can't write: %s", in_one_line(error))
                return translated(error)
        # The other writes of the group would fail too, or the whole group may be made again.
        if is_trouble(error) or (self._may_repeat and may_be_repeated(error)):
            raise error
        return translated(error)

    def _set_savepoint(self, connection: Connection) -> None:
        connection.set_savepoint()

    def _undo(self, connection: Connection) -> None:
        connection.undo(self._lock_seconds())

    def _lock_seconds(self) -> float:
        if time.monotonic() >= self._cautious_until:
            return LOCK_SECONDS
        return max(LEAST_LOCK_SECONDS, NEXT_LOCK_SECONDS * 0.5**self._found_locked)

    def _release_savepoint(self, connection: Connection) -> None:
        connection.to_release += 1


def prepared(url: str) -> Connection:
    """A connection to a server that can be used, with tables of the newest version. Raises `StartupError`."""
    connection = connect(url)
    try:
        check_server(connection)
        require_rights(connection)
        bring_up_to_date(connection)
        _pass_last_rows(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _pass_last_rows(connection: Connection) -> None:
    """Let new rows have the highest `seq`: logical replication copies no sequences. Not every role may see them."""
    each = (f"SELECT pg_get_serial_sequence('{it}', 'seq') AS name, max(seq) AS last FROM {it}" for it in NUMBERED)
    behind = f"FROM ({' UNION ALL '.join(each)}) AS numbered WHERE CASE WHEN has_sequence_privilege(name, 'SELECT')"
    behind += " THEN last > coalesce(pg_sequence_last_value(name), 0) END"
    if found := connection.execute(f"SELECT name {behind}").fetchall():
        # The COMMIT need not wait for a standby, which has it before the first row that follows.
        start = "BEGIN; SET LOCAL lock_timeout = 5000; SET LOCAL synchronous_commit = local"
        lock = f"{start}; LOCK TABLE {', '.join(NUMBERED)} IN EXCLUSIVE MODE"
        connection.run_script(f"{lock}; SELECT setval(name, greatest(last, nextval(name))) {behind}; COMMIT")
        log.warning("set sequences that were behind their tables: %s", ", ".join(name for (name,) in found))


@contextlib.contextmanager
def looking(url: str) -> Iterator[Connection]:
    """As `open_to_look`."""
    with start_up_errors(), contextlib.closing(connect(url, only_reads=True)) as connection:
        check_server(connection)
        yield connection


@contextlib.contextmanager
def start_up_errors() -> Iterator[None]:
    try:
        yield
    except psycopg.Error as error:
        raise StartupError(f"can't use the PostgreSQL database: {in_one_line(error)}") from None
