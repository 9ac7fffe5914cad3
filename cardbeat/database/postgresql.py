"""PostgreSQL, for several processes on several hosts: one connection that writes, others that read.

What is told of a write is what the server has said of its COMMIT. Where it said nothing, the caller is told that the
database can't be used, and whether it was written is unknown.
"""

import contextlib
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import psycopg

from cardbeat.database.postgresql_connection import SERVER, TIME, Connection, connect, roll_back
from cardbeat.database.postgresql_errors import (
    LockNotAvailable,
    Unconfirmed,
    in_one_line,
    is_trouble,
    may_be_repeated,
    only_reads,
    translated,
    unavailable,
)
from cardbeat.database.postgresql_examination import require_rights
from cardbeat.database.postgresql_schema import MIGRATION_LOCK, bring_up_to_date, check_server
from cardbeat.database.postgresql_server import Server, Writer
from cardbeat.database.queue import Readers, Write, WriteQueue
from cardbeat.database.row_lease import RowLease
from cardbeat.database.sampled_clock import SampledClock
from cardbeat.disk import Reserve
from cardbeat.errors import StartupError
from cardbeat.later import Later
from cardbeat.ownership import prepare_folder
from cardbeat.staging import remove_left_behind

if TYPE_CHECKING:
    from cardbeat.database import Transaction

log = logging.getLogger(__name__)

T = TypeVar("T")

PAUSES_SECONDS: Final = (0.005, 0.02, 0.1)
"""Before a transaction is made again that the server undid for others' sake: they must come to what they waited for."""
LOCK_SECONDS: Final = 5.0
"""How long a row is waited for that another session keeps locked. Whoever else is in that transaction waits too."""
NEXT_LOCK_SECONDS: Final = 0.25
"""The same at the begin of a transaction for `IMPATIENT_SECONDS` from then on; half as long for each row that is found
locked in it."""
LEAST_LOCK_SECONDS: Final = 0.01
GIVE_UP_SECONDS: Final = 8.0
"""How long a transaction goes on past locked rows, before it fails as a whole: `curl` lines wait for 10."""
IMPATIENT_SECONDS: Final = 60.0


class PostgresqlDatabase(WriteQueue[Connection]):
    """The database that a URL names, as `open_database` has it. `folder` is that of the stored cards."""

    def __init__(self, folder: Path, url: str, *, stores_cards: bool = True) -> None:
        self.reserve = Reserve(folder)
        if stores_cards:
            prepare_folder(folder)
        # Of a restore that was killed.
        remove_left_behind(folder)
        self._server = Server(url)
        with start_up_errors():
            self._writer = Writer(self._server, prepared(url))
        self._readers = Readers(
            partial(self._server.connect, only_reads=True), partial(unavailable, "read"), Connection.is_idle
        )
        self._clock = SampledClock(self._ask_time)
        self._lease = RowLease(self)
        # Once the writer's thread runs, `self._writer` and these are used by it alone.
        self._may_repeat = False
        self._found_locked = 0
        self._impatient_until = 0.0
        self._gives_up_at = 0.0
        super().__init__()

    def read(self) -> contextlib.AbstractContextManager[Connection]:
        return self._readers.read()

    def create_later(self, work: Callable[[Connection], T]) -> Later[T]:
        # It takes no room on the disk of the folder.
        return self.write_later(work)

    def clock(self) -> float:
        return self._clock()

    def server(self) -> str:
        with self.read() as connection:
            (row,) = connection.execute(SERVER).fetchall()
        return str(row[0])

    @property
    def fence(self) -> RowLease:
        return self._lease

    def lease(self) -> RowLease:
        return self._lease

    def hold(self, transaction: "Transaction", name: str, /) -> None:
        # The first half of the number is cardbeat's own.
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

    def _commit(self, group: list[Write[Any]]) -> None:
        with unavailable("write"):
            for pause_seconds in PAUSES_SECONDS:
                try:
                    self._try(group, may_repeat=True)
                    return
                except psycopg.Error as error:
                    if not may_be_repeated(error):
                        raise
                time.sleep(pause_seconds)
            self._try(group, may_repeat=False)

    def _try(self, group: list[Write[Any]], *, may_repeat: bool) -> None:
        self._may_repeat = may_repeat
        connection = self._writer.connected()
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
                self._writer.keep_waiting()
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
            now, was_patient = time.monotonic(), time.monotonic() >= self._impatient_until
            self._found_locked += 1
            self._impatient_until = now + IMPATIENT_SECONDS
            # It is that row's, unless there are many of them.
            if now < self._gives_up_at:
                if was_patient:
                    log.error("the database can't write: %s", in_one_line(error))
                return translated(error)
        # Of these, the other writes of the group would fail as well, or the whole of it may be made again.
        if is_trouble(error) or (self._may_repeat and may_be_repeated(error)):
            raise error
        return translated(error)

    def _make_together(
        self, connection: Connection, work: Callable[[Connection, list[Any]], Sequence[Any]], writes: list[Write[Any]]
    ) -> None:
        # What one write locks is in an order that all servers keep. Of two in one transaction, that of another server
        # may lock the rows the other way round, and one of them is undone.
        self._ends_group |= writes[0].queue is self._queue
        super()._make_together(connection, work, writes)

    def _set_savepoint(self, connection: Connection) -> None:
        connection.set_savepoint()

    def _undo(self, connection: Connection) -> None:
        connection.undo(self._lock_seconds())

    def _lock_seconds(self) -> float:
        if time.monotonic() >= self._impatient_until:
            return LOCK_SECONDS
        return max(LEAST_LOCK_SECONDS, NEXT_LOCK_SECONDS * 0.5**self._found_locked)

    def _release_savepoint(self, connection: Connection) -> None:
        connection.release_savepoint()

    def _after_commit(self) -> None:
        """Nothing waits until then."""


def prepared(url: str) -> Connection:
    """A connection to a server that is fit, to a database of the newest schema. Raises `StartupError`."""
    connection = connect(url)
    try:
        check_server(connection)
        require_rights(connection)
        bring_up_to_date(connection)
    except BaseException:
        connection.close()
        raise
    return connection


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
