"""Connections to PostgreSQL: those of psycopg, for statements in the SQL that both engines understand."""

import re
import time
from collections.abc import Generator, Mapping
from functools import lru_cache
from math import inf
from typing import Any, Final, TypeVar

import psycopg
from psycopg.abc import Params, Query
from psycopg.pq import TransactionStatus

from cardbeat.database.postgresql.errors import Overdue, Unconfirmed
from cardbeat.database.postgresql.url import parameters_of, safely_told

T = TypeVar("T")

STATEMENT_SECONDS: Final = 10.0
"""Longest statement. A server that is suspended keeps its connections open and does not answer."""
COMMIT_SECONDS: Final = 5.0
"""Longest wait for a COMMIT. A standby may delay it without limit, but the caller needs an answer."""
_DEFAULTS: Final = {
    "application_name": "cardbeat",
    "connect_timeout": "5",
    # Of several hosts, the one that takes writes.
    "target_session_attrs": "read-write",
    # A host that is silent is noticed within 15 s instead of hours.
    "keepalives_idle": "5",
    "keepalives_interval": "3",
    "keepalives_count": "3",
    "tcp_user_timeout": "15000",
}
"""Parameters that a URL may set otherwise."""
DURABLY: Final = (
    "SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') <> 'remote_apply'"
)
"""Lets COMMIT return when the transaction is on disk, also on a synchronous standby, even if the role, the database or
the server is set otherwise."""
_BEGIN: Final = (
    "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;"
    # A limit that is set for the role or the database would cancel a COMMIT that waits for a standby.
    " SET LOCAL statement_timeout = 0;"
    # A COMMIT that did not wait for the standby says so in a warning only.
    " SET LOCAL client_min_messages = warning;"
    # A process that is suspended in a transaction must not keep its locks.
    " SET LOCAL idle_in_transaction_session_timeout = 10000;"
    # Indexes are in memory. To read a whole large table instead takes long.
    f" SET LOCAL random_page_cost = 1; SET LOCAL jit = off; {DURABLY}"
)
TIME: Final = "SELECT CAST(extract(epoch FROM clock_timestamp()) AS float8)"
SERVER: Final = "SELECT CAST(extract(epoch FROM pg_postmaster_start_time()) AS text)"
"""Identifies a server: no other one started at the same moment."""
TABLES: Final = f"{SERVER}, oid, CAST(to_regclass('alerts') AS oid) FROM pg_database WHERE datname = current_database()"
"""Identifies the server, its database and the table in it: a restore makes others."""
WORKS: Final = "SELECT count(*) FROM pg_stat_activity WHERE pid = ? AND coalesce(state, '') NOT LIKE 'idle%'"
"""Whether a process of the server runs a statement. Its state is NULL if this role must not know."""
_OURS = re.compile(r"'[^']*'|\?|(?<!:):[a-z_]+|\s+INDEXED BY \w+")
"""The parts of a statement that PostgreSQL writes otherwise, and quoted texts, which stay as they are."""
_SESSION: Final = (
    "SET tcp_keepalives_idle = 5; SET tcp_keepalives_interval = 3; SET tcp_keepalives_count = 3;"
    " SET tcp_user_timeout = 15000; SET random_page_cost = 1; SET jit = off"
)
"""The same for the server: it would keep the session of a host that is gone for hours, and it has few sessions. And for
reads: it takes 0.4 s to compile a short one, which looks costly where it has not counted a new table yet."""
_ENDS_BY_ITSELF: Final = f"SELECT set_config('statement_timeout', '{0.9 * STATEMENT_SECONDS:g}s', false)"
"""The server would also keep a session that waits for a lock or computes after its connection was closed."""


class NamedRow(tuple[Any, ...]):
    """One row of a result. Each set of columns has a subclass, whose `places` maps a column's name to its index."""

    __slots__ = ()
    places: Mapping[str, int] = {}

    def __getitem__(self, column: Any) -> Any:
        return tuple.__getitem__(self, self.places[column] if isinstance(column, str) else column)

    def keys(self) -> list[str]:
        return list(self.places)


@lru_cache(maxsize=256)
def _kind_of_row(names: tuple[str, ...]) -> type[NamedRow]:
    return type("NamedRow", (NamedRow,), {"__slots__": (), "places": {name: place for place, name in enumerate(names)}})


def _row_factory(cursor: psycopg.Cursor[Any]) -> type[NamedRow]:
    return _kind_of_row(tuple(column.name for column in cursor.description or ()))


@lru_cache(maxsize=512)
def in_its_own_sql(sql: str) -> tuple[str, tuple[str, ...]]:
    """A statement with its values as `$1`, `$2` and so on, and their names in this order; a `?` has none but "?"."""
    names: list[str] = []

    def put(found: re.Match[str]) -> str:
        part = found[0]
        if part.startswith("'"):
            return part
        if not part.startswith(("?", ":")):
            return ""
        if part == "?" or part[1:] not in names:
            names.append(part[1:] or part)
        return f"${len(names) if part == '?' else names.index(part[1:]) + 1}"

    return _OURS.sub(put, sql), tuple(names)


class Connection(psycopg.Connection[NamedRow]):
    """A connection that commits each statement by itself, except between `begin` and `commit_in_time`."""

    limit_seconds = STATEMENT_SECONDS
    only_reads = False
    server = ""
    """The result of `SERVER`."""
    process = 0
    """The server's process that has the transaction; behind a connection pooler each one may have another."""
    _warned = False
    _is_ending = False
    _is_at_savepoint = False
    to_release = 0
    """Savepoints to release, together with the next `set_savepoint` or by the COMMIT."""

    def execute(self, query: Query, params: Params | None = None, **options: Any) -> psycopg.Cursor[NamedRow]:
        text, names = in_its_own_sql(str(query))
        if self.only_reads and not text.startswith(("SELECT", "WITH", "EXPLAIN")):
            raise psycopg.errors.ReadOnlySqlTransaction("this connection is for reading")
        values = [params[name] for name in names] if isinstance(params, Mapping) else list(params or ())
        try:
            return super().execute(text, values or None, **options)
        except psycopg.DataError as error:
            if error.sqlstate is not None or not values:
                raise
            # PostgreSQL takes no text with a NUL. No stored text has one, so the changed text finds nothing either.
            return super().execute(text, list(map(without_nul, values)), **options)

    def wait(self, gen: Generator[Any, Any, T], *args: Any, **options: Any) -> T:
        return super().wait(_limited(gen, time.monotonic() + self.limit_seconds), *args, **options)

    def run_script(self, script: str) -> None:
        """Run statements in PostgreSQL's own SQL, without a time limit."""
        self.limit_seconds = inf
        try:
            super().execute(script)
        finally:
            self.limit_seconds = STATEMENT_SECONDS

    def begin(self, lock_seconds: float) -> float:
        """Begin a transaction, which waits for a lock at most for these seconds. Returns the server's Unix time."""
        answers = super().execute(f"{_BEGIN}; {_lock_timeout(lock_seconds)}; SAVEPOINT job; {TIME}, pg_backend_pid()")
        self._is_at_savepoint, self.to_release = True, 0
        while answers.nextset():
            pass
        ((now, self.process),) = answers.fetchall()
        return float(now)

    def set_savepoint(self) -> None:
        """Set a savepoint `job`. The first one was set by `begin`, to save a round trip to the server."""
        if not self._is_at_savepoint:
            super().execute(f"{'RELEASE job; ' * self.to_release}SAVEPOINT job")
        self._is_at_savepoint, self.to_release = False, 0

    def undo(self, lock_seconds: float) -> None:
        """Go back to the last savepoint. From here on the transaction waits for a lock at most for these seconds."""
        super().execute(f"ROLLBACK TO job; {_lock_timeout(lock_seconds)}")

    def commit_in_time(self, seconds: float | None = None) -> None:
        """Commit the transaction, within these seconds or `COMMIT_SECONDS`.

        Raises `Unconfirmed` unless the server confirms it. Without an answer in time the connection `is_waiting`. Do
        not close it then: without its client, or if the COMMIT is cancelled, the server keeps what no standby has.
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
        """Note a message of the server: a warning says that a COMMIT did not wait for the standby.

        An idle connection also gets the server's last message this way, before its end: a warning if it crashed.
        """
        self._warned |= diagnostic.severity_nonlocalized == "WARNING"
        self._is_ending |= diagnostic.severity_nonlocalized in ("FATAL", "PANIC")

    def is_idle(self) -> bool:
        """Whether the next statement can be sent, without asking the server."""
        self._warned = False
        try:
            # The server's last message, or the end of the connection, may not have been read yet.
            self.pgconn.consume_input()
            self.pgconn.is_busy()
        except psycopg.Error:
            return False
        return self.pgconn.transaction_status == TransactionStatus.IDLE and not (self._is_ending or self._warned)

    def is_waiting(self) -> bool:
        """Whether a statement has no answer yet. An answer that has come is dropped."""
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
    """Connect to the server of a URL. Raises `psycopg.Error`, whose text holds no password."""
    connection = _connected(url)
    try:
        connection.execute(_SESSION)
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
            # Also if the URL names another one: texts are UTF-8.
            client_encoding="UTF8",
            # A connection pooler may give each transaction another session.
            prepare_threshold=None,
            row_factory=_row_factory,
            cursor_factory=psycopg.RawCursor,
            **options,
        )
    except (psycopg.Error, ValueError) as error:
        # An impossible host name is a `UnicodeError`.
        raise safely_told(error, url) from None


def _lock_timeout(seconds: float) -> str:
    return f"SET LOCAL lock_timeout = '{seconds:g}s'"


def roll_back(connection: Connection) -> None:
    """Undo the open transaction. If the server can't be told, it undoes it by itself when the connection ends."""
    try:
        connection.execute("ROLLBACK")
    except psycopg.Error:
        connection.close()


def without_nul(value: Any) -> Any:
    """The value, with each NUL in a text replaced by U+FFFD: PostgreSQL takes no NUL."""
    return value.replace("\0", "\ufffd") if isinstance(value, str) else value


def _limited(steps: Generator[Any, Any, T], ends_at: float) -> Generator[Any, Any, T]:
    """The driver's own steps while it waits for the server. Raises `Overdue` after this monotonic time."""
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
