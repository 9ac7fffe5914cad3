"""The tables in PostgreSQL, and what an operator should know of a database there.

A finding is a pair: whether it is a problem, which breaks a promise of this program, or else a
warning; and a sentence that says what was found and, after "; ", what to do.
"""

from collections.abc import Iterator
from typing import Any

from cardbeat.clock import utc_text
from cardbeat.database.database import Transaction
from cardbeat.database.schema import (
    OLDEST,
    VERSION,
    last_moment,
    require_known,
    script,
)
from cardbeat.errors import StartupError

LOCK = 0x43424541
"""The key of an advisory lock, which the transaction holds that makes the tables."""


def description(connection: Transaction) -> str:
    """Of the tables. Raises `StartupError` as `version`."""
    schema = version(connection)
    tables = (
        f"schema {schema}" if schema else "no tables yet, serving makes them"
    )
    return f"PostgreSQL is reached, {tables}"


def version(connection: Transaction) -> int:
    """The version of the tables, 0 without any. Raises `StartupError` for one of no use."""
    (table,) = connection.execute(
        "SELECT to_regclass('cardbeat_schema')"
    ).fetchone()
    if table is None:
        return 0
    (found,) = connection.execute(
        "SELECT max(version) FROM cardbeat_schema"
    ).fetchone()
    if found is None:
        return 0
    require_known(found, "the database")
    return int(found)


def require_tables(connection: Transaction) -> None:
    """Raise `StartupError` if there are no tables yet."""
    if not version(connection):
        raise StartupError(
            "the database has no tables of cardbeat yet; serving makes them"
        )


def is_served(connection: Transaction) -> bool:
    """Whether a server, also one of an older version, holds the lease."""
    held = "SELECT 1 FROM leases WHERE until > extract(epoch FROM clock_timestamp())"
    return connection.execute(held).fetchone() is not None


def weaknesses(connection: Transaction) -> Iterator[tuple[bool, str]]:
    """The settings by which the server could lose what it has confirmed."""
    sql = "SELECT name, setting FROM pg_settings WHERE name LIKE '%sync%'"
    settings = dict(connection.execute(sql).fetchall())
    (standbys,) = connection.execute(
        "SELECT count(*) FROM pg_stat_replication"
    ).fetchone()
    if settings["fsync"] == "off":
        yield (
            True,
            "fsync is off, so a power cut can lose answered pings; set fsync = on",
        )
    if not settings["synchronous_standby_names"]:
        found = "no commit waits for a standby, so a failover can lose answered pings"
        yield False, f"{found}; name one in synchronous_standby_names"
    elif not standbys:
        found = "no standby of synchronous_standby_names is connected, so nothing can be written"
        yield True, f"{found}; start one"


def clock_doubts(connection: Transaction) -> Iterator[tuple[bool, str]]:
    """Whether the server's clock, which all nodes use, is behind a time that was stored."""
    sql = "SELECT CAST(extract(epoch FROM clock_timestamp()) AS float8)"
    (server,) = connection.execute(sql).fetchone()
    latest = last_moment(connection) if version(connection) else 0
    if server < latest - 60:
        yield (
            True,
            f"the database server's says {utc_text(server)} UTC, which is before"
            f" {utc_text(latest)}; set it, and keep it by NTP",
        )


def bring_up_to_date(connection: Any) -> None:
    """Make the tables or bring them up to date, in one transaction.

    Raises `StartupError` for a version that can't be used, and while a server of an older version
    uses the database.
    """
    if version(connection) == VERSION:
        return
    with connection.long_transaction():
        connection.execute(f"SELECT pg_advisory_xact_lock({LOCK})")
        _run_scripts(connection)


def _run_scripts(connection: Any) -> None:
    # Before the version is asked for: it also lets the server look at its catalogue again.
    connection.execute(
        "CREATE TABLE IF NOT EXISTS cardbeat_schema (version BIGINT PRIMARY KEY)"
    )
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
        connection.execute(
            "INSERT INTO cardbeat_schema (version) VALUES (?)", (number,)
        )
