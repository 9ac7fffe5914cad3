"""The command `restore`: puts a backup in the place of a data folder's database, which is kept.

Or it brings the backup into a PostgreSQL database, which must be empty.
"""

from argparse import Namespace

from cardbeat.clock import wall_clock
from cardbeat.commands.options import DATA, Parser, command, database_url, file_path, tell
from cardbeat.database import require_driver
from cardbeat.database.sqlite.copies import restore
from cardbeat.host.output import tell_if_slow
from cardbeat.host.stopping import stop_signals_noted
from cardbeat.host.system import keep_files_private


def parser() -> Parser:
    about = (
        "Put a backup in the place of the database, which is kept under another name.\n"
        "Stop the server first. A PostgreSQL database (CARDBEAT_DATABASE) must be empty."
    )
    made = command("restore", about, DATA)
    made.add_argument(
        "file", metavar="FILE", type=file_path, help="made by backup; is checked first, and stays"
    )
    return made


def run(given: Namespace) -> int:
    keep_files_private()
    url = database_url()
    doing = "checking and copying the database"
    with stop_signals_noted("nothing was restored") as require_going, tell_if_slow(doing):
        if url is None:
            done = restore(given.data, given.file, wall_clock(), require_going)
        else:
            require_driver()
            from cardbeat.database.postgresql.restore import restore as restore_server  # noqa: PLC0415

            done = restore_server(url, given.data, given.file, require_going)
    served_at = done["last_served_at"] or "never"
    counts = f"keys {done['keys']}, checks {done['checks']}, last served {served_at} (UTC)"
    lines = [f"restored {done['database']} from {given.file}: {counts}"]
    if done["kept"]:
        lines.append(
            f"the database before is kept as {done['kept']}; remove it when everything works"
        )
    lines.append("now start the server")
    tell(given, done, lines)
    return 0
