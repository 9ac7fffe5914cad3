"""The command `backup`: copies a data folder's database to a file, if `restore` would take it."""

import os
from argparse import Namespace

from cardbeat.commands.options import (
    DATA,
    Parser,
    command,
    database_url,
    file_path,
    tell,
)
from cardbeat.database.sqlite.copies import back_up
from cardbeat.errors import StartupError
from cardbeat.host.system import keep_files_private, stop_signals_noted


def parser() -> Parser:
    note = "If restore would refuse the copy, FILE stays as it was."
    made = command(
        "backup",
        "Copy the database, also while it is served.",
        DATA,
        note=note,
    )
    made.add_argument(
        "file", metavar="FILE", type=file_path, help="replaced if there"
    )
    return made


def run(given: Namespace) -> int:
    keep_files_private()
    if database_url() is not None:
        raise StartupError("a PostgreSQL database is backed up with pg_dump")
    with stop_signals_noted(f"{given.file} was not written") as require_going:
        back_up(given.data, given.file, require_going)
    tell(
        given,
        {
            "file": str(given.file),
            "bytes": os.stat(os.path.realpath(given.file)).st_size,
        },
    )
    return 0
