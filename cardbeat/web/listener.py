"""The listening socket."""

import contextlib
import errno
import socket
from typing import Any, Final

from cardbeat.errors import StartupError
from cardbeat.host.system import claim_port, drop_untaken

BACKLOG: Final = 1024
RECEIVE_BUFFER: Final = 64 * 1024
SEND_BUFFER: Final = 256 * 1024
"""Bytes that the kernel may hold for one client, and as many for itself: else those that don't read
take 4 to 6 MB each. What a slow client has not read of a list of checks must fit, since this
process would keep all of it."""


class Listener:
    """The socket that listens on an address. Raises `StartupError` if it can't."""

    def __init__(self, host: str, port: int, untaken_seconds: int = 60) -> None:
        """What a client takes nothing of for `untaken_seconds` is dropped by the kernel."""
        self.socket = _listen(host, port)
        self.socket.setblocking(False)
        # Accepted sockets inherit these. The last piece of an answer must not wait for the receipt
        # of the one before.
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
        drop_untaken(self.socket, untaken_seconds)
        self.address = self.socket.getsockname()

    @property
    def url(self) -> str:
        host, port = self.address[:2]
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    def close(self) -> None:
        self.socket.close()


def _listen(host: str, port: int) -> socket.socket:
    family, address = _resolve(host, port)
    try:
        with contextlib.ExitStack() as undo:
            listener = undo.enter_context(socket.socket(family))
            claim_port(listener)
            listener.bind(address)
            listener.listen(BACKLOG)
            undo.pop_all()
    except OSError as error:
        why = error.strerror
        if error.errno == errno.EADDRINUSE:
            why = "another program uses it; choose another with --port"
        raise StartupError(f"can't listen on {host}, port {port}: {why}") from None
    return listener


def _resolve(host: str, port: int) -> tuple[socket.AddressFamily, Any]:
    """The family and address to bind to: an IPv4 one if the host has any."""
    passive = socket.AI_PASSIVE
    try:
        # As bytes: for a text Python imports what encodes names of other scripts.
        name = host.encode("ascii")
        found = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM, flags=passive)
    except (OSError, UnicodeError):
        raise StartupError(
            f"the host {host!r} is not known; give an address of this machine with --host"
        ) from None
    # `localhost` may give ::1 first, where `curl 127.0.0.1` would be refused.
    family, _, _, _, address = min(found, key=lambda one: one[0] != socket.AF_INET)
    return family, address
