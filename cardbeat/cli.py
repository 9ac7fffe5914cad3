"""The command line: finds the command that is asked for, and says in one line what stops it.

Each command is the module of its name in `cardbeat.commands`: `run` takes the arguments that stand behind the name and
returns the exit status.
"""

import importlib
import sys
from collections.abc import Callable, Sequence

from cardbeat.errors import StartupError
from cardbeat.passwords import without_passwords

COMMANDS = ("serve", "card", "keys", "checks", "backup", "restore", "doctor", "completion")

INTERRUPTED = 130
"""The exit status after Ctrl-C, as shells have it: 128 and the signal's number."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command, by default that of the process's own arguments.

    The exit status is 2, with one line on stderr, for whatever the operator must change.
    """
    argv = sys.argv[1:] if argv is None else argv
    named = bool(argv) and not argv[0].startswith("-")
    name = argv[0] if named else "serve"
    try:
        if name not in COMMANDS:
            raise StartupError(f"there is no command {name!r}; the commands are {', '.join(COMMANDS)}")
        return _command(name)(argv[1:] if named else argv)
    except StartupError as error:
        # What is refused may be the URL of a database where it does not belong.
        print(f"cardbeat: {without_passwords(str(error))}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return INTERRUPTED


def _command(name: str) -> Callable[[Sequence[str]], int]:
    # Only the one that is needed: from the artifact, importing all of them takes longer than most take to run.
    run: Callable[[Sequence[str]], int] = importlib.import_module(f"cardbeat.commands.{name}").run
    return run
