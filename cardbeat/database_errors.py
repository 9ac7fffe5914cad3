"""SQLite's errors, and what callers are told of them."""

import sqlite3
from typing import Final

from cardbeat.errors import Unavailable

RETRY_AFTER_SECONDS: Final = 5

_DISK_TROUBLE = {
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_NOTADB,
    sqlite3.SQLITE_NOMEM,
}


def as_sqlite(message: str, code: int) -> sqlite3.OperationalError:
    """Trouble that SQLite does not see, to be treated as its own of that code."""
    error = sqlite3.OperationalError(message)
    error.sqlite_errorcode = code
    return error


def translated(error: Exception) -> Exception:
    """SQLite's trouble with its disk as a refusal; any other error as it is."""
    if getattr(error, "sqlite_errorcode", 0) & 0xFF in _DISK_TROUBLE:
        sentence = "The database can't be used now; try again soon."
        return Unavailable("database_unavailable", sentence, RETRY_AFTER_SECONDS)
    return error
