"""The database: what the rest of the program may ask of it, and two engines, SQLite and PostgreSQL.

Begin with `database`: one class, and one thread that commits the writes of many callers together.
`open_database` opens it. `sqlite` and `postgresql` subclass it. `schema` knows the versions of the
tables, whose SQL is in the folders of the engines, and the single numbers that a restart keeps.

This folder imports only from the layers below it, such as `errors`, `jobs` and `host`. The driver
of PostgreSQL is imported only for a database that has a URL.
"""

import re
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from cardbeat.database.database import (
    Database,
    Row,
    Transaction,
    lock_checks,
    marks,
    numbers,
    set_numbers,
)
from cardbeat.database.postgresql.lease import Lease
from cardbeat.database.sqlite.database import SqliteDatabase
from cardbeat.errors import StartupError

__all__ = [
    "Database",
    "Lease",
    "Row",
    "Transaction",
    "lock_checks",
    "marks",
    "numbers",
    "set_numbers",
]

OLDEST_DRIVER = (3, 2, 11)
"""Oldest psycopg: the compiled part of older ones ignores our time limits while it waits."""


def open_database(folder: Path, url: str | None = None) -> Database:
    """The database of a data folder, made if it is missing, or the PostgreSQL one of a URL.

    With a URL the folder need not be usable.
    Raises `StartupError` for a folder or file that is not writable, damaged, someone else's or of
    another version, and for a server that can't be reached or used. No file is ever replaced.
    """
    if url is None:
        return SqliteDatabase(folder)
    require_driver()
    from cardbeat.database.postgresql.database import PostgresqlDatabase  # noqa: PLC0415

    return PostgresqlDatabase(folder, url)


@contextmanager
def open_to_look(url: str) -> Iterator[Transaction]:
    """A connection that can't write, to a PostgreSQL database in any state, also without tables.

    Raises `StartupError` if it can't be reached, and for a statement that fails.
    """
    require_driver()
    from cardbeat.database.postgresql.connection import (  # noqa: PLC0415
        connect,
        start_up_errors,
    )

    with (
        start_up_errors(),
        closing(connect(url, only_reads=True)) as connection,
    ):
        yield connection


def require_driver() -> None:
    """Raise `StartupError` without the driver of PostgreSQL, and for one that is too old."""
    oldest = ".".join(map(str, OLDEST_DRIVER))
    found = "no psycopg"
    with suppress(ImportError):
        import psycopg  # noqa: PLC0415 - only for a database that has a URL

        found = f"psycopg {psycopg.__version__}"
    if tuple(map(int, re.findall(r"\d+", found)[:3])) >= OLDEST_DRIVER:
        return
    raise StartupError(
        f"PostgreSQL needs psycopg {oldest} or newer, and there is {found}; run:"
        f" pip install 'psycopg[binary]>={oldest}'"
    )
