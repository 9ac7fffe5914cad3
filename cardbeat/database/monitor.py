"""The table `monitor`: what the service remembers of itself over a restart, each integer under its name."""

from cardbeat.database import Transaction


def values(transaction: Transaction) -> dict[str, int]:
    return dict(transaction.execute("SELECT name, value FROM monitor").fetchall())


def note(transaction: Transaction, **values: int) -> None:
    """Replace the values of these names, inside the caller's transaction."""
    rows = ", ".join(["(?, ?)"] * len(values))
    transaction.execute(
        f"INSERT INTO monitor (name, value) VALUES {rows} ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        [part for item in values.items() for part in item],
    )


def increment(transaction: Transaction, name: str, by: int = 1) -> int:
    """Add to the value of this name, which counts from 0, inside the caller's transaction; the new value."""
    row = transaction.execute(
        "INSERT INTO monitor (name, value) VALUES (?, ?)"
        " ON CONFLICT (name) DO UPDATE SET value = monitor.value + excluded.value RETURNING value",
        (name, by),
    ).fetchone()
    return int(row[0])
