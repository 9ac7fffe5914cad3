"""Brings a backup of a SQLite database into an empty PostgreSQL database."""

import contextlib
import sqlite3
from pathlib import Path
from typing import Any

from cardbeat.database.postgresql.connection import (
    Connection,
    connect,
    start_up_errors,
    without_nul,
)
from cardbeat.database.postgresql.schema import bring_up_to_date
from cardbeat.database.schema import TABLES
from cardbeat.database.sqlite.copies import (
    columns_of,
    copy_to_restore,
    described,
)
from cardbeat.database.sqlite.file import opened
from cardbeat.errors import StartupError

COMMIT_SECONDS = 600.0
"""Longest COMMIT of all rows. It waits for a synchronous standby to have them too."""


def restore(url: str, folder: Path, source: Path) -> dict[str, Any]:
    """Bring all rows of a backup into an empty database, in one transaction.

    The rows are copied into a new file of the newest schema in `folder` first. Returns what
    `described` does. Raises `StartupError` if that can't be done; then, and after a
    `KeyboardInterrupt`, nothing is changed.
    """
    # No error after a commit that was not confirmed may say that nothing was restored.
    with (
        start_up_errors(),
        contextlib.closing(connect(url)) as connection,
        copy_to_restore(source, folder) as copy,
        opened(copy) as rows,
    ):
        bring_up_to_date(connection)
        _bring_in(connection, rows)
        info = connection.info
        return described(
            f"postgresql://{info.host}:{info.port}/{info.dbname}", rows
        )


def _bring_in(connection: Connection, rows: sqlite3.Connection) -> None:
    tables = ", ".join(TABLES)
    with connection.long_transaction(COMMIT_SECONDS):
        # Nobody else writes until the end.
        connection.execute(
            f"SET LOCAL lock_timeout = '5s'; LOCK TABLE {tables} IN EXCLUSIVE MODE"
        )
        if connection.execute("SELECT 1 FROM keys LIMIT 1").fetchone():
            raise StartupError(
                "the database is not empty, so restore into another one"
            )
        connection.execute("DELETE FROM monitor")
        for table in TABLES:
            _copy_in(connection, rows, table)
        # Without statistics the server reads whole tables until it takes them by itself.
        connection.execute(f"ANALYZE {tables}")


def _copy_in(
    connection: Connection,
    rows: sqlite3.Connection,
    table: str,
) -> None:
    columns = columns_of(rows, table)
    names = ", ".join(columns)
    with (
        connection.cursor() as cursor,
        cursor.copy(f"COPY {table} ({names}) FROM STDIN") as copied,
    ):
        for row in rows.execute(
            f"SELECT {names} FROM {table} ORDER BY 1"
        ):
            copied.write_row([without_nul(value) for value in row])
    if "seq" in columns:
        connection.execute(
            f"SELECT setval(pg_get_serial_sequence('{table}', 'seq'), max(seq)) FROM {table}"
        )
