"""All rows of a database file, read and written in batches: to be carried to another engine, and back."""

import contextlib
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from cardbeat.database.sqlite_file import APPLICATION_ID, connect, migrate
from cardbeat.stopping import RequireGoing

Rows = Sequence[Sequence[Any]]

TABLES: Final = (
    "keys",
    "checks",
    "alerts",
    "monitor",
    "tests_taken",
    "totals_by_status",
    "totals_by_key",
    "moves",
)
"""All that is carried. Each row comes after those that it refers to."""
LEFT_BEHIND: Final = ("leases", "rates", "registrations")
"""What counts for the servers that have the database open now, and for nobody afterwards."""
NUMBERED: Final = ("keys", "checks", "alerts", "moves")
"""Those whose rows have numbers, in the column `seq`."""
BATCH: Final = 1000
"""Rows that are held in memory at once."""
CACHE_KIB: Final = 64 * 1024


def columns(connection: sqlite3.Connection, table: str) -> list[str]:
    """Those that are written; what is generated from them comes by itself."""
    return [row["name"] for row in connection.execute(f"PRAGMA table_info({table})")]


def batches(connection: sqlite3.Connection, table: str) -> Iterator[Rows]:
    """All rows of a table, in the order of its columns."""
    found = connection.execute(f"SELECT {', '.join(columns(connection, table))} FROM {table} ORDER BY 1")
    while batch := found.fetchmany(BATCH):
        yield batch


def last_number(connection: sqlite3.Connection, table: str) -> int:
    """The largest that a row of this table has, or had where that is remembered; 0 before the first."""
    (largest,) = connection.execute(f"SELECT coalesce(max(seq), 0) FROM {table}").fetchone()
    (remembered,) = connection.execute(
        "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = ?", (table,)
    ).fetchone()
    return max(int(largest), int(remembered))


def carried(table: str, rows: Rows) -> Rows:
    """Rows as they are for another server.

    A moment that was noted by a monotonic clock, and in which epoch of a lease, means something only to who noted it.
    Without them, the time since then counts by the wall clock, as after any start.
    """
    if table != "monitor":
        return rows
    return [
        (name, 0 if name == "last_sweep_monotonic" else value) for name, value in rows if name != "last_sweep_epoch"
    ]


@contextlib.contextmanager
def new_file(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection to write all rows by, into an empty file that becomes a database of the newest schema.

    What is written may be lost until the file is synced, and the file is worth nothing if this is cut short.
    """
    with contextlib.closing(connect(path)) as connection:
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        migrate(connection)
        # Serving changes the first again. The others hold for this connection.
        for setting in ("journal_mode = DELETE", "journal_mode = OFF", "synchronous = OFF", "foreign_keys = OFF"):
            connection.execute(f"PRAGMA {setting}")
        connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        with _without_triggers(connection):
            connection.execute("BEGIN")
            connection.execute("DELETE FROM totals_by_status")
            yield connection
            connection.execute("COMMIT")


@contextlib.contextmanager
def _without_triggers(connection: sqlite3.Connection) -> Iterator[None]:
    """The totals are carried, not counted anew."""
    found = connection.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").fetchall()
    for row in found:
        connection.execute(f"DROP TRIGGER {row['name']}")
    yield
    for row in found:
        connection.execute(row["sql"])


def write(connection: sqlite3.Connection, table: str, read: Iterable[Rows], require_going: RequireGoing) -> None:
    names = columns(connection, table)
    sql = f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"
    for rows in read:
        require_going()
        connection.executemany(sql, carried(table, rows))


def remember_number(connection: sqlite3.Connection, table: str, number: int) -> None:
    """Give no row of this table a number up to this one any more, where the table remembers one."""
    sql = "UPDATE sqlite_sequence SET seq = max(seq, :number) WHERE name = :table"
    if not connection.execute(sql, {"number": number, "table": table}).rowcount and table != "keys":
        connection.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", (table, number))
