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


def increment(transaction: Transaction, name: str) -> int:
    """Add one to the value of this name, which counts from 0, inside the caller's transaction; the new value."""
    row = transaction.execute(
        "INSERT INTO monitor (name, value) VALUES (?, 1) ON CONFLICT (name) DO UPDATE SET value = monitor.value + 1"
        " RETURNING value",
        (name,),
    ).fetchone()
    return int(row[0])
