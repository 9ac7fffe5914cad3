"""The command `backup`: copies the database of a data folder to a file."""

import json
from collections.abc import Sequence

from cardbeat.commands.options import DATA, DATABASE, Parser, add_options, file_path
from cardbeat.database.sqlite.backup import back_up
from cardbeat.errors import StartupError
from cardbeat.host.output import say, tell_if_slow
from cardbeat.host.stopping import stop_signals_noted
from cardbeat.host.system import keep_files_private


def parser() -> Parser:
    about = "Copy the database to a file, as of one moment, also while it is being served."
    made = Parser("backup FILE [--data DIR] [--json]", about)
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
    if given.json:
        say([json.dumps({"file": str(given.file), "bytes": given.file.stat().st_size})])
    return 0
