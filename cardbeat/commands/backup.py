"""The command `backup`: copies the database of a data folder."""

from collections.abc import Sequence

from cardbeat.database_backup import back_up
from cardbeat.options import DATA, Parser, file_path
from cardbeat.progress import tell_if_slow
from cardbeat.stopping import stop_signals_noted


def run(argv: Sequence[str]) -> int:
    parser = Parser("backup FILE [--data DIR]", "Copy the database, as of one moment, also while it is being served.")
    DATA.add_to(parser)
    parser.add_argument("file", metavar="FILE", type=file_path, help="written whole or not at all; replaced if there")
    given = parser.parse_args(list(argv))
    with stop_signals_noted(f"{given.file} was not written") as require_going, tell_if_slow("copying the database"):
        back_up(DATA.value(given), given.file, require_going)
    return 0
