"""Reads TOML files: tiers, and checks declared in a file."""

import re
import stat
from pathlib import Path
from typing import Any

from cardbeat.errors import StartupError

MOST_BYTES = 1024 * 1024
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
        # Opening a pipe would wait for its writer.
        if not stat.S_ISREG(path.stat().st_mode):
            raise StartupError(f"{path} is not a regular file")
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise StartupError(f"{path} is larger than 1 MiB")
        text = content.decode("utf-8-sig")
        if _LONG_KEY.search(text):
            raise StartupError(f"{path} has a key of more than {MOST_PARTS} parts")
        return tomllib.loads(text)
    except OSError as error:
        raise StartupError(f"can't read {path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        # Also raised for numbers of thousands of digits, thousands of nested lists, and bytes that are not UTF-8.
        raise StartupError(f"{path} is not valid TOML: {error}") from None
