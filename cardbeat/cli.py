"""The command line: finds the command that is asked for, and says in one line what stops it.

Each command is a module of `cardbeat.commands`: its `run` takes the arguments behind its name, gives the exit status.
"""

import sys
from collections.abc import Callable, Sequence

from cardbeat.commands import backup, card, doctor, keys, restore, serve
from cardbeat.errors import StartupError

COMMANDS: dict[str, Callable[[Sequence[str]], int]] = {
    "serve": serve.run,
    "card": card.run,
    "keys": keys.run,
    "backup": backup.run,
    "restore": restore.run,
    "doctor": doctor.run,
}


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
        return COMMANDS[name](argv[1:] if named else argv)
    except StartupError as error:
        print(f"cardbeat: {error}", file=sys.stderr)
        return 2
