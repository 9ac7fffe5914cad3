"""Reads files of the package, from a folder and from inside the zipapp.

Not `importlib.resources`: for each file it would read the zipapp's list of names again.
"""

import pkgutil


def read_bytes(name: str) -> bytes:
    """The file at a path inside the package, such as `database/sqlite/007.sql`. Raises `OSError` if there is none."""
    try:
        data = pkgutil.get_data("cardbeat", name)
    except (EOFError, ImportError) as error:
        raise OSError(f"the zipapp was changed while it runs: {error!r}") from None
    if data is None:
        raise OSError(f"the package holds no {name}")
    return data


def read_text(name: str) -> str:
    return read_bytes(name).decode()
