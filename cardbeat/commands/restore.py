"""The command `restore`: puts a backup in the place of a data folder's database, which is kept.

Or it brings the backup into a PostgreSQL database, which must be empty.
"""

from argparse import Namespace

from cardbeat.clock import wall_clock
from cardbeat.commands.options import (
    DATA,
    Parser,
    command,
    database_url,
    file_path,
    tell,
)
from cardbeat.database import require_driver
from cardbeat.database.sqlite import copies
from cardbeat.host.system import keep_files_private


def parser() -> Parser:
    about = "Put a backup in the place of the database."
    note = "Stop the server first. A PostgreSQL database must be empty."
    made = command("restore", about, DATA, note=note)
    what = "made by backup; stays"
    made.add_argument("file", metavar="FILE", type=file_path, help=what)
    return made


def run(given: Namespace) -> int:
    keep_files_private()
    url = database_url()
    if url is None:
        done = copies.restore(given.data, given.file, wall_clock())
    else:
        require_driver()
        from cardbeat.database.postgresql.restore import restore  # noqa: PLC0415

        done = restore(url, given.data, given.file)
    tell(given, done)
    return 0
