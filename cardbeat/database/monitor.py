"""The table `monitor`: integers that the service remembers over a restart, each under its name."""

from cardbeat.database import Transaction


def values(transaction: Transaction) -> dict[str, int]:
    return dict(
        transaction.execute("SELECT name, value FROM monitor").fetchall()
    )


def note(transaction: Transaction, **values: int) -> None:
    """Replace the values of these names, inside the caller's transaction."""
    for name, value in values.items():
        transaction.execute(
            "INSERT INTO monitor (name, value) VALUES (?, ?)"
            " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            (name, value),
        )
