"""What differs from one operating system to another, in one place: nothing else asks which system this is.

Each branch tests `sys.platform` in the form that type checkers know, so that mypy checks the code of every system.
"""

import contextlib
import errno
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, Final

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl
    import pwd
    import resource

IN_USE_SECONDS: Final = 0.5
"""How long Windows is asked again to replace or remove a file that somebody has open."""
IN_USE_PAUSE_SECONDS: Final = 0.01

MOST_SOCKETS: Final = 512 if sys.platform == "win32" else None
"""How many sockets one call can wait for, or None where only the limit of descriptors counts.

Windows has `select` alone, which CPython builds for 512.
"""

if sys.platform == "win32":
    HOW_TO_GET_FRIBIDI: Final = "put fribidi.dll beside python.exe"
elif sys.platform == "darwin":
    HOW_TO_GET_FRIBIDI: Final = "brew install fribidi"
else:
    HOW_TO_GET_FRIBIDI: Final = "install libfribidi0 (or fribidi)"
"""What to do where the Raqm in Pillow does not find this library."""

if sys.platform == "win32":
    # Ctrl-Break, and the closing of the console. SIGTERM never comes from outside there.
    STOP_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGBREAK)
else:
    STOP_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


def try_lock(descriptor: int) -> bool:
    """Whether the file's lock is now held through this descriptor, which did not hold it before. Never waits.

    The system frees it with the process, or when the descriptor is closed. Raises `OSError` where files have no locks.
    """
    try:
        if sys.platform == "win32":
            # The byte at the descriptor's position, which stays 0: lock files are empty, and nobody reads them.
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        # For a lock that is held, the C library of Windows says EACCES, that of wine nothing.
        if sys.platform == "win32" or isinstance(error, BlockingIOError):
            return False
        raise
    return True


def unlock(descriptor: int) -> None:
    """Give up a lock that `try_lock` has taken."""
    if sys.platform == "win32":
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)
    else:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


def replace(source: Path | str, target: Path | str) -> None:
    """Move a file to a name in the same file system, where at any moment either the old or the new one stands.

    Raises `OSError`; on Windows also while somebody has one of the two open, and then after half a second.
    """
    _once_closed(lambda: os.replace(source, target))


def remove(path: Path | str) -> None:
    """Delete a file. Raises `OSError` as `replace` does."""
    _once_closed(lambda: os.unlink(path))


def _once_closed(act: Callable[[], None]) -> None:
    give_up_at = time.monotonic() + (IN_USE_SECONDS if sys.platform == "win32" else 0)
    while True:
        try:
            return act()
        except PermissionError:
            # Readers are done in milliseconds; virus scanners and indexers take longer.
            if time.monotonic() >= give_up_at:
                raise
            time.sleep(IN_USE_PAUSE_SECONDS)


def sync_file(path: Path) -> None:
    """Return once the file's content is on the disk. Raises `OSError`."""
    # Windows wants a descriptor that could write.
    _sync(path, os.O_RDWR if sys.platform == "win32" else os.O_RDONLY)


def sync_folder(path: Path) -> None:
    """Return once the names in a folder are on the disk; on Windows nobody can ask for that. Raises `OSError`."""
    if sys.platform != "win32":
        _sync(path, os.O_RDONLY)


def _sync(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        if sys.platform == "darwin":
            # There fsync leaves the data in the drive's own memory. Not every file system knows this call.
            with contextlib.suppress(OSError):
                fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
                return
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def keep_files_private() -> None:
    """Let nobody but this user read the files made from now on. On Windows the folder's rights decide."""
    if sys.platform != "win32":
        os.umask(0o077)


def current_user() -> int | None:
    """The number of the user whose rights this program has, 0 for root; None on Windows, where users have none."""
    if sys.platform != "win32":
        return os.geteuid()
    return None


def user_name(number: int) -> str:
    """The name of a user, or the number of one that has no name here."""
    if sys.platform != "win32":
        with contextlib.suppress(KeyError):
            return pwd.getpwuid(number).pw_name
    return str(number)


def change_owner(descriptor: int, user: int, group: int) -> None:
    """Give an open file another owner and group; on Windows nothing happens. Raises `OSError`."""
    if sys.platform != "win32":
        os.fchown(descriptor, user, group)


def descriptor_limit(wanted: int) -> int:
    """How many files and sockets may be open, `wanted` at most, after raising the limit that far where allowed."""
    if sys.platform != "win32":
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        if soft != resource.RLIM_INFINITY and soft < allowed:
            # macOS may name no limit and still have one.
            with contextlib.suppress(OSError, ValueError):
                resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
                soft = allowed
        return wanted if soft == resource.RLIM_INFINITY else min(wanted, soft)
    return wanted


def on_stop_signals(handler: Callable[[int, FrameType | None], None]) -> None:
    """Let the handler be called for each signal that asks for a stop. In the main thread only."""
    for number in STOP_SIGNALS:
        signal.signal(number, handler)


if sys.platform == "win32":
    READ_FLAGS: Final = os.O_RDONLY | os.O_BINARY | os.O_NOINHERIT
else:
    READ_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""To open a file that must be one: no link is followed, and a pipe in its place holds nobody up."""

if sys.platform == "win32":
    LOCK_FLAGS: Final = os.O_RDWR | os.O_BINARY | os.O_NOINHERIT
else:
    LOCK_FLAGS: Final = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""The same to lock it. On Windows a link is followed, but only administrators can make one."""


def wake_on_signals(sender: socket.socket | None) -> None:
    """Let every signal send a byte through a socket that does not block; None ends that. In the main thread only.

    A handler runs only once the main thread is back in Python. On Windows no signal brings it back from a wait for
    sockets; elsewhere one does not that comes just before the wait begins, or in another thread.
    """
    signal.set_wakeup_fd(-1 if sender is None else sender.fileno(), warn_on_full_buffer=False)


def claim_port(listener: socket.socket) -> None:
    """Before `bind`: let the port be taken at once after a restart, and by nobody else meanwhile."""
    if sys.platform == "win32":
        # There SO_REUSEADDR would let a second program listen on a port that is in use.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
    else:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)


def epoll() -> Any:
    """Linux's own way to wait for many sockets, None elsewhere."""
    if sys.platform == "linux":
        return select.epoll()
    return None


if sys.platform == "win32":

    def send_together(client: socket.socket, parts: Sequence[bytes | memoryview]) -> int:
        return client.send(b"".join(parts))

else:
    send_together: Callable[[socket.socket, Sequence[bytes | memoryview]], int] = socket.socket.sendmsg
"""Sends several pieces as if they were one; how many bytes of them the system took. Raises `OSError`."""


if sys.platform == "linux":
    MORE_FOLLOWS: Final = socket.MSG_MORE
    sendfile: Callable[[int, int, int, int], int] | None = os.sendfile
else:
    MORE_FOLLOWS: Final = 0
    sendfile: Callable[[int, int, int, int], int] | None = None
"""To send a head and a file behind it without reading that, where both can go together.

macOS has a sendfile too, and no way to hold the head back until the file follows.
"""


def is_in_memory(descriptor: int, count: int) -> bool:
    """Whether the last of so many bytes of a file can be read without waiting for the disk, as far as is known."""
    if sys.platform == "linux":
        try:
            os.preadv(descriptor, [bytearray(1)], count - 1, os.RWF_NOWAIT)
        except BlockingIOError:
            return False
        except OSError:
            # Not every file system tells.
            return True
    return True


def reader_is_gone(error: OSError) -> bool:
    """Whether writing to a pipe failed because nobody reads it any more. Windows calls that an invalid argument."""
    return isinstance(error, BrokenPipeError) or (sys.platform == "win32" and error.errno == errno.EINVAL)
