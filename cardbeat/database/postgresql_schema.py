"""The schema in PostgreSQL: found, and brought up to date by one of all that start at the same moment."""

from cardbeat.database.postgresql_connection import DURABLY, Connection, roll_back
from cardbeat.database.schema import numbered_scripts
from cardbeat.errors import StartupError
from cardbeat.progress import tell_if_slow

MIGRATION_LOCK = 0x43424541
_NO_LIMITS = "SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0"
OLDEST_SERVER = 14
"""The oldest that is still maintained."""


def bring_up_to_date(connection: Connection) -> None:
    """Make the schema or bring it up to date, in one transaction. Raises `StartupError` for a newer one."""
    scripts = _scripts()
    if version(connection) == len(scripts):
        return
    # Whoever waited must see what was committed meanwhile, whatever is set for the role.
    connection.execute("BEGIN ISOLATION LEVEL READ COMMITTED")
    try:
        connection.execute(DURABLY)
        with tell_if_slow("bringing the database up to date"):
            # Whoever waits here, for as long as it takes, finds that it is done.
            connection.run_script(f"{_NO_LIMITS}; SELECT pg_advisory_xact_lock({MIGRATION_LOCK})")
            _run(connection, scripts)
    except BaseException:
        roll_back(connection)
        raise
    connection.execute("COMMIT")


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
    connection.execute("CREATE TABLE IF NOT EXISTS cardbeat_schema (version BIGINT PRIMARY KEY)")
    found = version(connection)
    for number, script in enumerate(scripts, 1):
        if number > found:
            connection.run_script(script)
            connection.execute("INSERT INTO cardbeat_schema (version) VALUES (?)", (number,))


def _scripts() -> list[str]:
    return numbered_scripts("postgresql")
