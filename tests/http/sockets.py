"""Servers that the test's own process runs, and clients that see every byte of theirs."""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

from cardbeat.config import HttpLimits
from cardbeat.web.router import Router
from cardbeat.web.server import Server

PATIENCE_SECONDS = 10

Start = Callable[..., Server]


@contextlib.contextmanager
def starting(router: Router) -> Iterator[Start]:
    """Starts servers, each with the limits and options that it is given, and stops them in the end."""
    with contextlib.ExitStack() as stack:

        def start(limits: HttpLimits = HttpLimits(stop_seconds=2), **options: Any) -> Server:  # noqa: B008
            server = Server(router, "127.0.0.1", 0, limits, **options)
            thread = threading.Thread(target=server.serve_forever)
            thread.start()
            stack.callback(thread.join, PATIENCE_SECONDS)
            stack.callback(server.stop)
            return server

        yield start


class Client:
    """A socket, and the answers cut out of what comes back on it."""

    def __init__(self, server: Server, data: bytes = b"", receive_bytes: int | None = None) -> None:
        with contextlib.ExitStack() as stack:
            self.socket = stack.enter_context(socket.socket(server.socket.family))
            self.socket.settimeout(PATIENCE_SECONDS)
            if receive_bytes:
                self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
            self.socket.connect(server.server_address[:2])
            stack.pop_all()
        self.buffer = b""
        self.send(data)

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def answer(self, *, with_body: bool = True) -> tuple[int, dict[str, str], bytes]:
        """The next answer's status, headers and body."""
        while b"\r\n\r\n" not in self.buffer:
            self._receive()
        head, _, self.buffer = self.buffer.partition(b"\r\n\r\n")
        line, *fields = head.decode("latin-1").split("\r\n")
        assert line.startswith("HTTP/1.1 ")
        headers = {name.lower(): value for name, _, value in (field.partition(": ") for field in fields)}
        length = int(headers.get("content-length", "0")) if with_body else 0
        while len(self.buffer) < length:
            self._receive()
        body, self.buffer = self.buffer[:length], self.buffer[length:]
        return int(line.split()[1]), headers, body

    def rest(self) -> bytes:
        """Everything up to the end of the connection, which must be an orderly one."""
        with contextlib.suppress(EOFError):
            while True:
                self._receive()
        return self.buffer

    def _receive(self) -> None:
        data = self.socket.recv(65536)
        if not data:
            raise EOFError(self.buffer)
        self.buffer += data
