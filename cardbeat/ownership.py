"""Whose a data folder and its files are, and what to do where that keeps the program out.

Windows has no such modes and owners: there nothing here has a say.
"""

import contextlib
import logging
import os
import shlex
import stat
from collections.abc import Iterable
from pathlib import Path

from cardbeat.errors import StartupError
from cardbeat.system import change_owner, current_user, user_name

log = logging.getLogger(__name__)

WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def check_writable(folder: Path, names: Iterable[str] = ()) -> None:
    """Raise `StartupError` where this user can't write in a data folder or make it, or use these files in it.

    Changes nothing.
    """
    try:
        place = folder.absolute()
        while (found := status_of(place)) is None and not place.is_symlink():
            place = place.parent
    except OSError as error:
        raise StartupError(f"can't write in the data folder {folder}: {error.strerror}") from None
    if found is None or not stat.S_ISDIR(found.st_mode):
        raise StartupError(f"can't write in the data folder {folder}: {place} is not a folder")
    if not os.access(place, os.W_OK | os.X_OK):
        how = command_to_get_in(folder, place)
        raise StartupError(f"can't write in the data folder {folder}: {place} must be writable for this user{how}")
    refuse_shared(folder)
    for path in (folder / name for name in names):
        if os.path.exists(path) and not os.access(path, os.R_OK | os.W_OK):
            how = command_to_get_in(folder, path)
            raise StartupError(f"can't use {path}: it must be readable and writable for this user{how}")


def prepare_folder(folder: Path) -> None:
    """Make a data folder if it is missing, one that others can't write to. Raises `StartupError`."""
    check_writable(folder)
    keep_others_out(folder)
    try:
        make_folder(folder)
    except OSError as error:
        raise StartupError(f"can't write in the data folder {folder}: {error.strerror}") from None


def make_folder(folder: Path) -> None:
    """Make a data folder if it is missing. Raises `OSError`."""
    # Owner only, as is all in it: the folder holds webhook secrets and check ids.
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def status_of(path: Path) -> os.stat_result | None:
    """The status of what is there, links followed; None where nothing is."""
    try:
        return path.stat()
    except FileNotFoundError:
        return None


def command_to_get_in(folder: Path, place: Path) -> str:
    """The command that lets this user use `place`, to stand behind a sentence that says it can't; or nothing.

    `place` is the data folder, a file in it or, where the folder does not exist yet, the one it is to be made in.
    """
    own = current_user()
    if own is None:
        return ""
    found = place.stat()
    if found.st_uid == own:
        # Else the mode lets us in, and it is something else that does not, such as a read-only file system.
        return "" if found.st_mode & stat.S_IWUSR else f"; run: chmod u+rwX {_quoted(place)}"
    user = user_name(own)
    if os.path.exists(folder):
        command = f"chown -R {user} {_quoted(folder)}"
    else:
        command = f"install -d -m 700 -o {user} {_quoted(folder)}"
    return f"; it belongs to {user_name(found.st_uid)}, so run as root: {command}"


def refuse_shared(folder: Path) -> None:
    """Raise `StartupError` for a folder that others may write to and that is not ours to take that from them."""
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
    """Take the right to write from all others, with a line in the log. Raises `StartupError` as `refuse_shared`."""
    refuse_shared(folder)
    if others_may_write(folder):
        mode = stat.S_IMODE(folder.stat().st_mode) & ~WRITABLE_BY_OTHERS
        try:
            folder.chmod(mode)
        except OSError as error:
            raise StartupError(f"can't change the mode of {folder}: {error.strerror}") from None
        log.warning("others could write to the data folder %s; they can't any more: its mode is now %o", folder, mode)


def others_may_write(folder: Path) -> bool:
    """False also for what is not there."""
    if current_user() is None:
        return False
    with contextlib.suppress(OSError):
        return bool(folder.stat().st_mode & WRITABLE_BY_OTHERS)
    return False


def create_private(path: Path) -> int:
    """A descriptor of a new, empty file that its owner alone may use; made by root, the folder's owner is its owner.

    So what root does in the folder of a service that runs as another user keeps nobody out. Raises `OSError`, also
    where there is a file or a link already: following one that another user made would give that user any file.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        give_away(descriptor, path.parent)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def give_away(descriptor: int, like: Path) -> None:
    """As root, give an open file the owner and group of another."""
    if current_user() == 0:
        found = like.stat()
        # A root that was denied the right to do so leaves the file its own.
        with contextlib.suppress(PermissionError):
            change_owner(descriptor, found.st_uid, found.st_gid)


def foreign_file(folder: Path, names: Iterable[str]) -> str | None:
    """A sentence where one of these files belongs to another user than a service's folder that it is in.

    Root, who may use all of them, has nothing in its way by that, but the service has.
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


def _quoted(path: Path) -> str:
    return shlex.quote(str(path.absolute()))
