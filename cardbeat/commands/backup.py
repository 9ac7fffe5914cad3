"""The command `backup`: copies a data folder's database to a file, if `restore` would take it."""

from argparse import Namespace

from cardbeat.commands.options import DATA, Parser, command, database_url, file_path, tell
from cardbeat.database.sqlite.backup import back_up
from cardbeat.errors import StartupError
from cardbeat.host.output import complain, tell_if_slow
from cardbeat.host.stopping import stop_signals_noted
from cardbeat.host.system import keep_files_private


def parser() -> Parser:
    about = (
        "Copy the database to a file, as of one moment, also while it is being served.\n"
        "If restore would refuse the copy, it goes to FILE.refused, FILE stays as it was,\n"
        "and the exit status is 1."
    )
    made = command("backup", about, DATA)
    made.add_argument(
        "file",
        metavar="FILE",
        type=file_path,
        help="written whole or not at all; replaced if there",
    )
    return made


def run(given: Namespace) -> int:
    keep_files_private()
    if database_url() is not None:
        raise StartupError(
            "backup copies the file of a data folder only"
            "; back up a PostgreSQL database with pg_dump"
        )
    outcome = f"{given.file} was not written"
    doing = "copying and checking the database"
    with stop_signals_noted(outcome) as require_going, tell_if_slow(doing):
        written, reason = back_up(given.data, given.file, require_going)
    if reason:
        found = f"{reason}, so restore would refuse it; {outcome}"
        advice = "keep the backups before it, and mend the database as docs/backup.md says"
        complain(f"{found}; {advice}")
    size = written.stat().st_size
    tell(given, {"file": str(written), "bytes": size, "refused": reason}, ())
    return 1 if reason else 0
