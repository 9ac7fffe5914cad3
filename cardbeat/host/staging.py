"""New files are written beside their final place, and then moved there in one step.

`written_whole` writes one file, `staging_folder` is a folder for several. A killed process leaves
its staging folder behind. The lock file in it shows whether it is still in use, because the system
frees the lock when the process ends.
"""

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from cardbeat.host.system import (
    LOCK_FLAGS,
    give_away,
    remove,
    replace,
    try_lock,
)

PREFIX = ".cardbeat-"
LOCK = "lock"


@contextlib.contextmanager
def written_whole(path: Path) -> Iterator[BinaryIO]:
    """A new file that takes the place, mode and owner of `path`; after an error nothing changed."""
    # A name that can't be guessed, and "x": else a link of that name would lead elsewhere.
    temporary = path.with_name(f"{PREFIX}{os.urandom(8).hex()}.tmp")
    try:
        with temporary.open("xb") as file:
            yield file
            if path.exists():
                give_away(file.fileno(), path)
                temporary.chmod(stat.S_IMODE(path.stat().st_mode))
        replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            remove(temporary)
        raise


@contextlib.contextmanager
def staging_folder(parent: Path) -> Iterator[Path]:
    """A new private folder in `parent`; the folder and its content are removed at the end.

    First removes the staging folders that killed processes left in `parent`. Raises `OSError`.
    """
    import tempfile  # noqa: PLC0415 - the command `card` does without it

    remove_left_behind(parent)
    with tempfile.TemporaryDirectory(
        prefix=PREFIX, dir=parent, ignore_cleanup_errors=True
    ) as name:
        descriptor = os.open(
            Path(name, LOCK), LOCK_FLAGS | os.O_CREAT | os.O_EXCL, 0o600
        )
        try:
            # A file system may have no locks.
            with contextlib.suppress(OSError):
                try_lock(descriptor)
                os.write(descriptor, b"was locked")
            yield Path(name)
        finally:
            os.close(descriptor)


def remove_left_behind(parent: Path) -> None:
    """Remove the staging folders in `parent` that no process uses, as their locks tell."""
    import shutil  # noqa: PLC0415 - as above

    for lock in parent.glob(f"{PREFIX}*/{LOCK}"):
        with contextlib.suppress(OSError):
            descriptor = os.open(lock, LOCK_FLAGS)
            try:
                is_left = os.fstat(descriptor).st_size > 0 and try_lock(
                    descriptor
                )
            finally:
                os.close(descriptor)
            if is_left:
                shutil.rmtree(lock.parent)
