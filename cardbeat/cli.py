"""The command line: runs the command that is named, and prints errors of the user in one line.

The command `name` is the function `run` of the module `cardbeat.commands.name`, for a word of Python of `name_`.
"""

import importlib
import keyword
import os
import sys
from collections.abc import Callable, Sequence

from cardbeat import __version__
from cardbeat.errors import StartupError
from cardbeat.host.output import complain, let_go_of_output, say

COMMANDS = ("serve", "card", "cards", "keys", "checks", "import", "backup", "restore", "doctor", "completion")

INTERRUPTED = 130
"""The exit status after Ctrl-C, by the convention of shells: 128 plus the number of the signal."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return the exit status: 2, with one line on stderr, for errors that the user can correct."""
    argv = sys.argv[1:] if argv is None else argv
    named = bool(argv) and not argv[0].startswith("-")
    name = argv[0] if named else "serve"
    try:
        if [*argv] == ["--version"]:
            # The parser of `serve` knows it too, and takes several times as long to import.
            say([f"cardbeat {__version__}"])
            return 0
        if name not in COMMANDS:
            raise StartupError(f"there is no command {name!r}; the commands are {', '.join(COMMANDS)}")
        # Only this one: importing all commands takes longer than most of them take to run.
        module = f"{name}_" if keyword.iskeyword(name) else name
        run: Callable[[Sequence[str]], int] = importlib.import_module(f"cardbeat.commands.{module}").run
        return run(argv[1:] if named else argv)
    except StartupError as error:
        from cardbeat.passwords import without_urls  # noqa: PLC0415 - its patterns take long to compile

        # The line may repeat a value that was refused, and that may be the URL of a database.
        given = [*argv, *(value for name, value in os.environ.items() if name.startswith("CARDBEAT_"))]
        complain(without_urls(str(error), given))
        return 2
    except KeyboardInterrupt:
        return INTERRUPTED
    finally:
        let_go_of_output()
