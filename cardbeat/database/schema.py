"""The versions of the tables, and the scripts that make them.

SQLite: from `010.sql` on each script makes all tables of a new file. A file of an older version is
replaced by a new one that gets its rows: the columns that both have, or from version 9 what
`from_9.sql` makes of them. So all files of a version have the same schema, however they came to be.
`007.sql` makes version 7, `008.sql` and `009.sql` change it. PostgreSQL: `007.sql` makes all
tables, and each later script changes them. A script that was released is never changed.
"""

from cardbeat.database.database import Transaction
from cardbeat.errors import StartupError
from cardbeat.files import read_text

VERSION = 10
"""The version that this program writes."""
OLDEST = 7
"""The oldest version that this program brings up to date."""
WHOLE = 10
"""From this version on each script of SQLite makes all tables."""

TABLES = ("keys", "checks", "outages", "alerts", "monitor")
"""All tables that a restore fills, each after those that its rows refer to."""


def script(engine: str, version: int) -> str:
    return read_text(f"database/{engine}/{version:03}.sql")


def require_known(found: int, place: str) -> None:
    """Raise `StartupError` for a version that can't be used. `place` names the database in it."""
    if found > VERSION:
        raise StartupError(
            f"{place} was written by a newer cardbeat (schema {found}); run that version"
        )
    if found < OLDEST:
        raise StartupError(
            f"{place} was written by an older cardbeat (schema {found}), and 1.0.0 is the last"
            " version that brings it up to date; start that one once, then this one"
        )


def last_moment(connection: Transaction) -> int:
    """The latest Unix time that serving has noted in a database, 0 without any."""
    (latest,) = connection.execute(
        "SELECT coalesce(max(value), 0) FROM monitor WHERE name LIKE 'last_%_at'"
    ).fetchone()
    return int(latest)
