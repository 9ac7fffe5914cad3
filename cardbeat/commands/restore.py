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
from cardbeat.database.sqlite.copies import restore
from cardbeat.host.system import keep_files_private, stop_signals_noted


def parser() -> Parser:
    note = "Stop the server first. A PostgreSQL database must be empty."
    made = command(
        "restore",
        "Put a backup in the place of the database.",
        DATA,
        note=note,
    )
    made.add_argument(
        "file", metavar="FILE", type=file_path, help="made by backup; stays"
    )
    return made


def run(given: Namespace) -> int:
    keep_files_private()
    url = database_url()
    with stop_signals_noted("nothing was restored") as require_going:
        if url is None:
            done = restore(given.data, given.file, wall_clock(), require_going)
        else:
            require_driver()
            from cardbeat.database.postgresql.restore import (  # noqa: PLC0415
                restore as restore_server,
            )

            done = restore_server(url, given.data, given.file, require_going)
    tell(given, done)
    return 0
