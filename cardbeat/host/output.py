"""Text on the terminal: safe characters, tables, a closed or full output."""

import io
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from cardbeat.errors import StartupError
from cardbeat.host.system import reader_is_gone

BAR_WIDTH: Final = 40


def printable(text: str) -> str:
    r"""The text with every invisible character written as an escape, such as \u202e.

    So no text can move the cursor, hide itself, or change its direction on a terminal.
    """
    return "".join(
        character
        if character.isprintable()
        else character.encode("unicode_escape").decode("ascii")
        for character in text
    )


def table(rows: Sequence[Mapping[str, object]]) -> list[str]:
    """Lines of aligned columns, the names of the members first; invisible characters escaped."""
    lines = [[name.upper() for name in row] for row in rows[:1]]
    lines += [
        [printable("-" if it is None else str(it)) for it in row.values()]
        for row in rows
    ]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return ["  ".join(map(str.ljust, line, widths)).rstrip() for line in lines]


def say(lines: Iterable[str] | bytes) -> None:
    """Print lines, with what is invisible or not in the encoding escaped, or bytes as they are.

    Raises `StartupError` if they can't be written. A pipe closed by its reader
    (`cardbeat keys list | head`) is no error.
    """
    if sys.stdout is None:
        raise StartupError("can't print: stdout is closed")
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        if isinstance(lines, bytes):
            sys.stdout.buffer.write(lines)
        else:
            sys.stdout.write("".join(f"{printable(line)}\n" for line in lines))
        sys.stdout.flush()
    except OSError as error:
        _let_go(1)
        if not reader_is_gone(error):
            raise StartupError(f"can't print: {error.strerror}") from None


def complain(sentence: str) -> None:
    """Print one line to stderr, if there is anything behind it."""
    if sys.stderr is not None:
        with suppress(OSError):
            print(
                f"cardbeat: {printable(sentence)}", file=sys.stderr, flush=True
            )


def show_progress(done: int, total: int) -> None:
    """Show on a terminal how much of a long step is done. The bar is gone at the end."""
    if sys.stderr is not None and sys.stderr.isatty():
        bar = f"[{'#' * (BAR_WIDTH * done // total):{BAR_WIDTH}}] {done} of {total}"
        with suppress(OSError):
            print(
                bar if done < total else " " * len(bar),
                end="\r",
                file=sys.stderr,
                flush=True,
            )


def let_go_of_output() -> None:
    """Flush stdout and stderr for the last time."""
    for number, stream in ((1, sys.stdout), (2, sys.stderr)):
        try:
            if stream is not None:
                stream.flush()
        except OSError:
            _let_go(number)


def _let_go(number: int) -> None:
    """Point stdout or stderr at the null device: Python's exit would flush it and print a trace."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), number)
