"""The folders of stored cards on disk: what stands there, and what is removed because it is nobody's."""

import contextlib
import logging
import os
import re
import stat
from pathlib import Path
from typing import Final

from cardbeat.cards.eviction import StoredFile
from cardbeat.system import remove

log = logging.getLogger(__name__)

MAX_FILE_BYTES: Final = 128 * 1024
"""A larger card is not stored, so a larger file is not one of ours, and is not read to find out."""
LEFT_OVER_SECONDS: Final = 60
"""No write takes this long: a temporary file of this age belongs to nobody."""
TEMPORARY: Final = ".tmp"
"""What the name of a card's file ends with until it is whole."""

_VERSION = re.compile(r"[0-9a-f]{12}-[a-z]+")
"""The shape of a `RENDERER_VERSION`."""
_CARD = re.compile(r"[0-9a-f]{64}\.png|[a-z0-9_]+\.tmp")
"""The name of a card's file, finished or not."""


def is_temporary(name: str) -> bool:
    return name.endswith(TEMPORARY)


def files_in(folder: Path, now: float) -> list[StoredFile]:
    """Every stored card of a folder, its owner left open; what can't be one is removed. `now` is in Unix time."""
    found = []
    with contextlib.suppress(FileNotFoundError), os.scandir(folder) as entries:
        for entry in entries:
            try:
                status = entry.stat(follow_symlinks=False)
            except OSError:
                continue
            if not stat.S_ISREG(status.st_mode):
                continue
            left_over = is_temporary(entry.name) and status.st_mtime < now - LEFT_OVER_SECONDS
            if left_over or status.st_size > MAX_FILE_BYTES:
                removed(Path(entry.path))
            else:
                used_at = max(status.st_atime, status.st_mtime)
                found.append(StoredFile(used_at, status.st_size, entry.name, None))
    return found


def remove_other_versions(folder: Path) -> None:
    """What older renderers drew is never asked for again. Whatever else stands there is not ours to remove."""
    with contextlib.suppress(OSError):
        for other in folder.parent.iterdir():
            if other != folder and _VERSION.fullmatch(other.name) and not other.is_symlink():
                _remove_cards(other)


def _remove_cards(folder: Path) -> None:
    """The cards in a folder, and it with them if it holds nothing else."""
    with contextlib.suppress(OSError):
        for path in folder.iterdir():
            if _CARD.fullmatch(path.name) and path.is_file() and not path.is_symlink():
                removed(path)
        folder.rmdir()


def removed(path: Path) -> bool:
    """Whether the file is gone: one that can't be removed must not keep the others from it."""
    try:
        remove(path)
    except FileNotFoundError:
        return True
    except OSError as error:
        log.error("can't remove %s: %s", path, error.strerror)
        return False
    return True
