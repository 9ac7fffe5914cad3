"""Brings a backup of a SQLite database into an empty PostgreSQL database."""

import contextlib
import sqlite3
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from cardbeat.database.postgresql.connection import Connection, connect, without_nul
from cardbeat.database.postgresql.database import start_up_errors
from cardbeat.database.postgresql.errors import LockNotAvailable
from cardbeat.database.postgresql.examination import is_served
from cardbeat.database.postgresql.schema import bring_up_to_date
from cardbeat.database.schema import NODE_TABLES, NUMBERED, TABLES
from cardbeat.database.sqlite.copies import copy_rows, described, nothing_restored, require_sound
from cardbeat.database.sqlite.file import opened
from cardbeat.errors import StartupError
from cardbeat.host.ownership import make_folder
from cardbeat.host.staging import staging_folder
from cardbeat.host.stopping import RequireGoing, always_going

COMMIT_SECONDS: Final = 600.0
"""Longest COMMIT of all rows. It waits for a synchronous standby to have them too."""
LOCK_SECONDS: Final = 5


def restore(
    url: str, folder: Path, source: Path, require_going: RequireGoing = always_going
) -> dict[str, Any]:
    """Bring all rows of a backup into an empty database, in one transaction.

    The rows are copied into a new file of the newest schema in `folder` first. Returns what
    `described` does. Raises `StartupError` if that can't be done. What `require_going` raises ends
    the restore with nothing changed.
    """
    # No error after a commit that was not confirmed may say that nothing was restored.
    with (
        start_up_errors(),
        contextlib.closing(connect(url)) as connection,
        nothing_restored(folder),
    ):
        require_sound(source, require_going)
        make_folder(folder)
        with staging_folder(folder) as beside:
            copy_rows(source, beside / "copy", require_going)
            bring_up_to_date(connection)
            with opened(beside / "copy") as rows:
                _bring_in(connection, rows, require_going)
                return described(_name(connection), rows)


def _bring_in(
    connection: Connection, rows: sqlite3.Connection, require_going: RequireGoing
) -> None:
    with connection.long_transaction(LOCK_SECONDS, COMMIT_SECONDS):
        _lock_empty(connection)
        for table in ("monitor", *NODE_TABLES):
            connection.execute(f"DELETE FROM {table}")
        for table in TABLES:
            _copy_in(connection, rows, table, require_going)
        # Without statistics the server reads whole tables until it takes them by itself.
        connection.execute(f"ANALYZE {', '.join(TABLES)}")
        require_going()


def _lock_empty(connection: Connection) -> None:
    """Keep all others from writing. `StartupError` while servers run, and if there are keys."""
    name = _name(connection)
    in_use = StartupError(f"the database {name} is in use, so stop all its servers first")
    try:
        connection.execute(f"LOCK TABLE {', '.join(TABLES + NODE_TABLES)} IN EXCLUSIVE MODE")
    except LockNotAvailable:
        raise in_use from None
    if is_served(connection):
        raise in_use
    if connection.execute("SELECT 1 FROM keys LIMIT 1").fetchone():
        raise StartupError(f"the database {name} is not empty, so restore into another one")


def _copy_in(
    connection: Connection, rows: sqlite3.Connection, table: str, require_going: RequireGoing
) -> None:
    # SQLite does not name the columns that are computed from others.
    names = ", ".join(row[1] for row in rows.execute(f"PRAGMA table_info({table})"))
    with connection.cursor() as cursor, cursor.copy(f"COPY {table} ({names}) FROM STDIN") as copied:
        for row in rows.execute(f"SELECT {names} FROM {table} ORDER BY 1"):
            require_going()
            copied.write_row([without_nul(value) for value in row])
    if table in NUMBERED:
        # The numbers of rows that were deleted are not given again.
        sql = f"SELECT max(seq) FROM (SELECT seq FROM {table} UNION ALL SELECT seq"
        last = rows.execute(f"{sql} FROM sqlite_sequence WHERE name = ?)", (table,)).fetchone()[0]
        if last:
            number = f"SELECT setval(pg_get_serial_sequence('{table}', 'seq'), ?)"
            connection.execute(number, (last,))


def _name(connection: Connection) -> str:
    info = connection.info
    return f"postgresql://{quote(info.host, safe='')}:{info.port}/{quote(info.dbname, safe='')}"
