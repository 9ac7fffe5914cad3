"""Reads files: those of the package, also inside the zipapp, and those that a person names."""

import pkgutil
import stat
from pathlib import Path
from typing import Any, Final

from cardbeat.errors import StartupError

MOST_TOML_BYTES: Final = 1024 * 1024


def read_bytes(name: str) -> bytes:
    """The file at a path inside the package, such as `database/sqlite/007.sql`.

    Raises `OSError` if there is none. Not by `importlib.resources`: that reads the zipapp's list of
    names again for each file.
    """
    try:
        data = pkgutil.get_data("cardbeat", name)
    except (EOFError, ImportError) as error:
        raise OSError(
            f"the zipapp was changed while it runs: {error!r}"
        ) from None
    if data is None:
        raise OSError(f"the package holds no {name}")
    return data


def read_text(name: str) -> str:
    """As `read_bytes`, in UTF-8."""
    return read_bytes(name).decode()


def read_toml(path: Path) -> dict[str, Any]:
    """The content of a TOML file in UTF-8, with or without a byte order mark.

    Raises `StartupError` if the file can't be read or is not valid TOML.
    """
    import tomllib  # noqa: PLC0415 - a start without a file does not need it

    content = content_of(path, MOST_TOML_BYTES)
    try:
        return tomllib.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        # Also for numbers of thousands of digits, thousands of nested lists, and other encodings.
        raise StartupError(f"{path} is not valid TOML: {error}") from None


def content_of(path: Path, most_bytes: int) -> bytes:
    """The content of a file a person names. Raises `StartupError` if it can't be read whole."""
    try:
        # Opening a pipe would wait for its writer.
        if not stat.S_ISREG(path.stat().st_mode):
            raise StartupError(f"{path} is not a regular file")
        with path.open("rb") as file:
            content = file.read(most_bytes + 1)
    except OSError as error:
        raise StartupError(
            f"can't read {path}: {error.strerror}"
        ) from None
    if len(content) > most_bytes:
        raise StartupError(
            f"{path} is larger than {most_bytes // 2**20} MiB"
        )
    return content
