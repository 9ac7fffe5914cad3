"""Files of the package, read the same way from a folder and from inside the zipapp.

`importlib.resources` would read through the archive's whole list of names again for each file.
"""

import pkgutil


def read_bytes(name: str) -> bytes:
    """The file at a path inside the package, such as `schema/sqlite/001.sql`. Raises `OSError` if there is none."""
    data = pkgutil.get_data("cardbeat", name)
    if data is None:
        raise OSError(f"the package holds no {name}")
    return data


def read_text(name: str) -> str:
    return read_bytes(name).decode()
