"""The command `restore`: puts a backup in the place of a data folder's database, and keeps what was there.

Or it brings the backup into a PostgreSQL database, which must be empty.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from cardbeat.clock import utc_text, wall_clock
from cardbeat.commands.options import DATA, DATABASE, Parser, add_options, file_path
from cardbeat.database import require_driver
from cardbeat.database.sqlite.restore import Restored, restore
from cardbeat.host.output import say, tell_if_slow
from cardbeat.host.stopping import stop_signals_noted
from cardbeat.host.system import current_user, keep_files_private


def parser() -> Parser:
    made = Parser(
        "restore FILE [--data DIR] [--database URL] [--json]",
        "Put a backup in the place of the database, which is kept under another name.\nStop the server first. "
        "A PostgreSQL database must be empty.",
    )
    made.add_argument("file", metavar="FILE", type=file_path, help="made by backup; is checked first, and stays")
    add_options(made, DATA, DATABASE)
    return made


def run(argv: Sequence[str]) -> int:
    given = parser().parse_args(list(argv))
    keep_files_private()
    data, url = DATA.value(given), DATABASE.value(given)
    doing = "checking and copying the database"
    with stop_signals_noted("nothing was restored") as require_going, tell_if_slow(doing):
        if url is None:
            restored = restore(data, given.file, wall_clock(), require_going)
        else:
            require_driver()
            from cardbeat.database.postgresql.restore import restore as restore_server  # noqa: PLC0415

            restored = restore_server(url, data, given.file, require_going)
    say([json.dumps(_as_json(restored))] if given.json else _report(data, given.file, restored))
    return 0


def _as_json(restored: Restored) -> dict[str, Any]:
    return {
        "database": restored.database,
        "kept": None if restored.kept is None else str(restored.kept),
        "keys": restored.keys,
        "checks": restored.checks,
        "last_served_at": utc_text(restored.served_at) if restored.served_at else None,
    }


def _report(data: Path, source: Path, restored: Restored) -> Iterator[str]:
    database, keys, checks, served_at, kept = restored
    served = f"last served {utc_text(served_at)} UTC" if served_at else "never served"
    yield f"restored {database} from {source}: keys {keys}, checks {checks}, {served}"
    if kept is not None:
        yield f"the database before is kept as {kept}"
    if current_user() == 0 and data.stat().st_uid == 0:
        yield f"{data} belongs to root; if the server runs as another user, run: chown -R USER {data}"
    yield "now start the server" + (" and, if everything works, remove the kept file" if kept else "")
