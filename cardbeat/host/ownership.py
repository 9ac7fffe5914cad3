"""The data folder: who may write in it, and whose its files are.

On Windows every check here passes: it has no such owners and modes.
"""

import contextlib
import logging
import os
import stat
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from cardbeat.errors import StartupError
from cardbeat.host.system import give_away, rights_of_strangers

log = logging.getLogger(__name__)

CARDS: Final = "cards"
"""The folder of stored cards in the data folder."""


def prepare_folder(folder: Path, names: Iterable[str] = ()) -> None:
    """Make the data folder usable for this user and closed to strangers.

    1. Raise `StartupError` where this user can't write in it, or can't use one of these files.
    2. Create it, mode 700, if it is missing.
    3. Take the right to write from strangers. A mount that keeps the mode is told.
    4. Raise `StartupError` where that fails, or where all users share the folder.
    """
    check_writable(folder, names)
    try:
        # It holds webhook secrets and check ids.
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StartupError(
            f"can't make the data folder {folder}: {error.strerror}"
        ) from None
    rights = rights_of_strangers(folder)
    if not rights:
        return
    told = f"others can write in the data folder {folder}"
    mode = stat.S_IMODE(folder.stat().st_mode)
    if mode & stat.S_ISVTX:
        raise StartupError(
            f"{told}, which all users share; name another with --data"
        )
    with contextlib.suppress(OSError):
        folder.chmod(mode & ~rights)
    if not rights_of_strangers(folder):
        log.warning("%s; that is taken from them now", told)
    elif _has_modes(folder):
        raise StartupError(
            f"{told}; give it to this user, or name another with --data"
        )
    else:
        keeps = "and its file system keeps that mode; mount it for this user alone"
        log.warning("%s, %s", told, keeps)


def check_writable(folder: Path, names: Iterable[str] = ()) -> None:
    """Raise `StartupError` if this user can't create or write the folder, or use these files."""
    place = folder
    while not os.path.lexists(place):
        place = place.parent
    if not os.path.isdir(place) or not os.access(
        place, os.W_OK | os.X_OK
    ):
        raise StartupError(
            f"can't write in the data folder {folder}:"
            f" {place.absolute()} must be a folder that is writable for this user"
        )
    for path in (folder / name for name in names):
        if path.exists() and not os.access(path, os.R_OK | os.W_OK):
            raise StartupError(
                f"can't use {path}: it must be writable for this user"
            )


def _has_modes(folder: Path) -> bool:
    """Whether a new file that is made with mode 600 has it."""
    with (
        contextlib.suppress(OSError),
        tempfile.NamedTemporaryFile(dir=folder) as file,
    ):
        return stat.S_IMODE(os.fstat(file.fileno()).st_mode) == 0o600
    return True


def create_private(path: Path, folder: Path | None = None) -> int:
    """A descriptor of a new, empty file with mode 600. Root gives it to the owner of its folder.

    So a service that runs as another user can use a file that root made. `folder` is the one to
    which the file will be moved, if that is another. Raises `OSError`, also if the path exists:
    following a link that another user made could overwrite any file.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        give_away(descriptor, folder or path.parent)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor
