"""The listening socket, and how many clients the descriptors suffice for."""

import errno
import os
import socket
from typing import Any, Final

from cardbeat.errors import StartupError
from cardbeat.system import MOST_SOCKETS, descriptor_limit

BACKLOG: Final = 1024
MAX_CONNECTIONS: Final = 10_000
RESERVED_DESCRIPTORS: Final = 128
"""For the database, fonts, stored cards and webhooks, which go on when connections are at their limit."""
RESERVED_SOCKETS: Final = 2
"""For the listener, and for the loop's own wake-up."""
SYSTEMD_FIRST_DESCRIPTOR: Final = 3


def passed_socket() -> socket.socket | None:
    """The listening socket that systemd holds for us, if it does (sd_listen_fds(3)).

    Raises `StartupError` for one that listens on no port.
    """
    if os.environ.get("LISTEN_PID") != str(os.getpid()) or os.environ.get("LISTEN_FDS", "0") == "0":
        return None
    try:
        passed = socket.socket(fileno=SYSTEMD_FIRST_DESCRIPTOR)
        listens = passed.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
    except OSError:
        listens = False
    if not listens or passed.family not in (socket.AF_INET, socket.AF_INET6):
        raise StartupError("the socket that systemd passes must listen on a port: see ListenStream= and Accept=no")
    return passed


def resolve(host: str, port: int) -> tuple[socket.AddressFamily, Any]:
    """The family and the address to bind to. Raises `StartupError` for a host that is not known."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    except (OSError, UnicodeError):
        raise StartupError(f"the host {host!r} is not known; give an address of this machine with --host") from None
    return family, address


def bind_failure(error: OSError, host: str, port: int) -> str:
    """Why there is no listening, with the host and port as the operator gave them."""
    reasons = {
        errno.EADDRINUSE: f"port {port} on {host} is in use by another program; choose another with --port",
        errno.EADDRNOTAVAIL: f"{host} is not an address of this machine; choose another with --host",
        errno.EACCES: f"port {port} needs privileges that this program lacks; choose one from 1024 on with --port",
    }
    return reasons.get(error.errno or 0, f"can't listen on {host}, port {port}: {error.strerror}")


def connection_limit() -> int:
    """How many clients may be connected, after raising the limit of descriptors as far as useful and allowed."""
    descriptors = descriptor_limit(MAX_CONNECTIONS + RESERVED_DESCRIPTORS)
    limit = max(descriptors // 4, min(MAX_CONNECTIONS, descriptors - RESERVED_DESCRIPTORS))
    return limit if MOST_SOCKETS is None else min(limit, MOST_SOCKETS - RESERVED_SOCKETS)
