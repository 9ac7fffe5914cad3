"""The command `backup`: copies the database of a data folder to a file, and checks the copy as `restore` does."""

import json
from collections.abc import Sequence

from cardbeat.commands.options import DATA, DATABASE, Parser, add_options, file_path
from cardbeat.database.sqlite.backup import back_up
from cardbeat.database.sqlite.rows import why_refused
from cardbeat.errors import StartupError
from cardbeat.host.output import complain, say, tell_if_slow
from cardbeat.host.stopping import stop_signals_noted
from cardbeat.host.system import keep_files_private


def parser() -> Parser:
    made = Parser(
        "backup FILE [--data DIR] [--json]",
        "Copy the database to a file, as of one moment, also while it is being served.\n"
        "Then check the file: the exit status is 1 if restore would refuse it.",
    )
    made.add_argument("file", metavar="FILE", type=file_path, help="written whole or not at all; replaced if there")
    DATA.add_to(made)
    made.add_argument(DATABASE.flag, metavar=DATABASE.metavar, help="refused: back up PostgreSQL with pg_dump")
    add_options(made)
    return made


def run(argv: Sequence[str]) -> int:
    given = parser().parse_args(list(argv))
    keep_files_private()
    if DATABASE.value(given) is not None:
        raise StartupError("backup copies the file of a data folder only; back up a PostgreSQL database with pg_dump")
    with stop_signals_noted(f"{given.file} was not written") as require_going, tell_if_slow("copying the database"):
        back_up(DATA.value(given), given.file, require_going)
    with stop_signals_noted(f"{given.file} was written and not checked") as require_going, tell_if_slow("checking it"):
        reason = next(iter(why_refused(given.file, require_going)), None)
    if reason:
        advice = "keep the backups before it, and mend the database as docs/backup.md says"
        complain(f"{reason}, so restore would refuse it; {advice}")
    if given.json:
        say([json.dumps({"file": str(given.file), "bytes": given.file.stat().st_size, "refused": reason})])
    return 1 if reason else 0
