"""What a file consists of: its tables, indexes, triggers and views, compared with those that our own scripts make."""

import contextlib
import re
import sqlite3
from collections import Counter
from pathlib import Path
from typing import Final, NamedTuple

from cardbeat.database.schema import missing_scripts
from cardbeat.errors import StartupError
from cardbeat.host.output import printable

_STATISTICS: Final = ("sqlite_stat1(tbl,idx,stat)", "sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)")
"""The tables that ANALYZE makes."""
_TOKEN: Final = re.compile(rb"'[^']*'|\w+|[^ \t\n\f\r]")
_SHOWN_CHARACTERS: Final = 60
_MOST: Final = 1000
"""Objects that are looked at: ten times as many as there are in any of our files."""


class Object(NamedTuple):
    """A table, an index, a trigger or a view. Two statements that differ in spaces alone have the same `tokens`."""

    kind: str
    name: str
    table: str
    tokens: tuple[bytes, ...]

    def __str__(self) -> str:
        return f"{self.kind} {printable(self.name)[:_SHOWN_CHARACTERS]}"


class Differences(NamedTuple):
    """The objects of ours that a file lacks or has otherwise, and those that it has beside them."""

    lacking: list[Object]
    foreign: list[Object]

    def __str__(self) -> str:
        missing = [f"no {found} as cardbeat makes it" for found in self.lacking]
        return ", ".join([*missing, *(f"a {found} that cardbeat did not make" for found in self.foreign)][:3])


def differences(connection: sqlite3.Connection) -> Differences:
    """How the schema of an open file differs from what our scripts make for its version."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as made:
        make_tables(made, version)
        ours = _objects(made)
    found = _objects(connection)
    statistics = {_object(b"table", name.partition("(")[0].encode(), None, name.encode()) for name in _STATISTICS}
    lacking = list((ours - found).elements())
    changed = {(one.kind, one.name) for one in lacking}
    strange = (one for one in (found - ours).elements() if one not in statistics)
    return Differences(lacking, [one for one in strange if (one.kind, one.name) not in changed])


def make_tables(connection: sqlite3.Connection, version: int) -> None:
    """Make all tables as they are in a version, in an empty database."""
    for number, script in missing_scripts("sqlite", 0):
        if number <= version:
            connection.executescript(script)
    connection.execute(f"PRAGMA user_version = {version}")


def require_usable(connection: sqlite3.Connection, path: Path) -> None:
    """Raise `StartupError` for a file with which serving fails, or that would run code of others in each write.

    Further tables, views and indexes do no harm: an operator may have made them. `doctor` names them.
    """
    lacking, foreign = differences(connection)
    triggers = [found for found in foreign if found.kind == "trigger"]
    if lacking:
        raise StartupError(f"{path} has {Differences(lacking, [])}; restore a backup or move it away")
    if triggers:
        raise StartupError(f"{path} has {Differences([], triggers)}; drop it, or restore a backup")


def leave_out_foreign(connection: sqlite3.Connection) -> None:
    for found in sorted(differences(connection).foreign, key=lambda found: found.kind, reverse=True):
        name = found.name.replace('"', '""')
        connection.execute(f'DROP {found.kind} IF EXISTS "{name}"')


def _objects(connection: sqlite3.Connection) -> Counter[Object]:
    # As bytes, because a text need not be UTF-8. What SQLite makes for a UNIQUE has no statement.
    columns = ", ".join(f"CAST({name} AS BLOB)" for name in ("type", "name", "tbl_name", "sql"))
    rows = connection.execute(f"SELECT {columns} FROM sqlite_schema WHERE sql IS NOT NULL LIMIT {_MOST}")
    return Counter(_object(*row) for row in rows)


def _object(kind: bytes, name: bytes, table: bytes | None, sql: bytes) -> Object:
    texts = [(text or b"").decode(errors="backslashreplace") for text in (kind, name, table or name)]
    statement = sql if sql.startswith(b"CREATE") else b"CREATE TABLE " + sql
    return Object(texts[0], texts[1], texts[2], tuple(_TOKEN.findall(statement)))
