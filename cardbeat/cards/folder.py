"""The folders of stored cards on disk: lists their files, and removes those that are left over."""

import contextlib
import logging
import os
import re
import stat
from pathlib import Path
from typing import Final

from cardbeat.cards.eviction import StoredFile
from cardbeat.host.system import remove

log = logging.getLogger(__name__)

MAX_FILE_BYTES: Final = 128 * 1024  # a larger card is not stored, so a larger file is no card, and is not read
LEFT_OVER_SECONDS: Final = 60
"""No write takes this long: a temporary file of this age is left over from a process that ended."""
TEMPORARY: Final = ".tmp"  # suffix of a card's file until it is whole

_VERSION = re.compile(r"[0-9a-f]{12}-[a-z]+")  # the shape of a `renderer_version`
_CARD = re.compile(r"[0-9a-f]{64}\.png|[a-z0-9_]+\.tmp")  # the name of a card's file, finished or not


def files_in(folder: Path, now: float) -> list[StoredFile]:
    """Every stored card of a folder, without its owner. Files that can't be cards are removed. `now` is Unix time."""
    found = []
    with contextlib.suppress(FileNotFoundError), os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                status = entry.stat(follow_symlinks=False)
                if not stat.S_ISREG(status.st_mode):
                    continue
                left_over = entry.name.endswith(TEMPORARY) and status.st_mtime < now - LEFT_OVER_SECONDS
                if left_over or status.st_size > MAX_FILE_BYTES:
                    removed(Path(entry.path))
                else:
                    used_at = max(status.st_atime, status.st_mtime)
                    found.append(StoredFile(used_at, status.st_size, entry.name, None))
    return found


def remove_other_versions(folder: Path) -> None:
    """Remove the cards of other renderers' versions, which are never served again. Other files stay."""
    with contextlib.suppress(OSError):
        for other in folder.parent.iterdir():
            if other != folder and _VERSION.fullmatch(other.name) and not other.is_symlink():
                _remove_cards(other)


def _remove_cards(folder: Path) -> None:
    """Remove the cards in a folder, and the folder if it is empty then."""
    with contextlib.suppress(OSError):
        for path in folder.iterdir():
            if _CARD.fullmatch(path.name) and path.is_file() and not path.is_symlink():
                removed(path)
        folder.rmdir()


def removed(path: Path) -> bool:
    """Remove a file; False, with the cause in the log, if that fails, so that the others can still be removed."""
    try:
        with contextlib.suppress(FileNotFoundError):
            remove(path)
    except OSError as error:
        log.error("can't remove %s: %s", path, error.strerror)
        return False
    return True
