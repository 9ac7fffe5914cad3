"""The tables in PostgreSQL, and what an operator should know of a database there."""

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


def version(connection: Transaction) -> int:
    """The version of the tables, 0 without any. Raises `StartupError` for one of no use."""
    (table,) = connection.execute(
        "SELECT to_regclass('cardbeat_schema')"
    ).fetchone()
    if table is None:
        return 0
    (found,) = connection.execute(
        "SELECT coalesce(max(version), 0) FROM cardbeat_schema"
    ).fetchone()
    if found:
        require_known(found, "the database")
    return int(found)


def findings(connection: Transaction) -> Iterator[tuple[str, str]]:
    """What `doctor` says of the server: the level and the sentence of each finding.

    A problem breaks a promise of this program. Raises `StartupError` as `version`.
    """
    schema = version(connection)
    tables = (
        f"schema {schema}"
        if schema
        else "no tables yet, serving makes them"
    )
    yield "ok", f"PostgreSQL is reached, {tables}"
    fsync, names, standbys, now = connection.execute(
        "SELECT current_setting('fsync'), current_setting('synchronous_standby_names'),"
        " (SELECT count(*) FROM pg_stat_replication),"
        " CAST(extract(epoch FROM clock_timestamp()) AS float8)"
    ).fetchone()
    if fsync == "off":
        yield (
            "problem",
            "fsync is off, so a power cut can lose answered pings; set fsync = on",
        )
    if not names:
        yield (
            "warning",
            "no commit waits for a standby, so a failover can lose answered pings; name one in"
            " synchronous_standby_names",
        )
    elif not standbys:
        yield (
            "problem",
            "no standby of synchronous_standby_names is connected, so nothing can be written;"
            " start one",
        )
    latest = last_moment(connection) if schema else 0
    if now < latest - 60:
        yield (
            "problem",
            f"its clock says {utc_text(now)} UTC, which is before {utc_text(latest)}; set it, and"
            " keep it by NTP",
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
        held = connection.execute(
            "SELECT 1 FROM leases WHERE until > extract(epoch FROM clock_timestamp())"
        )
        if held.fetchone():
            raise StartupError(
                "a server of an older version uses the database; stop all its servers, and start"
                " one with this version first"
            )
    for number in range(max(found + 1, OLDEST), VERSION + 1):
        connection.execute(script("postgresql", number))
        connection.execute(
            "INSERT INTO cardbeat_schema (version) VALUES (?)", (number,)
        )
