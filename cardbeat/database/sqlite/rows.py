"""Copies the rows of a file that others may have made into a new file of our own schema, and checks every value.

No page is copied and no index is used, and before the first row is read the schema must be ours: so nothing that came
with the file runs. What is in the new file is what our own code could have written there.
"""

import contextlib
import os
import re
import sqlite3
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from cardbeat.database.schema import NUMBERED, TABLES
from cardbeat.database.sqlite.file import (
    APPLICATION_ID,
    FILES_BESIDE,
    address_of,
    is_behind,
    open_file,
    open_read_only,
    require_ours,
    run_scripts,
    start_up_errors,
)
from cardbeat.database.sqlite.objects import differences, make_tables
from cardbeat.errors import StartupError
from cardbeat.host.output import printable
from cardbeat.host.stopping import RequireGoing, always_going
from cardbeat.host.system import sync_file

STEPS_BETWEEN_LOOKS = 100_000
"""Steps of SQLite's virtual machine, about 1 ms, between two looks at the clock and for a stop signal."""
SECONDS, BYTES_A_SECOND = 300, 500_000
"""A restore may take these seconds, and one more for each so many bytes: 20 times as long as on a usual disk."""
MOST_BYTES = 1_000_000
"""Of one row or statement. Our own have at most some ten thousand."""
CACHE_KIB = 64 * 1024

TOTALS: Final = {"totals_by_status": "status", "totals_by_key": "api_key_id"}
"""The tables that count checks, and by which of their columns. They are counted again."""

_NOW = "(SELECT max(1767225600, CAST(strftime('%s', 'now') AS INTEGER)))"
"""In SQL; a clock before 2026 is wrong."""
_COUNT = f"BETWEEN 0 AND 1000000 * {_NOW}"
"""The limit grows faster than anything counts up, so a later backup of what was restored can be restored too."""
_TIME, _AHEAD_SECONDS = f"BETWEEN 0 AND {2**33}", 5 * 366 * 86400
# Deadlines move back with a clock that is set to 1970, and then count from up to two years before it.
_CLOCK_FROM = range(-(10**8), 2**33)
_SIGNING = "whsec_(?:[A-Za-z0-9+/]{4}){0,30}(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?"
_ID, _ANY_TEXT = "[0-9a-f]{32}", r"[\s\S]{0,5000}"

RULES: Final[dict[str, dict[str, str | range]]] = {
    "keys": {
        "id": "key_[0-9a-f]{16}",
        "tier": "[a-z0-9_-]{1,32}",
        "email": r"[\s\S]{1,254}",
        "prefix": "[A-Za-z0-9_-]{8}",
        "read_prefix": "[A-Za-z0-9_-]{8}",
        "webhook_secret": _SIGNING,
        "old_webhook_secret": _SIGNING,
    },
    "checks": {
        "id": _ID,
        "name": r"[^\x00-\x1f\x7f-\x9f]{1,100}",
        "period_seconds": range(1, 31_536_001),
        "grace_seconds": range(31_536_001),
        "webhook_url": r"(?i:https?)://[^\x00-\x20\x7f]{1,2000}",
        "clock_from": _CLOCK_FROM,
        "overdue_deadline_at": _CLOCK_FROM,
        "repeat_seconds": range(300, 2_592_001),
        "remind_at": _CLOCK_FROM,
        "snoozed_until": _CLOCK_FROM,
    },
    "alerts": {
        "id": f"msg_{_ID}",
        "last_status": range(1000),
        "last_error": _ANY_TEXT,
        "deadline_at": _CLOCK_FROM,
    },
    "monitor": {"name": "[a-z_]{1,1000}"},
}
"""The values that our code can write: integers in a range, or texts that match an expression whole.

Any other integer is a time if its column ends in `_at` or `_until`, else a number from 0. Columns that refer to another
table, or whose values the table itself lists, need no rule.
"""
MORE_RULES: Final = {
    "keys": {
        "hash": "length(hash) = 32",
        "read_hash": "(read_hash IS NULL) = (read_prefix IS NULL) AND (read_hash IS NULL OR"
        " (length(read_hash) = 32 AND scope = 'checks' AND revoked_at IS NULL))",
        "webhook_secret": "scope = 'cards' OR revoked_at IS NOT NULL OR webhook_secret IS NOT NULL",
    },
    "monitor": {
        # Deadlines move back by as much as the last moment is ahead.
        "value": f"CASE WHEN name LIKE 'last_%_at' THEN value BETWEEN 0 AND {_NOW} + {_AHEAD_SECONDS}"
        f" WHEN name IN ('sweeps', 'key_changes') THEN value {_COUNT} ELSE value BETWEEN -{2**33} AND {2**33} END",
    },
}
"""Conditions in SQL."""


@contextlib.contextmanager
def opened(source: Path) -> Iterator[sqlite3.Connection]:
    """A read-only connection to a file of others. Raises `StartupError` unless the schema is exactly ours."""
    with start_up_errors(source), open_read_only(source) as connection:
        _harden(connection)
        require_ours(connection, source)
        if any(found := differences(connection)):
            raise StartupError(f"{source} has {found}")
        yield connection


def why_refused(source: Path, require_going: RequireGoing = always_going) -> list[str]:
    """Why `restore` would refuse a file; empty if it would not. Reads all of it. Raises what `require_going` does."""
    going = _in_time(source, require_going)
    try:
        with opened(source) as connection, _interruptible(connection, going):
            if is_behind(connection):
                # What the scripts make of the rows counts too. SQLite removes a database without a name by itself.
                nameless = sqlite3.connect("", uri=True, isolation_level=None)
                with contextlib.closing(nameless) as copy, _interruptible(copy, going):
                    _bring_over(copy, source)
                return []
            connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
            return list(_damage(connection, source)) or list(_wrong_values(connection, source))
    except StartupError as error:
        require_going()
        return [str(error).partition("; ")[0]]


@contextlib.contextmanager
def nothing_restored(source: Path) -> Iterator[None]:
    """Raise what is wrong with a file as `StartupError` that says what came of it."""
    try:
        with start_up_errors(source):
            yield
    except StartupError as error:
        raise StartupError(f"{str(error).partition('; ')[0]}; nothing was restored") from None


def copy_rows(source: Path, copy: Path, require_going: RequireGoing) -> None:
    """Make a sound file of the newest schema with all rows of `source` as of one moment. Raises `StartupError`."""
    going = _in_time(source, require_going)
    os.close(os.open(copy, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    with (
        nothing_restored(source),
        contextlib.closing(open_file(copy, "rw")) as connection,
        _interruptible(connection, going),
    ):
        _bring_over(connection, source)
    sync_file(copy)


def _bring_over(connection: sqlite3.Connection, source: Path) -> None:
    """Make tables of the newest schema in an empty database, with all rows of `source`. Raises `StartupError`."""
    _fill(connection, source)
    run_scripts(connection)
    for reason in _wrong_values(connection, source):
        raise StartupError(reason)


def _fill(connection: sqlite3.Connection, source: Path) -> None:
    _harden(connection)
    connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
    # The new file is thrown away if anything fails.
    connection.execute("PRAGMA journal_mode = MEMORY")
    connection.execute("PRAGMA synchronous = OFF")
    connection.execute("ATTACH ? AS source", (address_of(source, "ro"),))
    (version,) = connection.execute("PRAGMA source.user_version").fetchone()
    make_tables(connection, version)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute("BEGIN")
    # From the first read on, the transaction sees the file as of one moment.
    for reason in _damage(connection, source, "source."):
        raise StartupError(reason)
    # With triggers SQLite would hold all rows of a table in memory first.
    triggers = connection.execute("SELECT name, sql FROM main.sqlite_schema WHERE type = 'trigger'").fetchall()
    for name, _ in triggers:
        connection.execute(f"DROP TRIGGER main.{name}")
    for table in TABLES:
        if table not in TOTALS:
            columns = ", ".join(row[1] for row in connection.execute(f"PRAGMA main.table_info({table})"))
            connection.execute(f"INSERT INTO main.{table} ({columns}) SELECT {columns} FROM source.{table}")
    for table, column in TOTALS.items():
        connection.execute(
            f"INSERT INTO main.{table} SELECT {column}, count(*) FROM main.checks WHERE true GROUP BY {column}"
            f" ON CONFLICT ({column}) DO UPDATE SET checks = excluded.checks"
        )
    for _, sql in triggers:
        connection.execute(sql)
    # The numbers of rows that were deleted are not given again.
    connection.execute("DELETE FROM main.sqlite_sequence")
    connection.execute(
        "INSERT INTO main.sqlite_sequence (name, seq) SELECT name, max(seq) FROM source.sqlite_sequence"
        f" WHERE typeof(seq) = 'integer' AND seq {_COUNT} GROUP BY name"
    )
    connection.execute("COMMIT")
    connection.execute("DETACH source")


def _harden(connection: sqlite3.Connection) -> None:
    """Have SQLite trust neither the schema nor the pages of the files that this connection reads."""
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    for limit in (sqlite3.SQLITE_LIMIT_LENGTH, sqlite3.SQLITE_LIMIT_SQL_LENGTH):
        connection.setlimit(limit, MOST_BYTES)
    if sys.version_info >= (3, 12):
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_DEFENSIVE)


def _damage(connection: sqlite3.Connection, source: Path, schema: str = "") -> Iterator[str]:
    """What SQLite's full check finds, in the attached database that `schema` names."""
    for (found,) in connection.execute(f"PRAGMA {schema}integrity_check(20)"):
        if found != "ok":
            yield f"{source} is damaged ({printable(found.splitlines()[-1])})"


def _wrong_values(connection: sqlite3.Connection, source: Path) -> Iterator[str]:
    """For each column with values that our code never writes, its first row; and the tables that lack a row."""
    connection.create_function("regexp", 2, _fits, deterministic=True)
    holds = f"{source} holds what cardbeat never writes, in"
    for table in TABLES:
        if table in TOTALS:
            continue
        conditions = _conditions(connection, table)
        cases = " ".join(f"WHEN NOT ({condition}) THEN '{column}'" for column, condition in conditions)
        row = "min(seq)" if table in NUMBERED else "NULL"
        wrong = f"SELECT CASE {cases} END AS wrong, {row} FROM {table} WHERE wrong IS NOT NULL GROUP BY wrong"
        for column, seq in connection.execute(wrong):
            yield f"{holds} {table}.{column}" + ("" if seq is None else f" of row {seq}")
    for table, parent in connection.execute('SELECT DISTINCT "table", parent FROM pragma_foreign_key_check'):
        if table not in TOTALS:
            yield f"{holds} {table}, which refers to a row that {parent} has not"
    if not _credits_are_whole(connection):
        yield f"{holds} monitor, where a part of a credit is missing"


def _credits_are_whole(connection: sqlite3.Connection) -> bool:
    """Whether each credit has all its rows, and those that wait for another, up to 196, stand behind it."""
    found = connection.execute("SELECT name FROM monitor WHERE name LIKE '%credit%' OR name LIKE 'next%' LIMIT 800")
    left, waits = {name for (name,) in found}, ""
    while left:
        credit = {f"{waits}credit_{part}" for part in ("seconds", "before", "after_seq")}
        if not credit <= left:
            return False
        left -= {*credit, f"{waits}credit_older_from"}
        waits += "next_"
    return True


def _conditions(connection: sqlite3.Connection, table: str) -> Iterator[tuple[str, str]]:
    own, more = RULES.get(table, {}), MORE_RULES.get(table, {})
    for column, rule in own.items():
        # As bytes, because a text need not be UTF-8.
        in_range = f"{column} BETWEEN {rule[0]} AND {rule[-1]}" if isinstance(rule, range) else ""
        yield column, in_range or f"CAST({column} AS BLOB) REGEXP '{rule}'"
    yield from more.items()
    # SQLite's full check of a file that can't be written leaves out what the tables themselves ask for.
    (sql,) = connection.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (table,)).fetchone()
    yield from ((column, condition) for condition, column in re.findall(r"CHECK \(((\w+) IN \(.+?\))\)", sql))
    for _, column, kind, *_ in connection.execute(f"PRAGMA table_info({table})"):
        if kind == "INTEGER" and column not in {*own, *more}:
            yield column, f"{column} {_TIME if column.endswith(('_at', '_until')) else _COUNT}"


def _fits(pattern: str, value: bytes | None) -> bool | None:
    """Whether a text is UTF-8 and matches the pattern whole; None for None. SQLite's operator REGEXP."""
    try:
        return None if value is None else re.fullmatch(pattern, value.decode()) is not None
    except UnicodeDecodeError:
        return False


def _in_time(source: Path, require_going: RequireGoing) -> RequireGoing:
    """As `require_going`, which also raises at the end of the time that a file of this size may take."""
    size = sum(os.path.getsize(path) for end in FILES_BESIDE if os.path.exists(path := f"{source}{end}"))
    seconds = SECONDS + size / BYTES_A_SECOND
    end = time.monotonic() + seconds

    def require_time() -> None:
        require_going()
        if time.monotonic() >= end:
            raise StartupError(f"{source} could not be read within {seconds:.0f} s")

    return require_time


@contextlib.contextmanager
def _interruptible(connection: sqlite3.Connection, going: RequireGoing) -> Iterator[None]:
    """End a statement when `going` raises, with that error."""
    going()
    # If the handler raises, the statement ends with SQLite's own error.
    connection.set_progress_handler(going, STEPS_BETWEEN_LOOKS)
    try:
        yield
    except sqlite3.OperationalError:
        going()
        raise
    finally:
        connection.set_progress_handler(None, 0)
