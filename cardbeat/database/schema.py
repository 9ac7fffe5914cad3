"""The schema of each engine: a script in its folder that makes all of it, and later ones that change it."""

import contextlib
from typing import Final

from cardbeat.database.protocols import Transaction
from cardbeat.errors import StartupError
from cardbeat.resources import read_text

BASELINE: Final = 7
"""The version that the first script of each engine makes. A script is named after the version that it leads to."""
LAST_TO_MIGRATE: Final = "1.0.0"
"""The last release that brings a database of a version before `BASELINE` up to date."""

TABLES: Final = (
    "keys",
    "checks",
    "alerts",
    "monitor",
    "tests_taken",
    "totals_by_status",
    "totals_by_key",
    "moves",
)
"""All tables that a restore fills, each after the tables that its rows refer to."""
NUMBERED: Final = ("keys", "checks", "alerts", "moves")
"""Tables whose rows are numbered in the column `seq`."""
NODE_TABLES: Final = ("leases",)
"""Tables whose rows concern only the servers that have the database open now."""


def newest(engine: str) -> int:
    """The version that this program writes."""
    return BASELINE + len(_scripts(engine)) - 1


def missing_scripts(engine: str, found: int) -> list[tuple[int, str]]:
    """The scripts that a database of the version `found` needs, each with its version; 0 is an empty database."""
    return [(version, script) for version, script in enumerate(_scripts(engine), BASELINE) if version > found]


def require_known(engine: str, found: int, place: str) -> None:
    """Raise `StartupError` for a version that this program can't use. `place` names the database in the sentence."""
    if found > newest(engine):
        raise StartupError(f"{place} was written by a newer cardbeat (schema {found}); run that version")
    if found < BASELINE:
        older = f"{place} was written by an older cardbeat (schema {found}), and {LAST_TO_MIGRATE} is the last version"
        raise StartupError(f"{older} that brings it up to date; start that one once, then this one")


def last_moment(connection: Transaction) -> int:
    """The latest Unix time that serving has noted in a database, 0 without any."""
    (latest,) = connection.execute("SELECT max(value) FROM monitor WHERE name LIKE 'last_%_at'").fetchone()
    return int(latest or 0)


def _scripts(engine: str) -> list[str]:
    scripts: list[str] = []
    with contextlib.suppress(OSError):
        while True:
            scripts.append(read_text(f"database/{engine}/{BASELINE + len(scripts):03}.sql"))
    return scripts
