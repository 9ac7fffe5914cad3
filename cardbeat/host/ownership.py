"""Owners and modes of the data folder and its files, and the command that repairs wrong ones.

On Windows every check here passes: it has no such owners and modes.
"""

import contextlib
import logging
import os
import shlex
import stat
from collections.abc import Iterable
from pathlib import Path

from cardbeat.errors import StartupError
from cardbeat.host.system import change_owner, current_user, user_name

log = logging.getLogger(__name__)

CARDS = "cards"
"""The folder of stored cards in the data folder."""
WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def check_writable(folder: Path, names: Iterable[str] = ()) -> None:
    """Raise `StartupError` if this user can't create or write the data folder, or use these files in it."""
    try:
        place = folder.absolute()
        while (found := status_of(place)) is None and not place.is_symlink():
            place = place.parent
    except OSError as error:
        raise _not_writable(folder, error.strerror) from None
    if found is None or not stat.S_ISDIR(found.st_mode):
        raise _not_writable(folder, f"{place} is not a folder")
    if not os.access(place, os.W_OK | os.X_OK):
        raise _not_writable(folder, f"{place} must be writable for this user{command_to_get_in(folder, place)}")
    refuse_shared(folder)
    for path in (folder / name for name in names):
        if os.path.exists(path) and not os.access(path, os.R_OK | os.W_OK):
            how = command_to_get_in(folder, path)
            raise StartupError(f"can't use {path}: it must be readable and writable for this user{how}")


def prepare_folder(folder: Path) -> None:
    """Create the data folder if it is missing, and remove other users' right to write in it. Raises `StartupError`."""
    check_writable(folder)
    keep_others_out(folder)
    try:
        make_folder(folder)
    except OSError as error:
        raise _not_writable(folder, error.strerror) from None


def make_folder(folder: Path) -> None:
    """Create the data folder, mode 700, if it is missing. Raises `OSError`."""
    # The folder holds webhook secrets and check ids.
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def status_of(path: Path) -> os.stat_result | None:
    """The status of the file or folder at a path, links followed; None if there is none."""
    try:
        return path.stat()
    except FileNotFoundError:
        return None


def is_in_place(path: Path, opened: os.stat_result) -> bool:
    """Whether the file that had this status when it was opened is still at its path."""
    try:
        return os.path.samestat(path.stat(), opened)
    except OSError:
        return False


def command_to_get_in(folder: Path, place: Path) -> str:
    """The end of an error line: the command that lets this user use `place`; empty if no command is known.

    `place` is the data folder, a file in it, or the parent in which the data folder can't be created.
    """
    own = current_user()
    if own is None:
        return ""
    found = place.stat()
    if found.st_uid == own:
        # If the mode already allows it, the cause is another one, such as a read-only file system.
        return "" if found.st_mode & stat.S_IWUSR else f"; run: chmod u+rwX {_quoted(place)}"
    command = f"chown -R {user_name(own)}" if os.path.exists(folder) else f"install -d -m 700 -o {user_name(own)}"
    return f"; it belongs to {user_name(found.st_uid)}, so run as root: {command} {_quoted(folder)}"


def refuse_shared(folder: Path) -> None:
    """Raise `StartupError` if other users may write in the folder and this user can't or must not change that."""
    user = current_user()
    if user is None or not others_may_write(folder):
        return
    found = folder.stat()
    what = f"others may write to the data folder {folder}"
    choose = f"choose a folder of its own, such as {folder / 'cardbeat'}"
    if found.st_mode & stat.S_ISVTX:
        raise StartupError(f"{what}, which all users share; {choose}")
    if user not in (0, found.st_uid):
        command = f"chown {user_name(user)} {_quoted(folder)}"
        raise StartupError(f"{what}, which belongs to {user_name(found.st_uid)}; {choose}, or run as root: {command}")


def keep_others_out(folder: Path) -> None:
    """Remove other users' right to write in the folder, and log it. Raises `StartupError` as `refuse_shared` does."""
    refuse_shared(folder)
    if others_may_write(folder):
        mode = stat.S_IMODE(folder.stat().st_mode) & ~WRITABLE_BY_OTHERS
        try:
            folder.chmod(mode)
        except OSError as error:
            raise StartupError(f"can't change the mode of {folder}: {error.strerror}") from None
        log.warning("others could write to the data folder %s; they can't any more: its mode is now %o", folder, mode)


def others_may_write(folder: Path) -> bool:
    """Whether group or others may write in the folder. False if there is none."""
    if current_user() is None:
        return False
    with contextlib.suppress(OSError):
        return bool(folder.stat().st_mode & WRITABLE_BY_OTHERS)
    return False


def create_private(path: Path, folder: Path | None = None) -> int:
    """A descriptor of a new, empty file with mode 600. If root creates it, it belongs to the owner of its folder.

    Another `folder` may be named: the one to which the file will be moved.

    So a service that runs as another user can still use a file that root made in its folder. Raises `OSError`, also if
    the path exists: following a link that another user made could overwrite any file.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        give_away(descriptor, folder or path.parent)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def give_away(descriptor: int, like: Path) -> None:
    """Give an open file the owner and group of the file `like`, if this user is root."""
    if current_user() == 0:
        found = like.stat()
        # Some containers deny root this right; the file then stays root's.
        with contextlib.suppress(PermissionError):
            change_owner(descriptor, found.st_uid, found.st_gid)


def foreign_file(folder: Path, names: Iterable[str]) -> str | None:
    """A sentence about the first of these files whose owner is not the folder's owner; None if there is no such file.

    Root can use such a file, but the service that runs as the folder's owner can't.
    """
    if current_user() is None or not os.path.isdir(folder) or folder.stat().st_uid == 0:
        return None
    owner = folder.stat().st_uid
    for path in (folder / name for name in names):
        with contextlib.suppress(OSError):
            if (other := path.stat().st_uid) != owner:
                command = f"chown -R {user_name(owner)} {_quoted(folder)}"
                return f"{path} belongs to {user_name(other)}, its folder to {user_name(owner)}; run as root: {command}"
    return None


def _not_writable(folder: Path, cause: str | None) -> StartupError:
    return StartupError(f"can't write in the data folder {folder}: {cause}")


def _quoted(path: Path) -> str:
    return shlex.quote(str(path.absolute()))
