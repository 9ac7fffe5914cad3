"""What a command prints for whoever called it."""

import io
import os
import sys
from collections.abc import Iterable, Iterator, Sequence

from cardbeat.errors import StartupError
from cardbeat.system import reader_is_gone


def printable(text: str) -> str:
    r"""A text that stays on its line as it is read.

    Control characters, those that turn the direction of text and what else is not seen are written as escapes, such as
    \u202e.
    """
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
        for character in text
    )


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Lines of columns under their headings."""
    lines = [headings, *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        yield "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()


def say(lines: Iterable[str], *, must_arrive: bool = False) -> None:
    """Print lines, in any encoding. Raises `StartupError` if they can't be written.

    A reader that has seen enough and closed its end of a pipe is no error, unless the lines `must_arrive`.
    """
    if sys.stdout is None:
        raise StartupError("can't print: stdout is closed")
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        sys.stdout.write("".join(f"{line}\n" for line in lines))
        sys.stdout.flush()
    except OSError as error:
        # At its end Python would try again to write what is left, and fail with a trace.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if must_arrive or not reader_is_gone(error):
            raise StartupError(f"can't print: {error.strerror}") from None
