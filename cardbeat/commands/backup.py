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
from cardbeat.host.system import keep_files_private


def parser() -> Parser:
    about = "Copy the database, also while it is served."
    note = "If restore would refuse the copy, FILE stays as it was."
    made = command("backup", about, DATA, note=note)
    what = "replaced if there"
    made.add_argument("file", metavar="FILE", type=file_path, help=what)
    return made


def run(given: Namespace) -> int:
    keep_files_private()
    if database_url() is not None:
        raise StartupError(
            "a PostgreSQL database is backed up with pg_dump"
        )
    back_up(given.data, given.file)
    size = os.stat(os.path.realpath(given.file)).st_size
    tell(given, {"file": str(given.file), "bytes": size})
    return 0
