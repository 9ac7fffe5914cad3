"""The differences between operating systems. No other module asks which system this is.

Each branch tests `sys.platform` in the form that type checkers understand, so mypy checks the code
of every system.
"""

import contextlib
import errno
import os
import signal
import socket
import stat
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Final

if sys.platform == "win32":
    import msvcrt

    # SIGBREAK: Ctrl-Break, and closing the console. Windows never sends SIGTERM from outside.
    STOP_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGBREAK)
    _FILE_FLAGS: Final = os.O_BINARY | os.O_NOINHERIT
else:
    import fcntl
    import resource

    # SIGHUP: the terminal was closed.
    STOP_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    _FILE_FLAGS: Final = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

READ_FLAGS: Final = os.O_RDONLY | _FILE_FLAGS
"""Flags to read a regular file: no link is followed, and opening a pipe does not block."""
LOCK_FLAGS: Final = os.O_RDWR | _FILE_FLAGS
"""Flags to open a lock file: as `READ_FLAGS`. Windows follows links, but only administrators can
make them there."""

LOCK_POLL_SECONDS: Final = 0.0005
"""From one attempt to the next: finds the lock free between two commits of another process."""
IN_USE_SECONDS: Final = 0.5
"""On Windows, a file that another program has open can't be replaced or removed: retry for this
long."""
IN_USE_PAUSE_SECONDS: Final = 0.01

UNSHAPED: Final = (
    "Pillow can't shape text here, so letters are not joined as they are written; install FriBiDi"
    " (libfribidi0, fribidi, or on Windows fribidi.dll beside python.exe)"
)
"""What is wrong with cards in Indic scripts, Khmer, Pashto and others without Raqm."""


def send_datagram(address: str, content: bytes) -> None:
    """Send to a Unix socket, without waiting. Raises `OSError`. Windows has no such sockets."""
    if sys.platform != "win32":
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.setblocking(False)
            sender.sendto(content, address)


def try_lock(descriptor: int, seconds: float = 0) -> bool:
    """Take the file's lock through this descriptor; False if another one holds it for so long.

    The system frees the lock when the descriptor is closed or the process ends. Raises `OSError` on
    a file system without locks.
    """
    end = time.monotonic() + seconds
    while not _takes_lock(descriptor):
        if time.monotonic() >= end:
            return False
        time.sleep(LOCK_POLL_SECONDS)
    return True


def _takes_lock(descriptor: int) -> bool:
    try:
        if sys.platform == "win32":
            # Locks the byte at the descriptor's position, which stays 0: lock files are empty and
            # never read.
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        # If the lock is held, the C library of Windows sets EACCES, and that of wine sets no error
        # number.
        if sys.platform == "win32" or isinstance(error, BlockingIOError):
            return False
        raise
    return True


def unlock(descriptor: int) -> None:
    if sys.platform == "win32":
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)
    else:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


def replace(source: Path | str, target: Path | str) -> None:
    """Rename a file in one step, replacing `target`: at every moment either the old or the new file
    is there.

    Raises `OSError`; on Windows also if another program still has one of the two files open after
    half a second.
    """
    _once_closed(os.replace, source, target)


def remove(path: Path | str) -> None:
    """Delete a file. Raises `OSError` as `replace` does."""
    _once_closed(os.unlink, path)


def _once_closed(act: Callable[..., None], *paths: Path | str) -> None:
    give_up_at = time.monotonic() + IN_USE_SECONDS
    while True:
        try:
            return act(*paths)
        except PermissionError:
            # Readers close the file within milliseconds; virus scanners and indexers take longer.
            if sys.platform != "win32" or time.monotonic() >= give_up_at:
                raise
            time.sleep(IN_USE_PAUSE_SECONDS)


def sync(path: Path) -> None:
    """Write a file's content, or the names in a folder, to the disk and wait for it.

    Windows can't do that for a folder. Raises `OSError`.
    """
    flags = os.O_RDONLY
    if sys.platform == "win32":
        if path.is_dir():
            return
        flags = os.O_RDWR
    descriptor = os.open(path, flags)
    try:
        if sys.platform == "darwin":
            # On macOS fsync leaves data in the drive's cache; F_FULLFSYNC does not, but some file
            # systems lack it.
            with contextlib.suppress(OSError):
                fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
                return
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def keep_files_private() -> None:
    """Make every file created from now on private to this user (umask 077), and let no crash write
    the memory, which holds keys, to a core file. On Windows the folder's rights decide."""
    if sys.platform != "win32":
        os.umask(0o077)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def rights_of_strangers(folder: Path) -> int:
    """The bits of the folder's mode that let strangers write in it; 0 if there are none.

    Strangers are neither its owner, nor root, nor in a group of this user. So `root:0 770` is right
    for a user in group 0 (OpenShift), and `root:1000 2775` for one in group 1000 (`fsGroup` of
    Kubernetes). Root takes a group with setgid for the service's.
    """
    if sys.platform == "win32" or not os.path.isdir(folder):
        return 0
    found = folder.stat()
    rights = stat.S_IWOTH | stat.S_IWGRP
    is_of_service = os.geteuid() == 0 and found.st_mode & stat.S_ISGID
    if is_of_service or found.st_gid in (os.getegid(), *os.getgroups()):
        rights = stat.S_IWOTH
    return found.st_mode & rights


def give_away(descriptor: int, like: Path) -> None:
    """Give an open file the owner and group of the file `like`, if this user is root."""
    if sys.platform != "win32" and os.geteuid() == 0:
        found = like.stat()
        # Some containers deny root this right; the file then stays root's.
        with contextlib.suppress(PermissionError):
            os.fchown(descriptor, found.st_uid, found.st_gid)


def descriptor_limit(wanted: int) -> int:
    """How many files and sockets may be open: as many as wanted, or as the system grants."""
    if sys.platform != "win32":
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        # macOS may report no limit and still have one, which is 10,240 where it is old.
        for asked in (wanted, hard, 10_240):
            with contextlib.suppress(OSError, ValueError):
                resource.setrlimit(resource.RLIMIT_NOFILE, (asked, hard))
                return asked
        return soft
    return wanted


def clients_and_senders() -> tuple[int, int]:
    """How many clients, each with one descriptor, and posts of alerts, each with two, there may be.

    128 descriptors are left for the database, fonts, stored cards and the log, which take 20 to 40.
    """
    limit = descriptor_limit(10_384)
    rest = max(limit // 4, limit - 128)
    senders = max(1, min(128, rest // 8))
    clients = rest - 2 * senders
    if sys.platform == "win32":
        # It has only `select`, which CPython builds for 512 sockets. Two are the server's.
        clients = min(clients, 510)
    return clients, senders


def on_stop_signals(
    handler: Callable[[int, FrameType | None], None],
) -> None:
    """Install a handler for all stop signals. In the main thread only.

    SIGHUP stays ignored if it is, as under nohup. SIGINT does not: a shell lets what it starts in
    the background ignore it.
    """
    for number in STOP_SIGNALS:
        is_ignored = signal.getsignal(number) is signal.SIG_IGN
        if number.name != "SIGHUP" or not is_ignored:
            signal.signal(number, handler)


def usable_cores() -> int:
    """How many cores this process may use."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def wake_on_signals(sender: socket.socket | None) -> None:
    """Send a byte through a non-blocking socket at every signal; None ends that. In the main thread
    only.

    A signal handler runs only when the main thread executes Python code. A signal does not end a
    wait for sockets if it arrives just before the wait or in another thread, and on Windows never;
    the byte does.
    """
    descriptor = sender.fileno() if sender else -1
    signal.set_wakeup_fd(descriptor, warn_on_full_buffer=False)


def claim_port(listener: socket.socket) -> None:
    """Call before `bind`: allows the port right after a restart, and refuses it to a second
    program."""
    option = socket.SO_REUSEADDR
    if sys.platform == "win32":
        # There SO_REUSEADDR would let a second program listen on the same port.
        option = socket.SO_EXCLUSIVEADDRUSE
    listener.setsockopt(socket.SOL_SOCKET, option, 1)


def drop_untaken(connection: socket.socket, seconds: int) -> None:
    """Let what the other side takes nothing of for so long be dropped, also after the close. Only
    on Linux.

    Without this the kernel keeps it for 340 s.
    """
    if sys.platform == "linux":
        connection.setsockopt(
            socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 1000 * seconds
        )


def send_together(
    client: socket.socket, parts: Sequence[bytes | memoryview]
) -> int:
    """Send several buffers in one call; returns the number of bytes that the system took. Raises
    `OSError`."""
    if sys.platform == "win32":
        return client.send(b"".join(parts))
    return client.sendmsg(parts)


def reader_is_gone(error: OSError) -> bool:
    """Whether a write failed because the pipe's reader is closed. Windows reports that as an
    invalid argument."""
    return isinstance(error, BrokenPipeError) or (
        sys.platform == "win32" and error.errno == errno.EINVAL
    )
