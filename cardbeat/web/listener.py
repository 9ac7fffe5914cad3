"""The listening socket, and how many clients the descriptors suffice for."""

import contextlib
import errno
import os
import resource
import socket
from typing import Final

from cardbeat.errors import StartupError

BACKLOG: Final = 1024
MAX_CONNECTIONS: Final = 10_000
RESERVED_DESCRIPTORS: Final = 128
"""For the database, fonts, stored cards and webhooks, which go on when connections are at their limit."""
SYSTEMD_FIRST_DESCRIPTOR: Final = 3


def listening_socket(host: str, port: int) -> socket.socket:
    """The socket that systemd holds for us, or one bound to the address. Raises `StartupError` if there is none."""
    if os.environ.get("LISTEN_PID") == str(os.getpid()) and os.environ.get("LISTEN_FDS", "0") != "0":
        listener = _passed()
    else:
        listener = _bound(host, port)
    listener.setblocking(False)
    # Accepted sockets inherit it: an answer's last piece must not wait for the acknowledgement of the one before.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def _passed() -> socket.socket:
    try:
        passed = socket.socket(fileno=SYSTEMD_FIRST_DESCRIPTOR)
        listens = passed.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
    except OSError:
        listens = False
    if not listens or passed.family not in (socket.AF_INET, socket.AF_INET6):
        raise StartupError("the socket that systemd passes must listen on a port: see ListenStream= and Accept=no")
    return passed


def _bound(host: str, port: int) -> socket.socket:
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    except (OSError, UnicodeError):
        raise StartupError(f"the host {host!r} is not known; give an address of this machine with --host") from None
    with contextlib.ExitStack() as undo:
        try:
            listener = undo.enter_context(socket.socket(family, socket.SOCK_STREAM))
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(BACKLOG)
        except OSError as error:
            raise StartupError(_bind_failure(error, host, port)) from None
        undo.pop_all()
    return listener


def _bind_failure(error: OSError, host: str, port: int) -> str:
    reasons = {
        errno.EADDRINUSE: f"port {port} on {host} is in use by another program; choose another with --port",
        errno.EADDRNOTAVAIL: f"{host} is not an address of this machine; choose another with --host",
        errno.EACCES: f"port {port} needs privileges that this program lacks; choose one from 1024 on with --port",
    }
    return reasons.get(error.errno or 0, f"can't listen on {host}, port {port}: {error.strerror}")


def connection_limit() -> int:
    """How many clients may be connected, after raising the limit of descriptors as far as useful and allowed."""
    wanted = MAX_CONNECTIONS + RESERVED_DESCRIPTORS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < allowed:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
            soft = allowed
    descriptors = wanted if soft == resource.RLIM_INFINITY else soft
    return max(descriptors // 4, min(MAX_CONNECTIONS, descriptors - RESERVED_DESCRIPTORS))
