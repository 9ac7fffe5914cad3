"""Reads TOML files: tiers, and checks declared in a file."""

from pathlib import Path
from typing import Any

from cardbeat.errors import StartupError


def read_toml(path: Path) -> dict[str, Any]:
    """The content of a TOML file in UTF-8, with or without a byte order mark.

    Raises `StartupError` if the file can't be read or is not valid TOML.
    """
    import tomllib  # noqa: PLC0415 - a start without a file does not need it

    try:
        return tomllib.loads(path.read_text("utf-8-sig"))
    except OSError as error:
        raise StartupError(f"can't read {path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        # Also raised for numbers of thousands of digits, thousands of nested lists, and bytes that are not UTF-8.
        raise StartupError(f"{path} is not valid TOML: {error}") from None
