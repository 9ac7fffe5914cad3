"""A PostgreSQL database copied to a SQLite file as of one moment, and such a file brought into an empty one."""

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import quote

from cardbeat.database import sqlite_rows
from cardbeat.database.postgresql import start_up_errors
from cardbeat.database.postgresql_connection import Connection, connect, roll_back, without_nul
from cardbeat.database.postgresql_errors import LockNotAvailable, Unconfirmed
from cardbeat.database.postgresql_examination import require_tables
from cardbeat.database.postgresql_schema import bring_up_to_date, check_server, version
from cardbeat.database.schema import numbered_scripts
from cardbeat.database.sqlite_backup import place_for_backup, written_whole
from cardbeat.database.sqlite_file import FILE_NAME, last_moment, migrate
from cardbeat.database.sqlite_file import connect as open_file
from cardbeat.database.sqlite_file import start_up_errors as file_errors
from cardbeat.database.sqlite_restore import check_source, sound_copy
from cardbeat.database.sqlite_rows import BATCH, LEFT_BEHIND, NUMBERED, TABLES, Rows, carried, columns
from cardbeat.errors import StartupError
from cardbeat.ownership import make_folder
from cardbeat.staging import staging_folder
from cardbeat.stopping import RequireGoing, always_going

COMMIT_SECONDS: Final = 600.0
"""How long the COMMIT of all rows may take; a standby must have them too, where it waits for one."""

_TIMES: Final = (
    # Limits set for the role or the database are meant for what serves.
    "SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0; SET LOCAL lock_timeout = 5000;"
    # Of a COMMIT that did not wait for the standby only a warning tells.
    " SET LOCAL client_min_messages = warning;"
    # And what is restored is told when it is on disk.
    " SET LOCAL synchronous_commit = on"
)


def back_up(url: str, folder: Path, target: Path, require_going: RequireGoing = always_going) -> None:
    """As `sqlite_backup.back_up`, of the database that a URL names. `folder` is that of the stored cards."""
    place = place_for_backup(folder / FILE_NAME, target)
    with written_whole(place, target, require_going) as partial, start_up_errors(), _snapshot(url) as source:
        try:
            with sqlite_rows.new_file(partial) as copy:
                _copy_out(source, copy, require_going)
        except sqlite3.Error as error:
            raise StartupError(f"can't copy the database to {target}: {error}") from None


@contextlib.contextmanager
def _snapshot(url: str) -> Iterator[Connection]:
    """A connection that sees the database as it is now, whatever others write."""
    with contextlib.closing(connect(url)) as connection:
        check_server(connection)
        _require_newest(connection)
        connection.run_script(f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {_TIMES}")
        yield connection


def _require_newest(connection: Connection) -> None:
    """Raise `StartupError` for a database that this version has not brought up to date, or made."""
    require_tables(connection)
    if (found := version(connection)) < len(numbered_scripts("postgresql")):
        raise StartupError(
            f"the database was written by an older cardbeat (schema {found}); serve it once, or use that version"
        )


def _copy_out(source: Connection, copy: sqlite3.Connection, require_going: RequireGoing) -> None:
    for table in TABLES:
        sqlite_rows.write(copy, table, _batches(source, table, columns(copy, table)), require_going)
    for table in NUMBERED:
        number = source.execute(f"SELECT pg_sequence_last_value({_sequence(table)})").fetchall()[0][0]
        if number is not None:
            sqlite_rows.remember_number(copy, table, number)


def _batches(source: Connection, table: str, names: list[str]) -> Iterator[Rows]:
    source.execute(f"DECLARE all_rows NO SCROLL CURSOR FOR SELECT {', '.join(names)} FROM {table} ORDER BY 1")
    while rows := source.execute(f"FETCH {BATCH} FROM all_rows").fetchall():
        yield rows
    source.execute("CLOSE all_rows")


def restore(
    url: str, folder: Path, source: Path, require_going: RequireGoing = always_going
) -> tuple[str, int, int, int]:
    """As `restore_server`: all that a backup holds, in one transaction.

    Raises `StartupError`, with nothing changed, for a file that is no sound database of this program or an earlier one,
    for a database that is not empty, and while a server uses it. The file is copied into `folder` first, where it is
    checked and brought up to date. What `require_going` raises ends the restore with nothing changed.
    """
    check_source(source)
    with start_up_errors(), contextlib.closing(connect(url)) as connection:
        check_server(connection)
        if version(connection):
            _require_empty(connection)
        with _copy_up_to_date(folder, source, require_going) as copy:
            bring_up_to_date(connection)
            _bring_in(connection, copy, require_going)
            keys, checks = (copy.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in ("keys", "checks"))
            return _name(connection), keys, checks, last_moment(copy)


@contextlib.contextmanager
def _copy_up_to_date(folder: Path, source: Path, require_going: RequireGoing) -> Iterator[sqlite3.Connection]:
    try:
        make_folder(folder)
        with staging_folder(folder) as beside, file_errors(source):
            path = sound_copy(source, beside / "copy", require_going)
            with contextlib.closing(open_file(path)) as copy:
                migrate(copy)
                yield copy
    except OSError as error:
        raise StartupError(f"can't write in {folder}: {error.strerror}; nothing was restored") from None


def _bring_in(connection: Connection, copy: sqlite3.Connection, require_going: RequireGoing) -> None:
    connection.run_script(f"BEGIN; {_TIMES}")
    try:
        _lock(connection)
        _require_empty(connection)
        _require_unused(connection)
        for table in ("monitor", "totals_by_status", *LEFT_BEHIND):
            connection.execute(f"DELETE FROM {table}")
        # The totals are carried, not counted anew.
        connection.execute("ALTER TABLE checks DISABLE TRIGGER USER")
        for table in TABLES:
            _copy_in(connection, copy, table, require_going)
        connection.execute("ALTER TABLE checks ENABLE TRIGGER USER")
        for table in NUMBERED:
            if number := sqlite_rows.last_number(copy, table):
                connection.execute(f"SELECT setval({_sequence(table)}, ?)", (number,))
        # Else the server would guess how many rows there are until it looks by itself, and read whole tables.
        connection.run_script(f"ANALYZE {', '.join(TABLES)}")
        require_going()
    except BaseException:
        roll_back(connection)
        raise
    _commit(connection)


def _lock(connection: Connection) -> None:
    """From here on nobody else writes, nor takes the lease. Raises `StartupError` while another restore does."""
    try:
        connection.execute(f"LOCK TABLE {', '.join(TABLES + LEFT_BEHIND)} IN EXCLUSIVE MODE")
    except LockNotAvailable:
        raise _in_use(connection) from None


def _commit(connection: Connection) -> None:
    try:
        connection.commit_in_time(COMMIT_SECONDS)
    except Unconfirmed as error:
        raise StartupError(f"{error}, so it may be restored or not; look with: keys list") from None


def _copy_in(connection: Connection, copy: sqlite3.Connection, table: str, require_going: RequireGoing) -> None:
    sql = f"COPY {table} ({', '.join(columns(copy, table))}) FROM STDIN"
    # A COPY for each batch, as what refers to other rows is checked at its end.
    for rows in sqlite_rows.batches(copy, table):
        require_going()
        with connection.cursor() as cursor, cursor.copy(sql) as copied:
            for row in carried(table, rows):
                copied.write_row(list(map(without_nul, row)))


def _require_empty(connection: Connection) -> None:
    """Raise `StartupError` for a database with keys, which all else belongs to."""
    if connection.execute("SELECT 1 FROM keys LIMIT 1").fetchone():
        raise StartupError(f"the database {_name(connection)} is not empty; restore into an empty one")


def _require_unused(connection: Connection) -> None:
    """Raise `StartupError` while servers have the database open: then one of them has the lease."""
    held = "SELECT 1 FROM leases WHERE until > extract(epoch FROM clock_timestamp())"
    if connection.execute(held).fetchone():
        raise _in_use(connection)


def _in_use(connection: Connection) -> StartupError:
    return StartupError(f"the database {_name(connection)} is in use; stop all its servers, then restore")


def _name(connection: Connection) -> str:
    info = connection.info
    return f"postgresql://{quote(info.host, safe='')}:{info.port}/{quote(info.dbname, safe='')}"


def _sequence(table: str) -> str:
    return f"CAST(pg_get_serial_sequence('{table}', 'seq') AS regclass)"
