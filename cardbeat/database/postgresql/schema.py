"""Makes the tables in PostgreSQL or brings them up to date. Of several servers one does it."""

from typing import Final

from cardbeat.database.postgresql.connection import Connection
from cardbeat.database.postgresql.examination import is_served, version
from cardbeat.database.schema import OLDEST, VERSION, script
from cardbeat.errors import StartupError

LOCK: Final = 0x43424541
"""The key of an advisory lock, which the transaction holds that makes the tables."""


def bring_up_to_date(connection: Connection) -> None:
    """Make the tables or bring them up to date, in one transaction.

    Raises `StartupError` for a version that can't be used, and while a server of an older version
    uses the database.
    """
    if version(connection) == VERSION:
        return
    with connection.long_transaction():
        connection.execute(f"SELECT pg_advisory_xact_lock({LOCK})")
        _run_scripts(connection)


def _run_scripts(connection: Connection) -> None:
    # Before the version is asked for: it also lets the server look at its catalogue again.
    connection.execute("CREATE TABLE IF NOT EXISTS cardbeat_schema (version BIGINT PRIMARY KEY)")
    found = version(connection)
    if 0 < found < VERSION:
        connection.execute("LOCK TABLE leases IN EXCLUSIVE MODE")
        if is_served(connection):
            raise StartupError(
                "a server of an older version uses the database; stop all its servers, and start"
                " one with this version first"
            )
    for number in range(max(found + 1, OLDEST), VERSION + 1):
        connection.execute(script("postgresql", number))
        connection.execute("INSERT INTO cardbeat_schema (version) VALUES (?)", (number,))
