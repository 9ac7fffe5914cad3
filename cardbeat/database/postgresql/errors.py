"""PostgreSQL's errors, sorted by what can be done. Codes are SQLSTATE, listed in an appendix of PostgreSQL's manual."""

import contextlib
from collections.abc import Iterator

import psycopg

from cardbeat.errors import MaybeDone, Unavailable
from cardbeat.log import Seldom

_ONLY_READS = {"25006", "0A000"}
"""A server that only reads. In recovery it refuses to begin a transaction that writes, by the second code."""
_TIMED_OUT = {"25P03", "25P04"}
"""The server ended a session that was idle in its transaction, or whose transaction took too long."""
_REPEATABLE = {"40001", "40P01", "23503", *_ONLY_READS, *_TIMED_OUT}
"""Serialization failure, deadlock, and a foreign key to a row that another transaction has just deleted. A server that
only reads was the primary a moment ago."""
_LOST_CLASSES = {"08", "57"}
"""Errors that end the connection, if they are operational."""
_TROUBLE_CODES = {*_ONLY_READS, *_TIMED_OUT, "42501", "42P01", "55P03", "57014"}
"""A right or a table that the role does not have any more (its `search_path` may have changed), a row that stays locked
for too long, and a cancelled statement."""
_TROUBLE_CLASSES = {"08", "40", "53", "57", "58", "F0", "XX"}
"""The connection, a transaction undone because of others, lack of room, a server that stops, its disk, its defects."""

LockNotAvailable = psycopg.errors.LockNotAvailable


class Overdue(psycopg.OperationalError):
    """The server did not answer in time."""


class Unconfirmed(psycopg.OperationalError):
    """COMMIT was sent, and it is unknown whether it was done."""


class Unreachable(psycopg.OperationalError):
    """There is no connection. This is logged already, and to try again at once would keep all callers waiting."""


def is_trouble(error: Exception) -> bool:
    """Whether the cause is the server or the network, not the statement."""
    if not isinstance(error, psycopg.Error):
        return False
    code = error.sqlstate
    if code is None:
        return isinstance(error, psycopg.OperationalError)
    return code in _TROUBLE_CODES or code[:2] in _TROUBLE_CLASSES


def may_be_repeated(error: Exception) -> bool:
    """Whether the transaction was certainly undone, and may succeed if it is made again."""
    if isinstance(error, Overdue | Unconfirmed | Unreachable) or not isinstance(error, psycopg.Error):
        return False
    # The driver's own errors have no code: with them, too, the connection has ended.
    is_lost = isinstance(error, psycopg.OperationalError) and (error.sqlstate or "08")[:2] in _LOST_CLASSES
    return is_lost or error.sqlstate in _REPEATABLE


def only_reads(error: BaseException) -> bool:
    """Whether the server takes no writes. Another one may."""
    return isinstance(error, psycopg.Error) and error.sqlstate in _ONLY_READS


def translated(error: Exception) -> Exception:
    """A refusal for trouble with the server; any other error unchanged."""
    if isinstance(error, Unconfirmed):
        return MaybeDone()
    return Unavailable("database_unavailable") if is_trouble(error) else error


@contextlib.contextmanager
def unavailable(deed: str, told: Seldom) -> Iterator[None]:
    """Translate PostgreSQL's errors and log them by `told`. `deed` names what the database can't do."""
    try:
        yield
    except Unreachable:
        raise Unavailable("database_unavailable") from None
    except psycopg.Error as error:
        told.error(f"the database can't {deed}: {in_one_line(error)}")
        raise translated(error) from error


def in_one_line(error: Exception) -> str:
    """The text of an error. `connect` has removed the password from its own."""
    return " ".join(str(error).split())
