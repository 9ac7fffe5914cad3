"""The command line: runs the command that is named, and prints errors of the user in one line.

The command `name` is the module `cardbeat.commands.name`, for a word of Python `name_`: its
`parser` reads the arguments behind the name, and its `run` takes them.
"""

import importlib
import keyword
import os
import signal
import sys
from collections.abc import Sequence
from typing import Any

from cardbeat import __version__
from cardbeat.errors import StartupError
from cardbeat.host.output import complain, let_go_of_output, say
from cardbeat.host.system import on_stop_signals

COMMANDS = (
    "serve",
    "card",
    "cards",
    "keys",
    "checks",
    "import",
    "backup",
    "restore",
    "doctor",
)

INTERRUPTED = 130
"""The exit status after a stop signal, as of shells after Ctrl-C: 128 plus its number."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return the exit status.

    It is 2, with one line on stderr, for errors that the user can correct.
    """
    if argv is None:
        argv = sys.argv[1:]
    try:
        return _run(argv)
    except StartupError as error:
        complain(_without_urls(str(error), argv))
        return 2
    except KeyboardInterrupt:
        complain("stopped; what was done before is whole")
        return INTERRUPTED
    finally:
        let_go_of_output()


def _run(argv: Sequence[str]) -> int:
    if list(argv) == ["--version"]:
        # The parser of `serve` knows it too, and takes several times as long to import.
        say([f"cardbeat {__version__}"])
        return 0
    name = "serve"
    if argv and not argv[0].startswith("-"):
        name = argv[0]
        argv = argv[1:]
    if name not in COMMANDS:
        known = ", ".join(COMMANDS)
        raise StartupError(
            f"there is no command {name!r}; the commands are {known}"
        )
    if name != "serve":
        # Each cleans up what it was making: as after Ctrl-C, a `KeyboardInterrupt` is raised.
        on_stop_signals(signal.default_int_handler)
    # Only this one: importing all commands takes longer than most of them take to run.
    end = "_" if keyword.iskeyword(name) else ""
    module: Any = importlib.import_module(
        f"cardbeat.commands.{name}{end}"
    )
    status: int = module.run(module.parser().read(argv))
    return status


def _without_urls(sentence: str, argv: Sequence[str]) -> str:
    """The sentence without the URLs that were given: one that is refused may hold a password."""
    from cardbeat.text import without_urls  # noqa: PLC0415 - its patterns take long to compile

    # Of `--port=URL` the sentence may repeat all, or the URL alone.
    of_flags = [word.partition("=")[2] for word in argv]
    return without_urls(
        sentence, [*argv, *of_flags, *os.environ.values()]
    )
