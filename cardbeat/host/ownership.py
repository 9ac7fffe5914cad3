"""The data folder: who may write in it, and whose its files are.

On Windows every check here passes: it has no such owners and modes.
"""

import contextlib
import errno
import logging
import os
import shlex
import stat
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from cardbeat.errors import StartupError
from cardbeat.host.system import current_groups, current_user, give_away, user_name

log = logging.getLogger(__name__)

CARDS: Final = "cards"
"""The folder of stored cards in the data folder."""


def prepare_folder(folder: Path, names: Iterable[str] = ()) -> None:
    """Make the data folder usable for this user and closed to strangers.

    1. Raise `StartupError` where this user can't write in it, or can't use one of these files.
    2. Raise `StartupError` where strangers can write and this user can't or must not change that.
    3. Create it, mode 700, if it is missing.
    4. Take the right to write from strangers. A mount that keeps the mode is told.
    """
    check_writable(folder, names)
    refusal = why_shared(folder)
    if refusal:
        raise StartupError(refusal)
    try:
        make_folder(folder)
    except OSError as error:
        raise StartupError(f"can't make the data folder {folder}: {error.strerror}") from None
    rights = rights_of_strangers(folder)
    if rights:
        with contextlib.suppress(OSError):
            folder.chmod(stat.S_IMODE(folder.stat().st_mode) & ~rights)
        outcome = "; they can't any more"
        if rights_of_strangers(folder):
            outcome = ", and its file system keeps that mode; mount it for this user alone"
        log.warning("others could write in the data folder %s%s", folder, outcome)


def make_folder(folder: Path) -> None:
    """Create the data folder, mode 700, if it is missing. Raises `OSError`."""
    # The folder holds webhook secrets and check ids.
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def check_writable(folder: Path, names: Iterable[str] = ()) -> None:
    """Raise `StartupError` if this user can't create or write the folder, or use these files."""
    refused = f"can't write in the data folder {folder}"
    try:
        place = folder.absolute()
        while status_of(place) is None and not place.is_symlink():
            place = place.parent
        if not place.is_dir() or not os.access(place, os.W_OK | os.X_OK):
            must = f"{place} must be a folder that is writable for this user"
            raise StartupError(f"{refused}: {must}{_command(place, folder)}")
    except OSError as error:
        raise StartupError(f"{refused}: {error.strerror}") from None
    for path in (folder / name for name in names):
        if path.exists() and not os.access(path, os.R_OK | os.W_OK):
            must = "it must be readable and writable for this user"
            raise StartupError(f"can't use {path}: {must}{_command(path, folder)}")


def _command(place: Path, folder: Path) -> str:
    """The end of an error line: what lets this user write; empty if the owner is not why."""
    user = current_user()
    found = status_of(place)
    if user is None or found is None or found.st_uid == user:
        return ""
    quoted = shlex.quote(str(folder.absolute()))
    command = f"chown -R {user_name(user)} {quoted}"
    if not folder.exists():
        command = f"mkdir -p {quoted} && {command}"
    return f"; it belongs to {user_name(found.st_uid)}, so run as root: {command}"


def rights_of_strangers(folder: Path) -> int:
    """The bits of the folder's mode that let strangers write in it; 0 if there are none.

    Strangers are neither its owner, nor root, nor in a group of this user. So `root:0 770` is right
    for a user in group 0 (OpenShift), and `root:1000 2775` for one in group 1000 (`fsGroup` of
    Kubernetes). Root takes a group with setgid for the service's.
    """
    user = current_user()
    try:
        found = folder.stat()
    except OSError:
        return 0
    if user is None:
        return 0
    is_ours = found.st_gid in current_groups() or (user == 0 and found.st_mode & stat.S_ISGID)
    rights = stat.S_IWOTH if is_ours else stat.S_IWOTH | stat.S_IWGRP
    return found.st_mode & rights


def why_shared(folder: Path) -> str | None:
    """Why this user must not use a folder in which strangers can write.

    None if none can, if this user can change that, or if no mode says anything: on a mount of SMB
    or FAT all files have the same.
    """
    if not rights_of_strangers(folder):
        return None
    found = folder.stat()
    told = f"others can write in the data folder {folder}"
    if found.st_mode & stat.S_ISVTX:
        advice = "name another with --data, and move cardbeat's files there if there are any"
        return f"{told}, which all users share; {advice}"
    user = current_user()
    if user is None or user in (0, found.st_uid) or not _has_modes(folder):
        return None
    return told + _command(folder, folder)


def _has_modes(folder: Path) -> bool:
    """Whether a new file that is made with mode 600 has it."""
    with contextlib.suppress(OSError), tempfile.NamedTemporaryFile(dir=folder) as file:
        return stat.S_IMODE(os.fstat(file.fileno()).st_mode) == 0o600
    return True


def status_of(path: Path) -> os.stat_result | None:
    """The status of the file or folder at a path, links followed; None if there can be none."""
    try:
        return path.stat()
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG):
            return None
        raise


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
