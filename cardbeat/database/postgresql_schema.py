"""The schema in PostgreSQL: found, and brought up to date by one of all that start at the same moment."""

import itertools
from typing import Final

from cardbeat.database.postgresql_connection import DURABLY, Connection, roll_back
from cardbeat.database.postgresql_errors import LockNotAvailable, Unconfirmed
from cardbeat.database.postgresql_examination import require_no_foreign_tables
from cardbeat.database.schema import numbered_scripts
from cardbeat.errors import StartupError
from cardbeat.progress import tell_if_slow

MIGRATION_LOCK = 0x43424541
OLDEST_SERVER = 14
"""The oldest that is still maintained."""
LOOKS_SECONDS: Final = (5.0, 10.0, 20.0, 40.0)
"""How long is waited for another session before each look at what it does; from then on as the last."""

_HOLDER: Final = (
    "SELECT pid, wait_event = 'SyncRep' AND clock_timestamp() - query_start > make_interval(secs => ?) AS is_stuck"
    " FROM pg_locks LEFT JOIN pg_stat_activity USING (pid) WHERE locktype = 'advisory' AND granted"
    " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    f" AND classid = 0 AND objid = {MIGRATION_LOCK} AND objsubid = 1"
)
"""Which session makes the tables, and whether its COMMIT has waited for a standby for so many seconds; NULL where this
role must not know."""
_NOT_CONFIRMED: Final = "the commit that makes the tables was not confirmed by a synchronous standby; start one"


def bring_up_to_date(connection: Connection) -> None:
    """Make the schema or bring it up to date, in one transaction.

    Raises `StartupError` for a newer one, and where the COMMIT waits for a standby that does not answer. The server
    goes on waiting for that one: to cancel it would keep what no standby has.
    """
    scripts = _scripts()
    if version(connection) == len(scripts):
        return
    _begin_alone(connection)
    try:
        with tell_if_slow("bringing the database up to date"):
            _run(connection, scripts)
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


def _begin_alone(connection: Connection) -> None:
    """Begin a transaction once no other session brings the schema up to date, for as long as that takes.

    Raises `StartupError` where the other one's COMMIT waits for a standby that does not answer.
    """
    doing = "waiting for another server that brings the database up to date"
    for seconds in itertools.chain(LOOKS_SECONDS, itertools.repeat(LOOKS_SECONDS[-1])):
        with tell_if_slow(doing):
            if _has_begun_alone(connection, seconds):
                return
        for pid, is_stuck in connection.execute(_HOLDER, (seconds,)).fetchall():
            if is_stuck:
                raise StartupError(_NOT_CONFIRMED)
            doing = f"still waiting for the database's process {pid}, which brings it up to date or waits for a standby"


def _has_begun_alone(connection: Connection, seconds: float) -> bool:
    # Whoever waited must see what was committed meanwhile, whatever is set for the role.
    connection.execute("BEGIN ISOLATION LEVEL READ COMMITTED")
    try:
        connection.execute(DURABLY)
        # Of a COMMIT that did not wait for the standby only a warning tells.
        connection.run_script("SET LOCAL statement_timeout = 0; SET LOCAL client_min_messages = warning")
        connection.run_script(
            f"SET LOCAL lock_timeout = {round(1000 * seconds)}; SELECT pg_advisory_xact_lock({MIGRATION_LOCK})"
        )
        connection.run_script("SET LOCAL lock_timeout = 0")
    except LockNotAvailable:
        roll_back(connection)
        return False
    except BaseException:
        roll_back(connection)
        raise
    return True


def version(connection: Connection) -> int:
    """The version of the schema that is there, 0 where there is none. Raises `StartupError` for one that is newer."""
    if connection.execute("SELECT to_regclass('cardbeat_schema')").fetchone() == (None,):
        return 0
    (found,) = connection.execute("SELECT coalesce(max(version), 0) FROM cardbeat_schema").fetchall()[0]
    if found > len(_scripts()):
        raise StartupError(f"the database was written by a newer cardbeat (schema {found}); run that version")
    return int(found)


def check_server(connection: Connection) -> None:
    """Raise `StartupError` for a server that can't hold what is to be stored."""
    number = connection.info.server_version // 10_000
    if number < OLDEST_SERVER:
        raise StartupError(f"PostgreSQL {number} is too old; use version {OLDEST_SERVER} or newer")
    if (encoding := connection.info.parameter_status("server_encoding")) != "UTF8":
        raise StartupError(f"the database has the encoding {encoding}; create one with the encoding UTF8")


def _run(connection: Connection, scripts: list[str]) -> None:
    # Not before this session is alone: those that another one makes just now would look like somebody else's.
    require_no_foreign_tables(connection)
    connection.execute("CREATE TABLE IF NOT EXISTS cardbeat_schema (version BIGINT PRIMARY KEY)")
    found = version(connection)
    for number, script in enumerate(scripts, 1):
        if number > found:
            connection.run_script(script)
            connection.execute("INSERT INTO cardbeat_schema (version) VALUES (?)", (number,))


def _scripts() -> list[str]:
    return numbered_scripts("postgresql")
