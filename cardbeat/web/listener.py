"""The listening socket, and the number of clients that may be connected."""

import contextlib
import errno
import os
import socket
from typing import Any, Final

from cardbeat.errors import StartupError
from cardbeat.host.system import claim_port, drop_untaken

BACKLOG: Final = 1024
RECEIVE_BUFFER, SEND_BUFFER = 64 * 1024, 256 * 1024
"""Bytes of requests, and of answers, that the kernel may hold for one client, and as many for itself: else those that
don't read, or send while they aren't read, take 4 to 6 MB each. What a slow client has not read of a list of checks
must fit, since this process would keep all of it."""
TAKES_NOTHING_SECONDS: Final = 60
SYSTEMD_FIRST_DESCRIPTOR: Final = 3


class Listener:
    """The socket that listens on an address, or the one that systemd passes. Raises `StartupError` if it can't be."""

    def __init__(self, host: str, port: int) -> None:
        passed = passed_socket()
        self.is_passed = passed is not None
        self.socket = passed or listen(host, port)
        self.socket.setblocking(False)
        # Accepted sockets inherit these. The last piece of an answer must not wait for the receipt of the one before.
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
        drop_untaken(self.socket, TAKES_NOTHING_SECONDS)
        self.address = self.socket.getsockname()

    @property
    def url(self) -> str:
        host, port = self.address[:2]
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    def close(self) -> None:
        self.socket.close()


def passed_socket() -> socket.socket | None:
    """The listening socket that systemd passed to this process (sd_listen_fds(3)), else None.

    Raises `StartupError` if the socket does not listen on a port, or there are several.
    """
    passes = os.environ.get("LISTEN_FDS", "0")
    if os.environ.get("LISTEN_PID") != str(os.getpid()) or passes == "0":
        return None
    if passes != "1":
        raise StartupError(f"systemd passes {passes} sockets, and one can be served: name one ListenStream=")
    try:
        passed = socket.socket(fileno=SYSTEMD_FIRST_DESCRIPTOR)
        listens = passed.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
    except OSError:
        listens = False
    if not listens or passed.family not in (socket.AF_INET, socket.AF_INET6):
        raise StartupError("the socket that systemd passes must listen on a port: see ListenStream= and Accept=no")
    return passed


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens on this address. Raises `StartupError` if that is impossible."""
    family, address = resolve(host, port)
    try:
        with contextlib.ExitStack() as undo:
            listener = undo.enter_context(socket.socket(family))
            claim_port(listener)
            listener.bind(address)
            listener.listen(BACKLOG)
            undo.pop_all()
    except OSError as error:
        raise StartupError(bind_failure(error, host, port)) from None
    return listener


def resolve(host: str, port: int) -> tuple[socket.AddressFamily, Any]:
    """The family and address to bind to. Raises `StartupError` for an unknown host."""
    try:
        # As bytes: for a text Python imports what encodes names of other scripts.
        name = host.encode("ascii")
        family, _, _, _, address = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    except (OSError, UnicodeError):
        raise StartupError(f"the host {host!r} is not known; give an address of this machine with --host") from None
    return family, address


def bind_failure(error: OSError, host: str, port: int) -> str:
    """A sentence that tells why listening failed and what to do."""
    reasons = {
        errno.EADDRINUSE: f"port {port} on {host} is in use by another program; choose another with --port",
        errno.EADDRNOTAVAIL: f"{host} is not an address of this machine; choose another with --host",
        errno.EACCES: f"port {port} needs privileges that this program lacks; choose one from 1024 on with --port",
    }
    return reasons.get(error.errno or 0, f"can't listen on {host}, port {port}: {error.strerror}")
