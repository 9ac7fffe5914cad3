"""The command `backup`: copies the database of a data folder to a file, if `restore` would take it."""

import json
from collections.abc import Sequence

from cardbeat.commands.options import DATA, DATABASE, Parser, add_options, file_path
from cardbeat.database.sqlite.backup import back_up
from cardbeat.errors import StartupError
from cardbeat.host.output import complain, say, tell_if_slow
from cardbeat.host.stopping import stop_signals_noted
from cardbeat.host.system import keep_files_private


def parser() -> Parser:
    made = Parser(
        "backup FILE [--data DIR] [--json]",
        "Copy the database to a file, as of one moment, also while it is being served.\n"
        "If restore would refuse the copy, it goes to FILE.refused, FILE stays as it was,\n"
        "and the exit status is 1.",
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
    doing = "copying and checking the database"
    with stop_signals_noted(f"{given.file} was not written") as require_going, tell_if_slow(doing):
        written, reason = back_up(DATA.value(given), given.file, require_going)
    if reason:
        advice = "keep the backups before it, and mend the database as docs/backup.md says"
        complain(f"{reason}, so restore would refuse it; {given.file} was not written; {advice}")
    if given.json:
        say([json.dumps({"file": str(written), "bytes": written.stat().st_size, "refused": reason})])
    return 1 if reason else 0
