"""Servers that the test's own process runs, and clients that see every byte of theirs."""

import contextlib
import socket
import threading
import time
from collections.abc import Callable

from cardbeat.config import HttpLimits
from cardbeat.errors import Refusal
from cardbeat.jobs import Future
from cardbeat.web.loop import Loop
from cardbeat.web.message import Response
from cardbeat.web.router import Awaited, Route, Router
from cardbeat.web.server import HttpServer, listen
from tests.kit.support import FakeClock, wait_until
from tests.server.malformed import get

PATIENCE_SECONDS = 60
BIG = b"0123456789abcdef" * 1024 * 1024

Start = Callable[..., HttpServer]


def server_of(
    router,
    limits=None,
    *,
    host="127.0.0.1",
    elapsed=time.monotonic,
    **options,
):
    """A server of these routes, which does not serve yet."""
    listener = listen(host, 0)
    return HttpServer(
        listener, router, Loop(elapsed), limits or HttpLimits(), **options
    )


@contextlib.contextmanager
def starting(router):
    """Starts servers, each with the limits and options that it is given, and stops them in the end."""
    with contextlib.ExitStack() as stack:

        def start(limits=HttpLimits(stop_seconds=2), **options):  # noqa: B008
            server = server_of(router, limits, **options)
            server.thread = threading.Thread(target=server.serve_forever)
            server.thread.start()
            stack.callback(server.thread.join, PATIENCE_SECONDS)
            stack.callback(server.shutdown)
            return server

        yield start


class Guard:
    """Lets in who sends `Authorization: NAME`, unless that name is revoked."""

    def __init__(self):
        self.revoked = set()

    def judge(self, request):
        if "authorization" not in request.headers:
            raise Refusal("key_missing")

    def look_up(self, request):
        name = request.headers["authorization"]
        if name in self.revoked:
            raise Refusal("key_unknown")
        return name


class Site:
    """Routes to try a server with: those named `held` wait until the test lets them go on."""

    def __init__(self):
        self.guard = Guard()
        self.let_go = threading.Event()
        self.entered = threading.Semaphore(0)
        self.served = 0
        self.router = Router(
            [
                Route("GET", "/healthz", self.quick, in_loop=True),
                Route(
                    "POST",
                    "/register",
                    lambda request: Response(200, request.body),
                ),
                Route(
                    "POST",
                    "/mine",
                    lambda request: Response(200),
                    guard=self.guard,
                ),
                Route(
                    "POST",
                    "/beat/{id}",
                    lambda request: Response(200),
                    ignores_body=True,
                ),
                Route("GET", "/held", self.held),
                Route("POST", "/held", self.held),
                Route(
                    "GET",
                    "/held-big",
                    lambda request: self.held(request, BIG),
                ),
                Route("GET", "/held-in-loop", self.held, in_loop=True),
                Route(
                    "GET",
                    "/big",
                    lambda _: Response(200, BIG),
                    in_loop=True,
                ),
                Route("GET", "/checks/{id}", self.quick),
                Route("GET", "/broken", self.broken),
                Route("GET", "/future", self.future, in_loop=True),
            ]
        )

    def quick(self, request):
        return Response.json(
            200, {"client": request.client, "network": request.network}
        )

    def held(self, request, body=b""):
        self.entered.release()
        assert self.let_go.wait(PATIENCE_SECONDS)
        self.served += 1
        return Response(200, body or request.body or b"held")

    def is_entered(self):
        """Wait until a request is held."""
        return self.entered.acquire(timeout=PATIENCE_SECONDS)

    def broken(self, _request):
        raise RuntimeError("secret detail")

    def future(self, request):
        future = Future()
        respond = (
            self.broken
            if request.query
            else lambda body: Response(200, body)
        )
        threading.Thread(
            target=future.set_result, args=(b"later",)
        ).start()
        return Awaited(future, respond)


class Clock(FakeClock):
    def pass_in(self, server, seconds):
        """Let time pass, and return once the server has begun to act on it."""
        self.advance(seconds)
        server.loop.wake()
        wait_until(lambda: server.loop.now >= self.now)


def ask(path, *headers):
    return get(*headers, line=f"GET {path} HTTP/1.1".encode())


class Client:
    """A socket, and the answers cut out of what comes back on it."""

    def __init__(
        self, server, data=b"", receive_bytes=None, address=None
    ):
        self.server = server
        with contextlib.ExitStack() as stack:
            self.socket = stack.enter_context(
                socket.socket(server.socket.family)
            )
            self.socket.settimeout(PATIENCE_SECONDS)
            if receive_bytes:
                self.socket.setsockopt(
                    socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes
                )
            if address:
                self.socket.bind((address, 0))
            self.socket.connect(server.server_address[:2])
            stack.pop_all()
        self.buffer = bytearray()
        self.send(data)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def answer(self, *, with_body=True):
        """The next answer's status, headers and body."""
        while b"\r\n\r\n" not in self.buffer:
            self._receive()
        head, _, self.buffer = self.buffer.partition(b"\r\n\r\n")
        line, *fields = head.decode("latin-1").split("\r\n")
        assert line.startswith("HTTP/1.1 ")
        headers = {
            field.lower().partition(": ")[0]: field.partition(": ")[2]
            for field in fields
        }
        length = (
            int(headers.get("content-length", "0")) if with_body else 0
        )
        while len(self.buffer) < length:
            self._receive()
        body = bytes(self.buffer[:length])
        del self.buffer[:length]
        return int(line.split()[1]), headers, body

    def status(self):
        return self.answer()[0]

    def body(self):
        return self.answer()[2]

    def receive(self, length):
        """Take that much of an answer, and leave it for `answer`."""
        while len(self.buffer) < length:
            self._receive()

    def is_closed(self):
        """Whether nothing more comes, however the connection ends."""
        with contextlib.suppress(ConnectionResetError):
            return self.rest() == b""
        return True

    def rest(self):
        """Everything up to the end of the connection, which must be an orderly one."""
        with contextlib.suppress(EOFError):
            while True:
                self._receive()
        return bytes(self.buffer)

    def _receive(self):
        data = self.socket.recv(65536)
        if not data:
            raise EOFError(bytes(self.buffer[:1000]))
        self.buffer += data


def wait_until_all_is_read(server):
    """Return once the server has read what was sent to it before."""
    with Client(server) as client:
        # The first may be read before what came at the same time; the second is not.
        for _ in range(2):
            client.send(get())
            client.answer()
