"""The command `backup`: copies the database, of either engine, to a file."""

import json
from collections.abc import Sequence

from cardbeat.database import back_up_server
from cardbeat.database.sqlite_backup import back_up
from cardbeat.options import DATA, DATABASE, Parser, add_json, file_path
from cardbeat.output import say
from cardbeat.progress import tell_if_slow
from cardbeat.stopping import stop_signals_noted


def parser() -> Parser:
    made = Parser(
        "backup FILE [--data DIR] [--database URL] [--json]",
        "Copy the database to a file, as of one moment, also while it is being served.",
    )
    made.add_argument("file", metavar="FILE", type=file_path, help="written whole or not at all; replaced if there")
    for option in (DATA, DATABASE):
        option.add_to(made)
    add_json(made)
    return made


def run(argv: Sequence[str]) -> int:
    given = parser().parse_args(list(argv))
    data, url = DATA.value(given), DATABASE.value(given)
    with stop_signals_noted(f"{given.file} was not written") as require_going, tell_if_slow("copying the database"):
        if url is None:
            back_up(data, given.file, require_going)
        else:
            back_up_server(url, data, given.file, require_going)
    if given.json:
        say([json.dumps({"file": str(given.file), "bytes": given.file.stat().st_size})])
    return 0
