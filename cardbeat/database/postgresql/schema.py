"""Makes the tables in PostgreSQL or brings them up to date. Of several servers that start at once, one does it."""

from typing import Final

from cardbeat.database.postgresql.connection import DURABLY, Connection, roll_back
from cardbeat.database.postgresql.errors import LockNotAvailable, Unconfirmed
from cardbeat.database.postgresql.examination import is_served, require_no_foreign_tables, version
from cardbeat.database.schema import missing_scripts
from cardbeat.errors import StartupError
from cardbeat.host.output import tell_if_slow

MIGRATION_LOCK = 0x43424541
"""The key of an advisory lock, which the session holds that makes the tables."""
OLDEST_SERVER = 14
"""The oldest PostgreSQL that is still maintained."""
LOOK_SECONDS: Final = 10.0
"""How long to wait for the lock before each look at the session that holds it."""

_BEGIN: Final = (
    # It must see what was committed while it waited, even if the role is set to another isolation level.
    f"BEGIN ISOLATION LEVEL READ COMMITTED; {DURABLY};"
    # A COMMIT that did not wait for the standby says so in a warning only.
    " SET LOCAL statement_timeout = 0; SET LOCAL client_min_messages = warning;"
    # A limit that is set for the role would end a start over a slow network.
    " SET LOCAL idle_in_transaction_session_timeout = 0;"
    " SET LOCAL lock_timeout = {milliseconds};"
    f" SELECT pg_advisory_xact_lock({MIGRATION_LOCK}); SET LOCAL lock_timeout = 0"
)
_HOLDER: Final = (
    "SELECT pid, wait_event = 'SyncRep' AND clock_timestamp() - query_start > make_interval(secs => ?) AS is_stuck"
    " FROM pg_locks LEFT JOIN pg_stat_activity USING (pid) WHERE locktype = 'advisory' AND granted"
    " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    f" AND classid = 0 AND objid = {MIGRATION_LOCK} AND objsubid = 1"
)
"""The session that makes the tables, and whether its COMMIT has waited for a standby for so many seconds. That is NULL
if this role must not know."""
_NOT_CONFIRMED: Final = "the commit that makes the tables was not confirmed by a synchronous standby; start one"


def bring_up_to_date(connection: Connection) -> None:
    """Make the tables or bring them up to date, in one transaction.

    Raises `StartupError` for a version that can't be used, while a server of an older version uses the database, and if
    a synchronous standby does not confirm the COMMIT. The server goes on waiting for that standby: to cancel the COMMIT
    would keep what no standby has.
    """
    if not missing_scripts("postgresql", version(connection)):
        return
    _begin_alone(connection)
    try:
        _require_unused(connection)
        with tell_if_slow("bringing the database up to date"):
            _run_scripts(connection)
        ((standbys,),) = connection.execute("SELECT current_setting('synchronous_standby_names')").fetchall()
    except BaseException:
        roll_back(connection)
        raise
    try:
        connection.commit_in_time()
    except Unconfirmed:
        if standbys and not connection.closed:
            raise StartupError(_NOT_CONFIRMED) from None
        raise


def _require_unused(connection: Connection) -> None:
    """Raise `StartupError` while a server of an older version holds the lease: its sweeps would fail in new tables."""
    if not missing_scripts("postgresql", version(connection)):
        return
    if connection.execute("SELECT to_regclass('leases') IS NULL").fetchone() == (True,):
        return
    connection.execute("LOCK TABLE leases IN EXCLUSIVE MODE")
    if is_served(connection):
        found = "a server of an older version uses the database"
        raise StartupError(f"{found}; stop all its servers, and start one with this version first")


def _begin_alone(connection: Connection) -> None:
    """Begin a transaction with the lock, as soon as no other session holds it.

    Raises `StartupError` if the COMMIT of the session that holds it waits for a standby.
    """
    doing = "waiting for another server that brings the database up to date"
    while True:
        with tell_if_slow(doing):
            if _has_begun_alone(connection):
                return
        for pid, is_stuck in connection.execute(_HOLDER, (LOOK_SECONDS,)).fetchall():
            if is_stuck:
                raise StartupError(_NOT_CONFIRMED)
            doing = f"still waiting for the database's process {pid}, which brings it up to date or waits for a standby"


def _has_begun_alone(connection: Connection) -> bool:
    try:
        connection.run_script(_BEGIN.format(milliseconds=round(1000 * LOOK_SECONDS)))
    except BaseException as error:
        roll_back(connection)
        if isinstance(error, LockNotAvailable):
            return False
        raise
    return True


def check_server(connection: Connection) -> None:
    """Raise `StartupError` for a server that is too old or has another encoding."""
    number = connection.info.server_version // 10_000
    if number < OLDEST_SERVER:
        raise StartupError(f"PostgreSQL {number} is too old; use version {OLDEST_SERVER} or newer")
    if (encoding := connection.info.parameter_status("server_encoding")) != "UTF8":
        raise StartupError(f"the database has the encoding {encoding}; create one with the encoding UTF8")


def _run_scripts(connection: Connection) -> None:
    # Only with the lock: tables that another session is making would look like those of another program.
    require_no_foreign_tables(connection)
    connection.execute("CREATE TABLE IF NOT EXISTS cardbeat_schema (version BIGINT PRIMARY KEY)")
    for number, script in missing_scripts("postgresql", version(connection)):
        connection.run_script(script)
        connection.execute("INSERT INTO cardbeat_schema (version) VALUES (?)", (number,))
