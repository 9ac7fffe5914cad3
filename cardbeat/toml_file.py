"""Reads the TOML files that people write for the program."""

import tomllib
from pathlib import Path
from typing import Any

from cardbeat.errors import StartupError


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a TOML file in UTF-8, with or without a byte order mark.

    Raises `StartupError` for a file that can't be read and for one that is not TOML.
    """
    try:
        return tomllib.loads(path.read_text("utf-8-sig"))
    except OSError as error:
        raise StartupError(f"can't read {path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        # Not only what the parser calls invalid: also thousands of digits or of nested lists, and what is no UTF-8.
        raise StartupError(f"{path} is not valid TOML: {error}") from None
