"""Reads files that a person names: tiers and declared checks in TOML, and checks to import."""

import re
import stat
from pathlib import Path
from typing import Any

from cardbeat.errors import StartupError

MOST_BYTES = 1024 * 1024  # of a TOML file
MOST_PARTS = 16
_PART = r"""(?>[\w-]+|"(?:\\.|[^"\\\n])*+"|'[^'\n]*')[ \t]*+"""
_LONG_KEY = re.compile(rf"(?:^|[\[{{,])[ \t]*+(?:{_PART}\.[ \t]*+){{{MOST_PARTS}}}", re.MULTILINE)
"""More parts of a key than any file needs. `tomllib` takes a time that grows with the square of their number."""


def read_toml(path: Path) -> dict[str, Any]:
    """The content of a TOML file in UTF-8, with or without a byte order mark.

    Raises `StartupError` if the file can't be read, is not valid TOML or has what would take long to read.
    """
    import tomllib  # noqa: PLC0415 - a start without a file does not need it

    try:
        text = content_of(path, MOST_BYTES).decode("utf-8-sig")
        if _LONG_KEY.search(text):
            raise StartupError(f"{path} has a key of more than {MOST_PARTS} parts")
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        # Also raised for numbers of thousands of digits, thousands of nested lists, and bytes that are not UTF-8.
        raise StartupError(f"{path} is not valid TOML: {error}") from None


def content_of(path: Path, most_bytes: int) -> bytes:
    """The content of a file. Raises `StartupError` if it can't be read, is too large or no regular file."""
    try:
        # Opening a pipe would wait for its writer.
        if not stat.S_ISREG(path.stat().st_mode):
            raise StartupError(f"{path} is not a regular file")
        with path.open("rb") as file:
            content = file.read(most_bytes + 1)
    except OSError as error:
        raise StartupError(f"can't read {path}: {error.strerror}") from None
    if len(content) > most_bytes:
        raise StartupError(f"{path} is larger than {most_bytes // 2**20} MiB")
    return content
