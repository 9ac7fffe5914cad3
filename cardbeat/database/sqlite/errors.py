"""SQLite's errors, and the refusals that callers get for them."""

import contextlib
import logging
import sqlite3
from collections.abc import Iterator

from cardbeat.database.queue import database_unavailable

log = logging.getLogger(__name__)

_DISK_TROUBLE = {
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_NOTADB,
}


def as_sqlite(message: str, code: int) -> sqlite3.OperationalError:
    """An error as SQLite's own with that code, for trouble that SQLite does not notice."""
    error = sqlite3.OperationalError(message)
    error.sqlite_errorcode = code
    return error


def translated(error: Exception) -> Exception:
    """A refusal for SQLite's trouble with the disk or with memory; any other error unchanged."""
    if isinstance(error, MemoryError) or getattr(error, "sqlite_errorcode", 0) & 0xFF in _DISK_TROUBLE:
        return database_unavailable()
    return error


@contextlib.contextmanager
def unavailable(deed: str) -> Iterator[None]:
    """Translate SQLite's errors and log them. `deed` names what the database can't do."""
    try:
        yield
    except (sqlite3.DatabaseError, MemoryError) as error:
        # A `MemoryError` has no text.
        log.error("the database can't %s: %s", deed, error or "out of memory")
        raise translated(error) from error
