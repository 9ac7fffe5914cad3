"""One client: the states that its connection goes through, and what it does in each."""

import contextlib
import logging
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from http import HTTPStatus
from math import inf
from typing import Any, Final

from cardbeat.config import HttpLimits
from cardbeat.errors import Refusal
from cardbeat.host.system import send_together
from cardbeat.web.loop import READ, WRITE
from cardbeat.web.message import Request, Response
from cardbeat.web.reader import Reader
from cardbeat.web.router import (
    Answer,
    Awaited,
    Route,
    answer_of,
    refusal_of,
)

log = logging.getLogger(__name__)

RECEIVE_BYTES = 16 * 1024
COPIED_BYTES = 16 * 1024
"""A smaller body is copied behind its head, which is faster than to pass both to the kernel."""
NOTHING: Final = memoryview(b"")

# The states of a connection: what it waits for. No `Enum`, whose members are slow to get in
# Python 3.11.
NEW: Final = "new"
"""The first byte of its first request."""
IDLE: Final = "idle"
"""The first byte of its next request."""
HEAD: Final = "head"
"""The rest of a request's head."""
BODY: Final = "body"
"""The rest of a request's body."""
WORKING: Final = "working"
"""The answer of a thread or of a future, or its turn in the next iteration."""
WRITING: Final = "writing"
"""The client to take more of an answer."""
LINGERING: Final = "lingering"
"""The client to close its side, after the last answer."""
CLOSED: Final = "closed"

MAY_CLOSE = frozenset({NEW, IDLE, HEAD, BODY, LINGERING})
"""In these states a connection gives way to a new client at the limit of connections."""


def _step(
    take: Callable[["ClientConnection"], None],
) -> Callable[["ClientConnection"], None]:
    """A method that the loop calls. An error closes this connection alone."""

    def step(connection: "ClientConnection") -> None:
        if connection.state is CLOSED:
            return
        try:
            try:
                take(connection)
            except Refusal as refusal:
                connection._refuse(refusal)
        except OSError:
            connection.close()
        except Exception:
            log.exception("a connection failed")
            connection.close()

    return step


@dataclass(slots=True, eq=False, repr=False)
class ClientConnection:
    """One client's socket, and the state of its request or answer. For the loop's thread.

    All addresses of one `network` count as one client. `is_trusted`: it is a `--trusted-proxy`,
    whose `X-Forwarded-For` counts.

    After `deadline`, by the loop's clock, the server lets it expire. `held` is the number of bytes
    that it holds: of a request that has come in part or is at work, or of an answer that is not
    sent.
    """

    server: Any
    """The `HttpServer`, whose module imports this one."""
    socket: socket.socket
    address: str
    network: str
    is_trusted: bool
    _reader: Reader
    state: str = NEW
    deadline: float = inf
    held: int = 0
    _request: Request | None = None
    _route: Route | None = None
    """The request whose body is awaited, or that is at work, and its route."""
    _given: Answer | None = None
    """The answer to it, from a thread or with a future, once `resume` is called. Before that the
    handler that a thread is to call."""
    _unsent: memoryview = NOTHING
    _watched: int = 0

    @_step
    def start(self) -> None:
        """Begin to serve the client. It reads at once: the request has often come already."""
        seconds = max(
            self.server.limits.header_seconds, self._idle_seconds
        )
        self._enter(NEW, seconds)
        self._watch(READ)
        self._receive()

    def close(self) -> None:
        if self.state is not CLOSED:
            self._enter(CLOSED, inf)
            self.server.forget(self)
            self._reader.forget()
            # A job that waits for a thread finds that nothing is to be done.
            self._request = None
            self._given = None
            self._unsent = NOTHING
            self._watch(0)
            self.socket.close()

    def work(self) -> None:
        """Have the handler answer the request. Called in a thread of the workers."""
        request = self._request
        handler = self._given
        if request is not None and callable(handler):
            self._given = answer_of(request, handler)
            self._wake()

    @_step
    def resume(self) -> None:
        """Take the answer of a thread or of a future."""
        answer = self._given
        self._given = None
        if self._request is not None and answer is not None:
            self._take(self._request, answer)

    @_step
    def expire(self) -> None:
        """Do what follows when the time is up."""
        if self.state is IDLE:
            # A proxy may have sent a request at this very moment, which must not be lost.
            self._receive()
        elif self.state is HEAD or (self.state is BODY and self._request):
            raise Refusal("too_slow")
        else:
            self.close()

    @property
    def _idle_seconds(self) -> float:
        limits: HttpLimits = self.server.limits
        if self.is_trusted:
            return limits.proxy_idle_seconds
        return limits.idle_seconds

    def _wake(self) -> None:
        self.server.loop.call_soon(self.resume)

    @_step
    def _ready(self) -> None:
        if self.state in MAY_CLOSE:
            self._receive()
        elif self.state is WRITING:
            self._write()
        else:
            # A request is at work. What the client sends now stays in the kernel.
            self._watch(0)

    def _receive(self) -> None:
        if self._reader.can_go_on:
            return  # `_go_on` will be called, and more would pile up here.
        try:
            data = self.socket.recv(RECEIVE_BYTES)
        except BlockingIOError:
            if (
                self.state is IDLE
                and self.deadline <= self.server.loop.now
            ):
                self.close()
            return
        if not data:
            self.close()
        elif self.state is not LINGERING:
            self._reader.add(data)
            self._serve()

    @_step
    def _go_on(self) -> None:
        self._serve()

    def _serve(self) -> None:
        """Read the head of the next request, which then waits for its client's turn, or go on.

        Raises `Refusal` for bytes that are no valid request.
        """
        if self._request is not None:
            return self._proceed(self._request)
        request = self._reader.read_head()
        if request is None:
            return self._await()
        self.server.identify(request, self)
        self._request = request
        held = self._reader.held_bytes + request.held_bytes
        self._enter(WORKING, inf, held)
        self.server.turns.put(request.network, self._go_on)
        return None

    def _proceed(self, request: Request) -> None:
        """Answer a request if it is complete, or its head refuses it; else wait for more."""
        reader = self._reader
        if self._route is None:
            try:
                self._route = self._admitted(request)
            except Exception as error:
                return self._answer(request, refusal_of(request, error))
            if reader.is_too_large:
                refusing = self._route._replace(handler=self._too_large)
                return self._take(request, refusing.answer)
        route = self._route
        body = reader.read_body()
        if body is None:
            return self._await()
        request.body = body
        if self.state is BODY:
            request.received_at = self.server.loop.now
        if route.in_loop:
            return self._take(request, answer_of(request, route.answer))
        return self._take(request, route.answer)

    def _admitted(self, request: Request) -> Route:
        """The route of a request whose head has come. Raises `Refusal` if the head refuses it."""
        route: Route = self.server.router.find(request)
        if route.guard is not None:
            route.guard.judge(request)
        if route.ignores_body:
            self._reader.ignore_body()
        return route

    def _too_large(self, _request: Request) -> Response:
        """Refuse a body that is too large. An unknown key is told first, as of any body."""
        raise Refusal(
            "body_too_large", most=self.server.limits.body_bytes
        )

    def _take(self, request: Request, answer: Answer) -> None:
        if isinstance(answer, Response):
            return self._answer(request, answer)
        if isinstance(answer, Awaited) and answer.future.is_done:
            return self._take(request, answer_of(request, answer.answer))
        held = self._reader.held_bytes + request.held_bytes
        self._enter(WORKING, inf, held)
        self._given = answer
        if isinstance(answer, Awaited):
            return answer.future.when_done(self._wake)
        self.server.process_request(self, request.network)
        return None

    def _refuse(self, refusal: Refusal) -> None:
        """Refuse bytes that are no valid request, and close then: what follows can't be read."""
        request = self._request
        if request is None:
            request = Request("-", "-", "-")
            self.server.identify(request, self)
        self._reader.keep_alive = False
        self._answer(request, refusal_of(request, refusal))

    def _answer(self, request: Request, response: Response) -> None:
        """Send an answer, note it for the log, and go on when it is sent."""
        server = self.server
        reader = self._reader
        self._request = None
        self._route = None
        reader.skip_body()
        if server.is_stopping:
            reader.keep_alive = False
        start = _start_lines(
            response.status, int(time.time()), reader.keep_alive
        )
        head = start + request.id.encode() + b"\r\n" + response.lines
        body = b"" if request.method == "HEAD" else response.body
        try:
            self._unsent = _send(self.socket, head, body)
        finally:
            seconds = server.loop.elapsed() - request.received_at
            server.answered.append((request, response, seconds))
        if self._unsent:
            # All of it stays in memory until the last byte is sent.
            held = reader.held_bytes + len(self._unsent)
            self._enter(WRITING, server.limits.write_seconds, held)
            self._watch(WRITE)
        else:
            self._after_answer()

    def _write(self) -> None:
        with contextlib.suppress(BlockingIOError):
            self._unsent = self._unsent[self.socket.send(self._unsent) :]
        if self._unsent:
            seconds = self.server.limits.write_seconds
            self._enter(WRITING, seconds, self.held)
        else:
            self._after_answer()

    def _after_answer(self) -> None:
        reader = self._reader
        if not reader.keep_alive:
            self._end()
        elif reader.has_part:
            self._serve()
        else:
            self._rest()

    def _await(self) -> None:
        """Wait for the rest of a request. Its time runs from its first byte."""
        reader = self._reader
        limits = self.server.limits
        if not reader.has_part:
            # An empty line before a request, or the end of a body that is dropped.
            if self.state is not NEW:
                self._rest()
            return
        self.server.hold(self, reader.held_bytes)
        if reader.in_body and self.state is not BODY:
            self._enter(BODY, limits.body_seconds, self.held)
        elif not reader.in_body and self.state is not HEAD:
            self._enter(HEAD, limits.header_seconds, self.held)
        self._watch(READ)
        if reader.can_go_on:
            self.server.loop.call_next(self._go_on)
        if reader.expects_continue:
            reader.expects_continue = False
            self.socket.send(b"HTTP/1.1 100 Continue\r\n\r\n")

    def _rest(self) -> None:
        """Wait for the next request; during a stop, end the connection."""
        if self.server.is_stopping:
            self._end()
        else:
            self._enter(IDLE, self._idle_seconds)
            self._watch(READ)

    def _end(self) -> None:
        """End a connection whose last answer is sent.

        Closing a socket with unread bytes resets the connection, and the client may lose the
        answer. Then only the sending side is closed, and the client has 2 s to read the answer and
        close its side.
        """
        if self._reader.has_part or _has_unread(self.socket):
            self.socket.shutdown(socket.SHUT_WR)
            self._reader.forget()
            self._enter(LINGERING, self.server.limits.linger_seconds)
            self._watch(READ)
        else:
            self.close()

    def _enter(self, state: str, seconds: float, held: int = 0) -> None:
        server = self.server
        self.state = state
        self.deadline = server.loop.now + seconds
        server.hold(self, held)
        if state in MAY_CLOSE:
            server.waiting[self] = None
            server.waiting.move_to_end(self)
        else:
            server.waiting.pop(self, None)

    def _watch(self, events: int) -> None:
        """Wait for these events of the socket. With 0, what comes stays in the kernel."""
        if events != self._watched:
            self.server.loop.watch(
                self.socket, self._watched, events, self._ready
            )
            self._watched = events


@lru_cache(64)
def _start_lines(status: int, second: int, keep_alive: bool) -> bytes:
    """The lines with which all answers of a status begin, up to the value of `X-Request-Id`."""
    # No part of this program sets a locale, so the names are English.
    date = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(second))
    then = "keep-alive" if keep_alive else "close"
    line = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}"
    lines = (
        f"{line}\r\nDate: {date}\r\nConnection: {then}\r\nX-Request-Id: "
    )
    return lines.encode()


def _send(client: socket.socket, head: bytes, body: bytes) -> memoryview:
    """Send as much as the kernel takes now, and return the rest.

    Raises `OSError` if the client is gone.
    """
    try:
        if len(body) < COPIED_BYTES:
            sent = client.send(head + body)
        else:
            sent = send_together(client, (head, body))
    except BlockingIOError:
        sent = 0
    if sent == len(head) + len(body):
        return NOTHING
    return memoryview(head + body)[sent:]


def _has_unread(client: socket.socket) -> bool:
    """Whether bytes of the client are in the kernel that were not received yet."""
    try:
        return bool(client.recv(1, socket.MSG_PEEK))
    except BlockingIOError:
        return False
