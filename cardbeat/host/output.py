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
    widths = [
        max(map(len, column)) for column in zip(*lines, strict=True)
    ]
    return [
        "  ".join(map(str.ljust, line, widths)).rstrip() for line in lines
    ]


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
            sys.stdout.write(
                "".join(f"{printable(line)}\n" for line in lines)
            )
        sys.stdout.flush()
    except OSError as error:
        if not reader_is_gone(error):
            raise StartupError(f"can't print: {error.strerror}") from None


def complain(sentence: str) -> None:
    """Print one line to stderr, if there is anything behind it."""
    _to_stderr(f"cardbeat: {printable(sentence)}\n")


def show_progress(done: int, total: int) -> None:
    """Show on a terminal how much of a long step is done. The bar is gone at the end."""
    if sys.stderr is not None and sys.stderr.isatty():
        bar = "#" * (BAR_WIDTH * done // total)
        line = f"[{bar:{BAR_WIDTH}}] {done} of {total}"
        if done == total:
            line = " " * len(line)
        _to_stderr(f"{line}\r")


def _to_stderr(text: str) -> None:
    if sys.stderr is not None:
        with suppress(OSError):
            sys.stderr.write(text)
            sys.stderr.flush()


def let_go_of_output() -> None:
    """Flush stdout and stderr for the last time. What can't be written is dropped.

    Else Python's exit would flush it again, and print a trace.
    """
    for number, stream in ((1, sys.stdout), (2, sys.stderr)):
        try:
            if stream is not None:
                stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), number)
