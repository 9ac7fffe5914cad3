"""The command `restore`: puts a backup in the place of a data folder's database, and keeps what was there."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from cardbeat.clock import utc_text, wall_clock
from cardbeat.database.sqlite_file import FILE_NAME, last_moment_stored, open_read_only, start_up_errors
from cardbeat.database.sqlite_restore import restore
from cardbeat.options import DATA, DATABASE, Parser, add_json, file_path, require_file
from cardbeat.output import say
from cardbeat.progress import tell_if_slow
from cardbeat.stopping import stop_signals_noted
from cardbeat.system import current_user


def parser() -> Parser:
    made = Parser(
        "restore FILE [--data DIR] [--database URL] [--json]",
        "Put a backup in the place of the database, which is kept under another name.\nStop the server first.",
    )
    made.add_argument("file", metavar="FILE", type=file_path, help="made by backup; is checked first, and stays")
    for option in (DATA, DATABASE):
        option.add_to(made)
    add_json(made)
    return made


def run(argv: Sequence[str]) -> int:
    given = parser().parse_args(list(argv))
    require_file(DATABASE.value(given), "restore it with pg_restore")
    data = DATA.value(given)
    doing = "checking and copying the database"
    with stop_signals_noted("nothing was restored") as require_going, tell_if_slow(doing):
        kept = restore(data, given.file, wall_clock(), require_going)
    say([json.dumps(_as_json(data, kept))] if given.json else _report(data, given.file, kept))
    return 0


def _as_json(data: Path, kept: Path | None) -> dict[str, Any]:
    keys, checks, served_at = _contents(data)
    return {
        "database": str(data / FILE_NAME),
        "kept": None if kept is None else str(kept),
        "keys": keys,
        "checks": checks,
        "last_served_at": utc_text(served_at) if served_at else None,
    }


def _report(data: Path, source: Path, kept: Path | None) -> Iterator[str]:
    keys, checks, served_at = _contents(data)
    served = f"last served {utc_text(served_at)} UTC" if served_at else "never served"
    yield f"restored {data / FILE_NAME} from {source}: keys {keys}, checks {checks}, {served}"
    if kept is not None:
        yield f"the database before is kept as {kept}"
    if current_user() == 0 and data.stat().st_uid == 0:
        yield f"{data} belongs to root; if the server runs as another user, run: chown -R USER {data}"
    yield "now start the server" + (" and, when all is as it should be, remove the kept file" if kept else "")


def _contents(data: Path) -> tuple[int, int, float]:
    """How many keys and checks there are, and when they were last served, in Unix seconds; 0 if never."""
    path = data / FILE_NAME
    with start_up_errors(path), open_read_only(path) as connection:
        keys, checks = (
            connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in ("keys", "checks")
        )
    return keys, checks, last_moment_stored(data)
