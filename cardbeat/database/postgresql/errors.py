"""PostgreSQL's errors, sorted by what can be done, and without secrets.

Codes are SQLSTATE, listed in an appendix of PostgreSQL's manual.
"""

from typing import Any, Final

import psycopg
from psycopg.conninfo import conninfo_to_dict

from cardbeat.errors import MaybeDone, Unavailable

UNDONE: Final = {"40001", "40P01", "23503", "25006", "0A000", "25P03", "25P04"}
"""The transaction may succeed if it is made again: serialization failure, deadlock, a foreign key
to a row that was just deleted, a server that takes no writes (two codes) and a session that the
server ended because its transaction took too long (two codes)."""
TROUBLE: Final = (UNDONE | {"42501", "42P01", "55P03"}) - {"23503"}
"""Also a right or a table that the role has no more, and a row that stays locked for too long."""
TROUBLE_CLASSES: Final = {"08", "40", "53", "57", "58", "F0", "XX"}
"""The connection, a transaction undone because of others, lack of room, a server that stops or
cancels a statement, its disk, its defects."""
LockNotAvailable = psycopg.errors.LockNotAvailable


class Overdue(psycopg.OperationalError):
    """The server did not answer in time."""


class Unconfirmed(psycopg.OperationalError):
    """COMMIT was sent, and it is unknown whether it was done."""


class Unreachable(psycopg.OperationalError):
    """There is no connection, and to try again at once would keep all callers waiting."""


def is_trouble(error: BaseException) -> bool:
    """Whether the cause is the server or the network, not the statement."""
    if not isinstance(error, psycopg.Error):
        return False
    code = error.sqlstate
    if code is None:
        return isinstance(error, psycopg.OperationalError)
    return code in TROUBLE or code[:2] in TROUBLE_CLASSES


def may_be_repeated(error: BaseException) -> bool:
    """Whether the transaction was certainly undone, and may succeed if it is made again."""
    if isinstance(error, Overdue | Unconfirmed | Unreachable):
        return False
    if not isinstance(error, psycopg.OperationalError):
        return isinstance(error, psycopg.Error) and error.sqlstate in UNDONE
    # The connection has ended. The driver's own errors have no code.
    code = error.sqlstate or "08"
    return code in UNDONE or code[:2] in ("08", "57")


def translated(error: Exception) -> Exception:
    """A refusal for trouble with the server; any other error unchanged."""
    if isinstance(error, Unconfirmed):
        return MaybeDone()
    return Unavailable("database_unavailable") if is_trouble(error) else error


def in_one_line(error: BaseException) -> str:
    """The text of an error. `connect` has removed the password from its own."""
    return " ".join(str(error).split())


def parameters_of(url: str) -> dict[str, Any]:
    """Name -> value. Raises `psycopg.ProgrammingError`, whose text shows no part of the URL."""
    try:
        return conninfo_to_dict(url)
    except (psycopg.Error, ValueError):
        raise psycopg.ProgrammingError(
            "its URL can't be read; it must be such as"
            " postgresql://user:password@host:5432/name?parameter=value"
        ) from None


def safely_told(error: Exception, parameters: dict[str, Any]) -> psycopg.OperationalError:
    """An error of connecting, without the passwords in the parameters of a URL."""
    text = str(error)
    for name, value in parameters.items():
        if value and "password" in name:
            text = text.replace(value, "***")
    return psycopg.OperationalError(text)
