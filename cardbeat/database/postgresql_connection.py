"""Connections to PostgreSQL: psycopg's own, for statements in the SQL that all engines have in common."""

import re
import time
from collections.abc import Generator, Mapping, Sequence
from functools import lru_cache
from math import inf
from typing import Any, Final, TypeVar

import psycopg
from psycopg.abc import Params, Query
from psycopg.pq import TransactionStatus

from cardbeat.database.postgresql_errors import Overdue, Unconfirmed
from cardbeat.database.postgresql_url import parameters_of, safely_told

T = TypeVar("T")

STATEMENT_SECONDS: Final = 10.0
"""How long a statement may take: a server that is suspended keeps its connections open."""
COMMIT_SECONDS: Final = 5.0
"""How long COMMIT is waited for: it may wait for a standby, and whoever waits for it must be told something."""

_DEFAULTS: Final = {
    "application_name": "cardbeat",
    "client_encoding": "UTF8",
    "connect_timeout": "5",
    # A primary that fell back to a standby, or a standby that is listed too, is passed over.
    "target_session_attrs": "read-write",
    # A host that is gone without a word is noticed within some 15 s instead of hours.
    "keepalives_idle": "5",
    "keepalives_interval": "3",
    "keepalives_count": "3",
    "tcp_user_timeout": "15000",
}
"""What a URL may say otherwise."""

DURABLY: Final = (
    "SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') <> 'remote_apply'"
)
"""Has a transaction's COMMIT answered when it is on disk, on the standby too where there is one, whatever is set for
the role, the database or the server."""
_BEGIN: Final = (
    "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;"
    # A limit set for the role or the database would cancel a COMMIT that waits for a standby.
    " SET LOCAL statement_timeout = 0;"
    # Of a COMMIT that did not wait for the standby only a warning tells.
    " SET LOCAL client_min_messages = warning;"
    # A process that is suspended in a transaction must not keep its locks.
    " SET LOCAL idle_in_transaction_session_timeout = 10000;"
    # What is changed is found by indexes, which are in memory: to read a whole table instead takes long in a large one.
    f" SET LOCAL random_page_cost = 1; SET LOCAL jit = off; {DURABLY}"
)
TIME: Final = "SELECT CAST(extract(epoch FROM clock_timestamp()) AS float8)"
SERVER: Final = "SELECT CAST(pg_postmaster_start_time() AS text)"
"""What no other server has in common with the one at the other end: the moment of its start."""
_OURS = re.compile(r"('[^']*'|\?|(?<!:):[a-z_]+|\s+INDEXED BY \w+)")
"""What is not PostgreSQL's in a statement, and texts, in which nothing is."""
_KEEPALIVES: Final = (
    "SET tcp_keepalives_idle = 5; SET tcp_keepalives_interval = 3; SET tcp_keepalives_count = 3;"
    " SET tcp_user_timeout = 15000"
)
"""The same for the server's end: for hours it would keep a session whose host is gone, out of the few that it has."""
_ENDS_BY_ITSELF: Final = f"SELECT set_config('statement_timeout', '{0.9 * STATEMENT_SECONDS:g}s', false)"
"""So is a session kept that waits for a lock or computes, when its connection was closed meanwhile."""


class Row(tuple[Any, ...]):
    """One row of a result. Each kind of row is a subclass that knows the `places` of its columns."""

    __slots__ = ()
    places: Mapping[str, int] = {}

    def __getitem__(self, column: Any) -> Any:
        return tuple.__getitem__(self, self.places[column] if isinstance(column, str) else column)

    def keys(self) -> list[str]:
        return list(self.places)


@lru_cache(maxsize=256)
def _kind_of_row(names: tuple[str, ...]) -> type[Row]:
    return type("Row", (Row,), {"__slots__": (), "places": {name: place for place, name in enumerate(names)}})


def _row_factory(cursor: psycopg.Cursor[Any]) -> type[Row]:
    return _kind_of_row(tuple(column.name for column in cursor.description or ()))


@lru_cache(maxsize=512)
def in_its_own_sql(sql: str) -> tuple[str, tuple[str, ...]]:
    """A statement with its values as `$1` and so on, and their names if they have any."""
    names: list[str] = []
    count = 0

    def put(found: re.Match[str]) -> str:
        nonlocal count
        (part,) = found.groups()
        if part == "?":
            count += 1
            return f"${count}"
        if part.startswith(":"):
            if part[1:] not in names:
                names.append(part[1:])
            return f"${names.index(part[1:]) + 1}"
        return part if part.startswith("'") else ""

    return _OURS.sub(put, sql), tuple(names)


class Connection(psycopg.Connection[Row]):
    """A connection that commits each statement by itself, outside `begin` and `commit`."""

    limit_seconds = STATEMENT_SECONDS
    only_reads = False
    server = ""
    """What `SERVER` gives of the one at the other end."""
    _warned = False
    _is_ending = False
    _is_at_savepoint = False
    _to_release = 0

    def execute(
        self, query: Query, params: Params | None = None, *, prepare: bool | None = None, binary: bool = False
    ) -> psycopg.Cursor[Row]:
        text, names = in_its_own_sql(str(query))
        if self.only_reads and not text.startswith(("SELECT", "WITH", "EXPLAIN")):
            raise psycopg.errors.ReadOnlySqlTransaction("this connection is for reading")
        values: Sequence[Any] | None = list(params.values() if isinstance(params, Mapping) else params or ()) or None
        if names and isinstance(params, Mapping):
            values = [params[name] for name in names]
        try:
            return super().execute(text, values, prepare=prepare, binary=binary)
        except psycopg.DataError as error:
            if error.sqlstate is not None or not values:
                raise
            # A text with a NUL, which PostgreSQL does not take. No text that is stored has one, so it finds nothing.
            return super().execute(text, list(map(without_nul, values)), prepare=prepare, binary=binary)

    def wait(self, gen: Generator[Any, Any, T], *args: Any, **options: Any) -> T:
        return super().wait(_limited(gen, time.monotonic() + self.limit_seconds), *args, **options)

    def run_script(self, script: str) -> None:
        """Run statements of PostgreSQL's own SQL, however long they take."""
        self.limit_seconds = inf
        try:
            super().execute(script)
        finally:
            self.limit_seconds = STATEMENT_SECONDS

    def begin(self, lock_seconds: float) -> float:
        """The server's Unix time, which comes with the same answer. A lock is waited for no longer than this."""
        answers = super().execute(f"{_BEGIN}; {_lock_timeout(lock_seconds)}; SAVEPOINT job; {TIME}")
        self._is_at_savepoint, self._to_release = True, 0
        while answers.nextset():
            pass
        ((now,),) = answers.fetchall()
        return float(now)

    def set_savepoint(self) -> None:
        """A savepoint `job`. The first one was set by `begin`, since each question to the server takes its time."""
        if not self._is_at_savepoint:
            super().execute(f"{'RELEASE job; ' * self._to_release}SAVEPOINT job")
        self._is_at_savepoint, self._to_release = False, 0

    def undo(self, lock_seconds: float) -> None:
        """Go back to the last savepoint. From here on a lock is waited for no longer than this."""
        super().execute(f"ROLLBACK TO job; {_lock_timeout(lock_seconds)}")

    def release_savepoint(self) -> None:
        """Let go of the last one, with the next question or by the commit."""
        self._to_release += 1

    def commit_in_time(self, seconds: float | None = None) -> None:
        """Commit what was begun, within `COMMIT_SECONDS` or as many as are given.

        Raises `Unconfirmed` unless the server says that it is kept.

        Where it says nothing in time, the connection `is_waiting`: to cut it, or to cancel the COMMIT, would have the
        server report as kept what no standby has.
        """
        self._warned, self.limit_seconds = False, COMMIT_SECONDS if seconds is None else seconds
        try:
            done = self.execute("COMMIT").statusmessage
        except Overdue:
            raise Unconfirmed(f"a commit was not confirmed within {self.limit_seconds:g} s") from None
        except psycopg.Error as error:
            raise Unconfirmed(f"a commit was not confirmed: {error}") from None
        finally:
            self.limit_seconds = STATEMENT_SECONDS
        if self._warned or done != "COMMIT":
            raise Unconfirmed(f"a commit was answered by {done} and the warning: {self._warned or 'none'}")

    def note(self, diagnostic: psycopg.errors.Diagnostic) -> None:
        """Take in a notice of the server: that a COMMIT did not wait for the standby comes as a warning.

        To a connection that is idle, its last word before it ends it comes so too: as a warning, where it crashed.
        """
        self._warned |= diagnostic.severity_nonlocalized == "WARNING"
        self._is_ending |= diagnostic.severity_nonlocalized in ("FATAL", "PANIC")

    def is_idle(self) -> bool:
        """Whether the next statement can be sent, as far as is known without asking the server."""
        self._warned = False
        try:
            # The server's last word, or the end of the connection, may wait here to be read.
            self.pgconn.consume_input()
            self.pgconn.is_busy()
        except psycopg.Error:
            return False
        return self.pgconn.transaction_status == TransactionStatus.IDLE and not (self._is_ending or self._warned)

    def is_waiting(self) -> bool:
        """Whether the answer to a statement is still to come. One that has come is dropped."""
        if self.closed or self.pgconn.transaction_status != TransactionStatus.ACTIVE:
            return False
        try:
            self.pgconn.consume_input()
            while not self.pgconn.is_busy():
                if self.pgconn.get_result() is None:
                    return False
        except psycopg.Error:
            return False
        return True


def connect(url: str, *, only_reads: bool = False) -> Connection:
    """Raises `psycopg.Error`, whose text holds no password."""
    connection = _connected(url)
    try:
        connection.execute(_KEEPALIVES)
        if only_reads:
            connection.execute(_ENDS_BY_ITSELF)
        ((connection.server,),) = connection.execute(SERVER)
    except BaseException:
        connection.close()
        raise
    connection.only_reads = only_reads
    connection.add_notice_handler(connection.note)
    return connection


def _connected(url: str) -> Connection:
    given = parameters_of(url)
    options: dict[str, Any] = {name: value for name, value in _DEFAULTS.items() if name not in given}
    try:
        return Connection.connect(
            url,
            autocommit=True,
            # A pool between here and the server may give each transaction another session.
            prepare_threshold=None,
            row_factory=_row_factory,
            cursor_factory=psycopg.RawCursor,
            **options,
        )
    except (psycopg.Error, ValueError) as error:
        # A host name that is none is a `UnicodeError`.
        raise safely_told(error, url) from None


def _lock_timeout(seconds: float) -> str:
    return f"SET LOCAL lock_timeout = '{seconds:g}s'"


def roll_back(connection: Connection) -> None:
    """Undo the transaction that is open, as far as the server hears of it; else it undoes it by itself."""
    try:
        connection.execute("ROLLBACK")
    except psycopg.Error:
        connection.close()


def without_nul(value: Any) -> Any:
    """A value that PostgreSQL takes: its texts hold no NUL."""
    return value.replace("\0", "\ufffd") if isinstance(value, str) else value


def _limited(steps: Generator[Any, Any, T], ends_at: float) -> Generator[Any, Any, T]:
    """The steps of the driver, which it is asked for again and again while it waits. Raises `Overdue` in between."""
    try:
        wanted = next(steps)
        while True:
            ready = yield wanted
            if not ready and time.monotonic() >= ends_at:
                raise Overdue("the server does not answer")
            wanted = steps.send(ready)
    except StopIteration as end:
        result: T = end.value
        return result
