"""What an operator should know of a PostgreSQL database: settings that could lose pings.

A finding is a pair: whether it is a problem, which breaks a promise of this program, or else a
warning; and a sentence that says what was found and, after "; ", what to do.
"""

from collections.abc import Iterator
from typing import Final

from cardbeat.clock import Clock, utc_text
from cardbeat.database.database import Transaction
from cardbeat.database.schema import last_moment, require_known
from cardbeat.errors import StartupError

SKEW_SECONDS: Final = 2.0
"""Clocks that NTP keeps differ by less."""


def description(connection: Transaction) -> str:
    """The version of the server and of the tables. Raises `StartupError` as `version`."""
    (server,) = connection.execute("SELECT current_setting('server_version')").fetchone()
    schema = version(connection)
    tables = f"schema {schema}" if schema else "no tables yet, serving makes them"
    return f"PostgreSQL {server} is reached, {tables}"


def version(connection: Transaction) -> int:
    """The version of the tables, 0 without any. Raises `StartupError` for one of no use."""
    (table,) = connection.execute("SELECT to_regclass('cardbeat_schema')").fetchone()
    if table is None:
        return 0
    (found,) = connection.execute("SELECT max(version) FROM cardbeat_schema").fetchone()
    if found is None:
        return 0
    require_known(found, "the database")
    return int(found)


def require_tables(connection: Transaction) -> None:
    """Raise `StartupError` if there are no tables yet."""
    if not version(connection):
        raise StartupError("the database has no tables of cardbeat yet; serving makes them")


def is_served(connection: Transaction) -> bool:
    """Whether a server, also one of an older version, holds the lease."""
    held = "SELECT 1 FROM leases WHERE until > extract(epoch FROM clock_timestamp())"
    return connection.execute(held).fetchone() is not None


def weaknesses(connection: Transaction) -> Iterator[tuple[bool, str]]:
    """The settings by which the server could lose what it has confirmed."""
    sql = "SELECT name, setting FROM pg_settings WHERE name LIKE '%sync%'"
    settings = dict(connection.execute(sql).fetchall())
    if settings["fsync"] == "off":
        yield True, "fsync is off, so a power cut can lose answered pings, or all; set fsync = on"
    if settings["synchronous_commit"] == "off":
        # Serving sets it to on for each transaction.
        yield (
            False,
            "synchronous_commit is off, with which the server confirms what a crash loses; set"
            " synchronous_commit = on for this role or database",
        )
    (standbys,) = connection.execute("SELECT count(*) FROM pg_stat_replication").fetchone()
    if not settings["synchronous_standby_names"]:
        yield (
            False,
            "no commit waits for a standby, so a failover can lose pings that were answered; name a"
            " standby in synchronous_standby_names, unless the storage itself is replicated",
        )
    elif not standbys:
        yield (
            True,
            "no standby of synchronous_standby_names is connected, so nothing can be written; start"
            " one, and look at pg_stat_replication",
        )


def clock_doubts(connection: Transaction, clock: Clock) -> Iterator[tuple[bool, str]]:
    """Differences of the server's clock, which all nodes use, from this host's and stored times."""
    asked_at = clock()
    sql = "SELECT CAST(extract(epoch FROM clock_timestamp()) AS float8)"
    (server,) = connection.execute(sql).fetchone()
    answered_at = clock()
    ahead = (asked_at + answered_at) / 2 - server
    if abs(ahead) > SKEW_SECONDS + (answered_at - asked_at) / 2:
        side = "ahead of" if ahead > 0 else "behind"
        yield (
            False,
            f"this host's clock is {abs(ahead):.0f} s {side} the database server's, which counts;"
            " keep both by NTP",
        )
    latest = last_moment(connection) if version(connection) else 0
    if server < latest - 60:
        yield (
            True,
            f"the database server's says {utc_text(server)} UTC, which is before"
            f" {utc_text(latest)}; set it, and keep it by NTP",
        )
