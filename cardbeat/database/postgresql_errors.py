"""PostgreSQL's errors, and what is done about them. Codes are SQLSTATE, from the appendix of PostgreSQL's manual."""

import contextlib
import logging
from collections.abc import Iterator

import psycopg

from cardbeat.database.queue import database_unavailable

log = logging.getLogger(__name__)

_REPEATABLE = {"40001", "40P01", "23503"}
"""Serialization failure, deadlock, and a foreign key to a row that another transaction has just deleted."""
_ONLY_READS = {"25006", "0A000"}
"""A server that only reads. One in recovery refuses even to begin a transaction that writes, by the second code."""
_TIMED_OUT = {"25P03", "25P04"}
"""A session that was ended because it was idle in its transaction, or that took too long."""
_TROUBLE_CODES = {*_ONLY_READS, *_TIMED_OUT, "42501", "55P03", "57014"}
"""A right that was taken from the role, a row that somebody else holds for too long, and a statement that somebody
cancelled."""
_TROUBLE_CLASSES = {"08", "40", "53", "57", "58", "F0", "XX"}
"""The connection, transactions undone for others' sake, lack of room, a server that stops, its disk, its defects."""


LockNotAvailable = psycopg.errors.LockNotAvailable


class Overdue(psycopg.OperationalError):
    """The server did not answer in time."""


class Unconfirmed(psycopg.OperationalError):
    """COMMIT was sent, and nothing tells for certain whether it was done."""


class Unreachable(psycopg.OperationalError):
    """There is no connection, which is in the log; to try again at once would only keep everybody waiting."""


def is_trouble(error: Exception) -> bool:
    """Whether it tells of the server or of the way to it, not of the statement."""
    if not isinstance(error, psycopg.Error):
        return False
    code = error.sqlstate
    if code is None:
        return isinstance(error, psycopg.OperationalError)
    return code in _TROUBLE_CODES or code[:2] in _TROUBLE_CLASSES


def may_be_repeated(error: Exception) -> bool:
    """Whether the same transaction may well succeed if it is made again: it was undone, and that is certain."""
    if isinstance(error, Overdue | Unconfirmed | Unreachable) or not isinstance(error, psycopg.Error):
        return False
    # Without a code the connection was lost, and a server that only reads was the primary until a moment ago.
    return error.sqlstate in _REPEATABLE or only_reads(error) or is_lost(error)


def only_reads(error: BaseException) -> bool:
    """Whether the server said that it takes no writes: another one may."""
    return isinstance(error, psycopg.Error) and error.sqlstate in _ONLY_READS


def is_lost(error: psycopg.Error) -> bool:
    """Whether the connection has ended with it."""
    if error.sqlstate in _TIMED_OUT:
        return True
    return isinstance(error, psycopg.OperationalError) and (error.sqlstate or "08")[:2] in ("08", "57")


def translated(error: Exception) -> Exception:
    """Trouble with the server as a refusal; any other error as it is."""
    return database_unavailable() if is_trouble(error) else error


@contextlib.contextmanager
def unavailable(deed: str) -> Iterator[None]:
    """Translate PostgreSQL's errors, and log them: `deed` is what the database can't do."""
    try:
        yield
    except Unreachable:
        raise database_unavailable() from None
    except psycopg.Error as error:
        log.error("the database can't %s: %s", deed, in_one_line(error))
        raise translated(error) from error


def in_one_line(error: Exception) -> str:
    """What the server or its library say; of connecting, `connect` has removed the password from it."""
    return " ".join(str(error).split())
