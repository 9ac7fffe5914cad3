"""What an operator should know of a PostgreSQL database: its tables, its rights, and settings that could lose pings.

A finding is a pair: whether it is a problem, which breaks a promise of this program, or else a warning; and a sentence
that says what was found and, after "; ", what to do. A role that may only connect can read all of it.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from cardbeat.clock import Clock, utc_text
from cardbeat.database.schema import NODE_TABLES, TABLES, last_moment, require_known
from cardbeat.errors import StartupError

if TYPE_CHECKING:
    from cardbeat.database.protocols import Transaction

SKEW_SECONDS: Final = 2.0
"""Clocks that NTP keeps differ by less."""

_SETTINGS: Final = ("fsync", "full_page_writes", "synchronous_commit", "synchronous_standby_names")
_RIGHTS: Final = "SELECT,INSERT,UPDATE,DELETE"
_NO_STANDBY: Final = (
    "no commit waits for a standby, so a failover can lose pings that were answered; name a standby in "
    "synchronous_standby_names, unless the storage itself is replicated"
)


def description(connection: "Transaction") -> str:
    """The version of the server and of the tables. Raises `StartupError` as `version`."""
    (server,) = connection.execute("SELECT current_setting('server_version')").fetchone()
    schema = version(connection)
    return f"PostgreSQL {server} is reached, " + (f"schema {schema}" if schema else "no tables yet, serving makes them")


def version(connection: "Transaction") -> int:
    """The version of the tables, 0 if there are none. Raises `StartupError` for one that can't be used."""
    (table,) = connection.execute("SELECT to_regclass('cardbeat_schema')").fetchone()
    found = connection.execute("SELECT max(version) FROM cardbeat_schema").fetchone()[0] if table else None
    if found is None:
        return 0
    require_known("postgresql", found, "the database")
    return int(found)


def is_served(connection: "Transaction") -> bool:
    """Whether a server holds the lease. Call with a lock on `leases`, so that none takes it afterwards."""
    held = "SELECT 1 FROM leases WHERE until > extract(epoch FROM clock_timestamp())"
    return connection.execute(held).fetchone() is not None


def require_tables(connection: "Transaction") -> None:
    """Raise `StartupError` if there are no tables yet."""
    if not version(connection):
        require_no_foreign_tables(connection)
        raise StartupError("the database has no tables of cardbeat yet; serving makes them")


def require_no_foreign_tables(connection: "Transaction") -> None:
    """Raise `StartupError` if another program has a table with a name of ours, and there are no tables of ours yet."""
    foreign = connection.execute(
        "SELECT name FROM regexp_split_to_table(?, ',') AS name WHERE to_regclass('cardbeat_schema') IS NULL"
        # In the schema where the tables would be made. The others of the search path do not matter.
        " AND to_regclass(quote_ident(current_schema()) || '.' || name) IS NOT NULL",
        (",".join(TABLES + NODE_TABLES),),
    ).fetchone()
    if foreign:
        found = f"the database has a table {foreign[0]} that is not cardbeat's"
        raise StartupError(f"{found}; give cardbeat a database of its own, or a schema")


def require_rights(connection: "Transaction") -> None:
    """Raise `StartupError` if the role may not use the tables or, if there are none, may not make them."""
    if not version(connection):
        # Without a schema that the role may use, the current schema is NULL.
        sql = "SELECT current_user, current_setting('search_path'), has_schema_privilege(current_schema(), 'CREATE')"
        role, schemas, may_create = connection.execute(sql).fetchone()
        if not may_create:
            found = f"there are no tables yet, and the role {role} may make none in the schema {schemas}"
            raise StartupError(f"{found}; grant it CREATE there, or start once with a role that may")
        return
    _require_own_tables_first(connection)
    missing = connection.execute(
        "SELECT current_user, name, wanted"
        " FROM regexp_split_to_table(?, ',') AS name, regexp_split_to_table(?, ',') AS wanted"
        " WHERE NOT has_table_privilege(to_regclass(name), wanted)",
        (",".join(TABLES + NODE_TABLES), _RIGHTS),
    ).fetchone()
    if missing:
        role, table, right = missing
        raise StartupError(f"the role {role} has no right to {right} on the table {table}; grant it {_RIGHTS} on all")


def _require_own_tables_first(connection: "Transaction") -> None:
    """Raise `StartupError` if another schema, earlier in the search path, has a table with a name of ours."""
    other = connection.execute(
        "SELECT name, CAST(relnamespace AS regnamespace)"
        " FROM regexp_split_to_table(?, ',') AS name JOIN pg_class ON pg_class.oid = to_regclass(name)"
        " WHERE relnamespace <> (SELECT relnamespace FROM pg_class WHERE oid = to_regclass('cardbeat_schema'))",
        (",".join(TABLES + NODE_TABLES),),
    ).fetchone()
    if other:
        found = f"the schema {other[1]} has a table {other[0]} too and stands first in search_path"
        raise StartupError(f"{found}; let search_path name cardbeat's schema first")


def weaknesses(connection: "Transaction") -> Iterator[tuple[bool, str]]:
    """The settings by which the server could lose or damage what it has confirmed."""
    fsync, full_page_writes, synchronous_commit, standbys = (
        connection.execute("SELECT current_setting(?)", (name,)).fetchone()[0] for name in _SETTINGS
    )
    if fsync == "off":
        yield True, "fsync is off, so a power cut can lose pings that were answered, or all; set fsync = on"
    if full_page_writes == "off":
        found = "full_page_writes is off, so a power cut can damage the database"
        yield False, f"{found}; set full_page_writes = on, unless its file system never writes half a page"
    if synchronous_commit == "off":
        # Serving sets it to on for each transaction.
        found = "synchronous_commit is off, with which the server confirms what a crash loses"
        yield False, f"{found}; set synchronous_commit = on for this role or database"
    if not standbys:
        yield False, _NO_STANDBY
    elif _waits_in_vain(connection):
        found = "no standby of synchronous_standby_names is connected, so nothing can be written"
        yield True, f"{found}; start one, and look at pg_stat_replication"


def clock_doubts(connection: "Transaction", clock: Clock) -> Iterator[tuple[bool, str]]:
    """Differences of the server's clock, which all nodes use, from this host's clock and from stored times."""
    asked_at = clock()
    (server,) = connection.execute("SELECT CAST(extract(epoch FROM clock_timestamp()) AS float8)").fetchone()
    now = clock()
    ahead = (asked_at + now) / 2 - server
    if abs(ahead) > SKEW_SECONDS + (now - asked_at) / 2:
        side = "ahead of" if ahead > 0 else "behind"
        found = f"this host's clock is {abs(ahead):.0f} s {side} the database server's, which counts"
        yield False, f"{found}; keep both by NTP"
    latest = last_moment(connection) if version(connection) else 0
    if server < latest - 60:
        found = f"the database server's says {utc_text(server)} UTC, which is before {utc_text(latest)}"
        yield True, f"{found}; set it, and keep it by NTP"


def _waits_in_vain(connection: "Transaction") -> bool:
    """Whether commits wait for a standby that is not connected; False also if this role must not know."""
    connected, known, waited_for = connection.execute(
        "SELECT count(*), count(sync_state), sum(CASE WHEN sync_state IN ('sync', 'quorum') THEN 1 ELSE 0 END)"
        " FROM pg_stat_replication"
    ).fetchone()
    return not connected or (known == connected and not waited_for)
