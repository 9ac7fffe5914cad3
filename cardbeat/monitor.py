"""The table `monitor`: what the service remembers of itself over a restart, each integer under its name."""

import sqlite3


def values(connection: sqlite3.Connection) -> dict[str, int]:
    return dict(connection.execute("SELECT name, value FROM monitor").fetchall())


def note(connection: sqlite3.Connection, name: str, value: int) -> None:
    """Replace the value of this name, inside the caller's transaction."""
    connection.execute(
        "INSERT INTO monitor (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        (name, value),
    )


def increment(connection: sqlite3.Connection, name: str) -> int:
    """Add one to the value of this name, which counts from 0, inside the caller's transaction; the new value."""
    row = connection.execute(
        "INSERT INTO monitor (name, value) VALUES (?, 1) ON CONFLICT (name) DO UPDATE SET value = value + 1"
        " RETURNING value",
        (name,),
    ).fetchone()
    return int(row[0])
