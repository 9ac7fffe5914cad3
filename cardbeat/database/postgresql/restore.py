"""Brings a backup of a SQLite database into an empty PostgreSQL database."""

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import quote

from cardbeat.database.postgresql.connection import Connection, connect, roll_back, without_nul
from cardbeat.database.postgresql.database import start_up_errors
from cardbeat.database.postgresql.errors import LockNotAvailable, Unconfirmed
from cardbeat.database.postgresql.examination import is_served, version
from cardbeat.database.postgresql.schema import bring_up_to_date, check_server
from cardbeat.database.schema import NODE_TABLES, NUMBERED, TABLES
from cardbeat.database.sqlite.file import connect as open_file
from cardbeat.database.sqlite.file import start_up_errors as file_errors
from cardbeat.database.sqlite.restore import Restored, check_source, described
from cardbeat.database.sqlite.rows import copy_rows
from cardbeat.errors import StartupError
from cardbeat.host.ownership import make_folder
from cardbeat.host.staging import staging_folder
from cardbeat.host.stopping import RequireGoing, always_going

COMMIT_SECONDS: Final = 600.0
"""Longest COMMIT of all rows. It waits for a synchronous standby to have them too."""
BATCH: Final = 1000
"""Rows held in memory at a time."""

_SETTINGS: Final = (
    # Limits that are set for the role or the database are meant for serving.
    "SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0; SET LOCAL lock_timeout = 5000;"
    # A COMMIT that did not wait for the standby says so in a warning only.
    " SET LOCAL client_min_messages = warning;"
    # COMMIT returns when the rows are on disk.
    " SET LOCAL synchronous_commit = on"
)


def restore(url: str, folder: Path, source: Path, require_going: RequireGoing = always_going) -> Restored:
    """Bring all rows of a backup into an empty database, in one transaction. `folder` is that of the stored cards.

    The file is copied into it first, and the copy is checked and brought up to date there. Raises `StartupError` if
    that can't be done. What `require_going` raises ends the restore with nothing changed.
    """
    check_source(source)
    with start_up_errors(), contextlib.closing(connect(url)) as connection:
        check_server(connection)
        if version(connection):
            _require_empty(connection)
        with _copy_up_to_date(folder, source, require_going) as copy:
            bring_up_to_date(connection)
            _bring_in(connection, copy, require_going)
            return described(_name(connection), copy)


@contextlib.contextmanager
def _copy_up_to_date(folder: Path, source: Path, require_going: RequireGoing) -> Iterator[sqlite3.Connection]:
    try:
        make_folder(folder)
        with staging_folder(folder) as beside, file_errors(source):
            copy_rows(source, beside / "copy", require_going)
            with contextlib.closing(open_file(beside / "copy")) as copy:
                yield copy
    except OSError as error:
        raise StartupError(f"can't write in {folder}: {error.strerror}; nothing was restored") from None


def _bring_in(connection: Connection, copy: sqlite3.Connection, require_going: RequireGoing) -> None:
    connection.run_script(f"BEGIN; {_SETTINGS}")
    try:
        _lock(connection)
        _require_empty(connection)
        for table in ("monitor", "totals_by_status", *NODE_TABLES):
            connection.execute(f"DELETE FROM {table}")
        # The totals are copied, so the triggers must not count too.
        connection.execute("ALTER TABLE checks DISABLE TRIGGER USER")
        for table in TABLES:
            _copy_in(connection, copy, table, require_going)
        connection.execute("ALTER TABLE checks ENABLE TRIGGER USER")
        # Both are of the machine before. Without them the time since its last sweep counts by the wall clock.
        connection.execute("DELETE FROM monitor WHERE name = 'last_sweep_epoch'")
        connection.execute("UPDATE monitor SET value = 0 WHERE name = 'last_sweep_monotonic'")
        for table in NUMBERED:
            if number := _last_number(copy, table):
                connection.execute(f"SELECT setval(pg_get_serial_sequence('{table}', 'seq'), ?)", (number,))
        # Without statistics the server reads whole tables until it takes them by itself.
        connection.run_script(f"ANALYZE {', '.join(TABLES)}")
        require_going()
    except BaseException:
        roll_back(connection)
        raise
    try:
        connection.commit_in_time(COMMIT_SECONDS)
    except Unconfirmed as error:
        raise StartupError(f"{error}, so it may be restored or not; look with: keys list") from None


def _lock(connection: Connection) -> None:
    """Keep all others from writing and from taking the lease.

    Raises `StartupError` while another restore does, and while servers have the database open: one holds the lease.
    """
    in_use = StartupError(f"the database {_name(connection)} is in use; stop all its servers, then restore")
    try:
        connection.execute(f"LOCK TABLE {', '.join(TABLES + NODE_TABLES)} IN EXCLUSIVE MODE")
    except LockNotAvailable:
        raise in_use from None
    if is_served(connection):
        raise in_use


def _copy_in(connection: Connection, copy: sqlite3.Connection, table: str, require_going: RequireGoing) -> None:
    # Without the columns that are computed from others.
    columns = ", ".join(row["name"] for row in copy.execute(f"PRAGMA table_info({table})"))
    found = copy.execute(f"SELECT {columns} FROM {table} ORDER BY 1")
    # A COPY for each batch, because foreign keys are checked at its end.
    while rows := found.fetchmany(BATCH):
        require_going()
        with connection.cursor() as cursor, cursor.copy(f"COPY {table} ({columns}) FROM STDIN") as copied:
            for row in rows:
                copied.write_row(list(map(without_nul, row)))


def _last_number(copy: sqlite3.Connection, table: str) -> int:
    """The largest `seq` in the table, or that SQLite remembers of a deleted row; 0 before the first row."""
    sql = f"SELECT max(seq) FROM (SELECT seq FROM {table} UNION ALL SELECT seq FROM sqlite_sequence WHERE name = ?)"
    return copy.execute(sql, (table,)).fetchone()[0] or 0


def _require_empty(connection: Connection) -> None:
    """Raise `StartupError` for a database with keys, which all other rows belong to."""
    if connection.execute("SELECT 1 FROM keys LIMIT 1").fetchone():
        raise StartupError(f"the database {_name(connection)} is not empty; restore into an empty one")


def _name(connection: Connection) -> str:
    info = connection.info
    return f"postgresql://{quote(info.host, safe='')}:{info.port}/{quote(info.dbname, safe='')}"
