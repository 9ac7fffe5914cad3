"""Connections to PostgreSQL: those of psycopg, for the SQL that both engines understand.

Its errors are sorted by what can be done. Their codes are SQLSTATE, listed in an appendix of
PostgreSQL's manual.
"""

import contextlib
import re
import time
from collections.abc import (
    Callable,
    Generator,
    Iterator,
    Mapping,
    Sequence,
)
from functools import lru_cache
from math import inf
from typing import Any, TypeVar

import psycopg
from psycopg.abc import Params, Query
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus

from cardbeat.errors import StartupError

T = TypeVar("T")

STATEMENT_SECONDS = 10.0
"""Longest statement. A server that is suspended keeps its connections open and does not answer."""
COMMIT_SECONDS = 5.0
"""Longest wait for a COMMIT. A standby may delay it without limit; the caller needs an answer."""
_DEFAULTS = {
    "application_name": "cardbeat",
    "client_encoding": "UTF8",
    "connect_timeout": "5",
    # Of several hosts, the one that takes writes.
    "target_session_attrs": "read-write",
}
"""Parameters that a URL may set otherwise."""
_SESSION = (
    # So the server ends the sessions of a silent host, of the few that it has.
    "SET tcp_keepalives_idle = 5; SET tcp_keepalives_interval = 3; SET tcp_keepalives_count = 3;"
    " SET tcp_user_timeout = 15000;"
    # Indexes are in memory. It takes 0.4 s to compile a short statement that looks costly.
    " SET random_page_cost = 1; SET jit = off;"
)
_READER = (
    # Less than `STATEMENT_SECONDS`: the server would keep a session that computes after its
    # connection was closed.
    "SET statement_timeout = '9s'; SET default_transaction_read_only = on"
)
_BEGIN = (
    "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;"
    # A limit that is set for the role or the database would cancel a COMMIT that waits.
    " SET LOCAL statement_timeout = 0;"
    # A COMMIT that did not wait for the standby says so in a warning only.
    " SET LOCAL client_min_messages = warning;"
    # A process that is suspended in a transaction must not keep its locks for longer.
    " SET LOCAL idle_in_transaction_session_timeout = '10s';"
    # Longest wait for a row that another session keeps locked. The other writes wait too.
    " SET LOCAL lock_timeout = '1s';"
    # COMMIT returns when the transaction is on disk, also on a synchronous standby, even if the
    # role, the database or the server is set otherwise.
    " SELECT set_config('synchronous_commit', 'on', true)"
    " WHERE current_setting('synchronous_commit') <> 'remote_apply';"
    " SELECT CAST(extract(epoch FROM clock_timestamp()) AS float8), pg_backend_pid()"
)
WORKS = (
    # A process of another server may have the same number, so others' are left out.
    "SELECT 1 FROM pg_stat_activity WHERE pid = ? AND state = 'active'"
    " AND usename = current_user AND backend_type = 'client backend'"
)
"""Has a row if a process of this server, which has had a transaction, runs a statement."""
_VALUE = re.compile(r"\?|(?<!:):([a-z_]+)")
"""The place of a value."""


UNDONE = {"40001", "40P01", "23503", "25006", "0A000", "25P03", "25P04"}
"""The transaction may succeed if it is made again: serialization failure, deadlock, a foreign key
to a row that was just deleted, a server that takes no writes (two codes) and a session that the
server ended because its transaction took too long (two codes)."""
MISTAKES = ("21", "22", "23", "42")
"""Classes of errors of a statement itself."""
LOST = ("42501", "42P01")
"""A right or a table that the role has no more."""


class Unreachable(psycopg.OperationalError):
    """The server does not answer, or did not a moment ago: to try again would keep all waiting."""

    sqlstate = "58000"


class Unconfirmed(psycopg.OperationalError):
    """COMMIT was sent, and it is unknown whether it was done."""


class NamedRow(tuple[Any, ...]):
    """One row, with the names of its columns."""

    names: list[str]

    def __getitem__(self, column: Any) -> Any:
        if isinstance(column, str):
            column = self.names.index(column)
        return tuple.__getitem__(self, column)

    def keys(self) -> list[str]:
        return self.names


def _row_factory(
    cursor: psycopg.Cursor[Any],
) -> Callable[[Sequence[Any]], NamedRow]:
    names = [column.name for column in cursor.description or ()]

    def make(values: Sequence[Any]) -> NamedRow:
        row = NamedRow(values)
        row.names = names
        return row

    return make


@lru_cache(maxsize=512)
def in_its_own_sql(sql: str) -> tuple[str, list[str]]:
    """A statement with its values as `$1`, `$2` and so on, and the names of these; `?` has none.

    Example: "a = :x AND b = :y" becomes "a = $1 AND b = $2" and ["x", "y"]. The driver could do it
    too, but takes milliseconds for hundreds of values.
    """
    names: list[str] = []

    def put(found: re.Match[str]) -> str:
        names.append(found[1])
        return f"${len(names)}"

    return _VALUE.sub(put, sql), names


class Connection(psycopg.Connection[NamedRow]):
    """A connection that commits each statement by itself, except between `begin` and `commit`."""

    limit_seconds = STATEMENT_SECONDS
    process = 0
    """The server's process that has the transaction."""
    _is_warned = False

    def execute(
        self, query: Query, params: Params | None = None, **options: Any
    ) -> psycopg.Cursor[NamedRow]:
        """Run a statement with values, in our SQL, or any number without, in PostgreSQL's own."""
        if not params:
            return super().execute(query, **options)
        text, names = in_its_own_sql(str(query))
        values = (
            [params[name] for name in names]
            if isinstance(params, Mapping)
            else params
        )
        return super().execute(
            text, list(map(without_nul, values)), **options
        )

    def wait(
        self, gen: Generator[Any, Any, T], *args: Any, **options: Any
    ) -> T:
        limited = _limited(gen, time.monotonic() + self.limit_seconds)
        return super().wait(limited, *args, **options)

    def begin(self) -> float:
        """Begin a transaction; returns the server's Unix time."""
        answers = self.execute(_BEGIN)
        while answers.nextset():
            pass
        ((now, self.process),) = answers.fetchall()
        return float(now)

    def commit(self, seconds: float = COMMIT_SECONDS) -> None:
        """Commit the transaction. Raises `Unconfirmed` unless the server confirms it in time.

        Without an answer do not close the connection while its process works: without its client,
        or if the COMMIT is cancelled, the server keeps what no standby has.
        """
        self._is_warned = False
        self.limit_seconds = seconds
        try:
            done = self.execute("COMMIT").statusmessage
        except psycopg.Error as error:
            raise Unconfirmed(
                f"a commit was not confirmed: {error}"
            ) from None
        finally:
            self.limit_seconds = STATEMENT_SECONDS
        if self._is_warned or done != "COMMIT":
            raise Unconfirmed(
                f"a commit was answered by {done}, with a warning or undone"
            )

    def roll_back(self) -> None:
        """Undo the transaction. A server that can't be told does so when the connection ends."""
        try:
            self.execute("ROLLBACK")
        except psycopg.Error:
            self.close()

    @contextlib.contextmanager
    def long_transaction(
        self, commit_seconds: float = COMMIT_SECONDS
    ) -> Iterator[None]:
        """The block in one transaction, without the limits of serving. Undone if it raises."""
        self.limit_seconds = inf
        self.begin()
        try:
            self.execute(
                "SET LOCAL lock_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0"
            )
            yield
        except BaseException:
            self.roll_back()
            raise
        self.commit(commit_seconds)

    def note(self, _message: object) -> None:
        """Note a message: a warning says that a COMMIT did not wait for the standby.

        An idle connection gets the server's last message, before its end, this way too.
        """
        self._is_warned = True

    def is_idle(self) -> bool:
        """Whether the next statement can be sent, without asking the server."""
        self._is_warned = False
        try:
            # The server's last message, or the end of the connection, may not have been read yet.
            self.pgconn.consume_input()
            self.pgconn.is_busy()
        except psycopg.Error:
            return False
        return (
            self.pgconn.transaction_status == TransactionStatus.IDLE
            and not self._is_warned
        )


def is_trouble(error: BaseException) -> bool:
    """Whether the cause is the server or the network, not the statement."""
    code = _code(error)
    return bool(code) and (code in LOST or not code.startswith(MISTAKES))


def may_be_repeated(error: BaseException) -> bool:
    """Whether the transaction was certainly undone, and may succeed if it is made again."""
    code = _code(error)
    return code in UNDONE or code.startswith(("08", "57"))


def _code(error: BaseException) -> str:
    """The SQLSTATE of an error. The driver's own have none: the connection has ended, 08000."""
    code = getattr(error, "sqlstate", None)
    if code is None and isinstance(error, psycopg.OperationalError):
        return "08000"
    return code or ""


@contextlib.contextmanager
def start_up_errors() -> Iterator[None]:
    try:
        yield
    except psycopg.Error as error:
        found = " ".join(str(error).split())
        raise StartupError(
            f"can't use the PostgreSQL database: {found}"
        ) from None


def connect(url: str, *, only_reads: bool = False) -> Connection:
    """Connect to the server of a URL. Raises `psycopg.Error`, whose text holds no password."""
    try:
        options: Any = _DEFAULTS | conninfo_to_dict(url)
        connection = Connection.connect(
            **options,
            autocommit=True,
            # A connection pooler may give each transaction another session.
            prepare_threshold=None,
            row_factory=_row_factory,
            cursor_factory=psycopg.RawCursor,
        )
    except (psycopg.ProgrammingError, ValueError):
        # An impossible host name is a `UnicodeError`. The driver's text holds the URL.
        raise psycopg.ProgrammingError(
            "its URL can't be read; it must be such as"
            " postgresql://user:password@host:5432/name?parameter=value"
        ) from None
    try:
        encoding = connection.info.parameter_status("server_encoding")
        if encoding != "UTF8":
            raise psycopg.OperationalError(
                f"it has the encoding {encoding}; create one with the encoding UTF8"
            )
        connection.execute(_SESSION + _READER if only_reads else _SESSION)
    except BaseException:
        connection.close()
        raise
    connection.add_notice_handler(connection.note)
    return connection


def without_nul(value: Any) -> Any:
    """The value, with each NUL in a text replaced by U+FFFD: PostgreSQL takes no NUL."""
    return (
        value.replace("\0", "\ufffd") if isinstance(value, str) else value
    )


def _limited(
    steps: Generator[Any, Any, T], ends_at: float
) -> Generator[Any, Any, T]:
    """The driver's own steps while it waits. Raises `Unreachable` after this monotonic time."""
    try:
        wanted = next(steps)
        while True:
            ready = yield wanted
            if not ready and time.monotonic() >= ends_at:
                raise Unreachable("the server does not answer")
            wanted = steps.send(ready)
    except StopIteration as end:
        result: T = end.value
        return result
