"""Servers that the test's own process runs, and clients that see every byte of theirs."""

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from cardbeat.concurrency.later import Workers
from cardbeat.config import HttpLimits
from cardbeat.web.exchange import Exchange
from cardbeat.web.listener import Listener
from cardbeat.web.loop import Loop
from cardbeat.web.router import Router
from cardbeat.web.server import HttpServer

PATIENCE_SECONDS = 10

Start = Callable[..., HttpServer]


def server_of(
    router: Router,
    host: str = "127.0.0.1",
    port: int = 0,
    limits: HttpLimits = HttpLimits(),  # noqa: B008 - it is frozen
    *,
    workers: int = 2,
    max_connections: int | None = None,
    elapsed: Callable[[], float] = time.monotonic,
    **options: Any,
) -> HttpServer:
    """A server of these routes; `options` are those of the exchange. Raises `StartupError` for a bad address."""
    listener, loop = Listener(host, port), Loop(elapsed)
    exchange = Exchange(router, Workers(workers, first=[loop.precedence]), **options)
    return HttpServer(listener, exchange, loop, limits, max_connections=max_connections)


@contextlib.contextmanager
def starting(router: Router) -> Iterator[Start]:
    """Starts servers, each with the limits and options that it is given, and stops them in the end."""
    with contextlib.ExitStack() as stack:

        def start(limits: HttpLimits = HttpLimits(stop_seconds=2), **options: Any) -> HttpServer:  # noqa: B008
            server = server_of(router, limits=limits, **options)
            thread = threading.Thread(target=server.serve_forever)
            thread.start()
            stack.callback(thread.join, PATIENCE_SECONDS)
            stack.callback(server.stop)
            return server

        yield start


class Client:
    """A socket, and the answers cut out of what comes back on it."""

    def __init__(
        self, server: HttpServer, data: bytes = b"", receive_bytes: int | None = None, address: str | None = None
    ) -> None:
        with contextlib.ExitStack() as stack:
            self.socket = stack.enter_context(socket.socket(server.socket.family))
            self.socket.settimeout(PATIENCE_SECONDS)
            if receive_bytes:
                self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
            if address:
                self.socket.bind((address, 0))
            self.socket.connect(server.server_address[:2])
            stack.pop_all()
        self.buffer = bytearray()
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
        body = bytes(self.buffer[:length])
        del self.buffer[:length]
        return int(line.split()[1]), headers, body

    def receive(self, length: int) -> None:
        """Take that much of an answer, and leave it for `answer`."""
        while len(self.buffer) < length:
            self._receive()

    def rest(self) -> bytes:
        """Everything up to the end of the connection, which must be an orderly one."""
        with contextlib.suppress(EOFError):
            while True:
                self._receive()
        return bytes(self.buffer)

    def _receive(self) -> None:
        data = self.socket.recv(65536)
        if not data:
            raise EOFError(bytes(self.buffer[:1000]))
        self.buffer += data


def wait_until_all_is_read(server: HttpServer) -> None:
    """Return once the server has read what was sent to it before."""
    with Client(server) as client:
        # The first may be read before what came at the same time; the second is not.
        for _ in range(2):
            client.send(b"GET /healthz HTTP/1.1\r\nHost: cards.example\r\n\r\n")
            client.answer()
