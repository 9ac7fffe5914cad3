"""The HTTP server. One thread owns every connection, so that nothing here needs a lock."""

import contextlib
import errno
import logging
import secrets
import selectors
import socket
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from email.utils import formatdate
from functools import lru_cache, partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from math import inf
from typing import Final

from cardbeat.config import HttpLimits, Network
from cardbeat.errors import Refusal
from cardbeat.web.access import AccessLog
from cardbeat.web.connection import Act, Connection, Phase
from cardbeat.web.forwarded import client_address, is_trusted, parse_address
from cardbeat.web.listener import connection_limit, listening_socket
from cardbeat.web.message import Request, Response
from cardbeat.web.reader import Reader, read_fields
from cardbeat.web.router import Router
from cardbeat.web.wire import CONTINUE, response_bytes
from cardbeat.web.workers import Workers

log = logging.getLogger(__name__)

Observer = Callable[[str, str | None, int, float, Response], None]
"""Told of each answer: method, route pattern, status, seconds, response."""

RECEIVE_BYTES: Final = 16 * 1024
ACCEPT_AT_ONCE: Final = 64
ACCEPT_PAUSE_SECONDS: Final = 0.1
TICK_SECONDS: Final = 0.25
"""How far past its deadline a connection may live."""
SWITCH_SECONDS: Final = 0.0005
CACHED_HEADER_BLOCKS: Final = 256


class Server(ThreadingHTTPServer):
    """Serves a router over HTTP/1.1, bound to its address when made. Raises `StartupError` if it can't be.

    Of the base class the socket's life is left; serving is ours: `serve_forever` waits for all clients in one thread
    and gives only whole requests to a few workers, so that no client can hold a thread.
    """

    def __init__(
        self,
        router: Router,
        host: str,
        port: int,
        limits: HttpLimits = HttpLimits(),  # noqa: B008 - it is frozen
        trusted_proxies: Sequence[Network] = (),
        *,
        workers: int = 64,
        max_connections: int | None = None,
    ) -> None:
        listener = listening_socket(host, port)
        super().__init__(listener.getsockname(), BaseHTTPRequestHandler, bind_and_activate=False)
        self.socket.close()
        self.socket = listener
        self.router = router
        self.observe: Observer | None = None
        self.connections = 0
        self._limits = limits
        self._trusted_proxies = trusted_proxies
        self._max_connections = max_connections or connection_limit()
        self._workers = Workers(workers)
        self._done: deque[tuple[Connection, Request, Response, float]] = deque()
        self._access = AccessLog()
        self._fields = lru_cache(CACHED_HEADER_BLOCKS)(read_fields)
        self._id_prefix = secrets.token_hex(4)
        self._ids = count(1)
        self._date = ""
        self._now = self._checked_at = time.monotonic()
        self._accept_again_at = inf
        self._stop_by = inf
        self._selector = selectors.DefaultSelector()
        self._wake_sender, self._wake_receiver = socket.socketpair()
        self._wake_sender.setblocking(False)
        self._awake = False
        self._selector.register(self._wake_receiver, selectors.EVENT_READ, self._woken)
        self._header = Phase(limits.header_seconds, self._read, self._time_out)
        self._body = Phase(limits.body_seconds, self._read, self._time_out)
        self._idle = Phase(limits.idle_seconds, self._read, self._close)
        self._working = Phase(inf, self._pause, self._close, events=None)
        self._writing = Phase(limits.write_seconds, self._write, self._close, events=selectors.EVENT_WRITE)
        self._lingering = Phase(limits.linger_seconds, self._drain, self._close)
        self._phases = (self._idle, self._header, self._lingering, self._body, self._writing, self._working)
        """In the order in which they give way at the limit of open connections."""

    @property
    def url(self) -> str:
        host, port = self.server_address[:2]
        return f"http://[{host!s}]:{port}" if ":" in str(host) else f"http://{host!s}:{port}"

    def stop(self) -> None:
        """Let `serve_forever` finish what runs and return. Safe in any thread and in a signal handler."""
        if self._stop_by == inf:
            self._stop_by = time.monotonic() + self._limits.stop_seconds
            self._wake()

    shutdown = stop

    def serve_forever(self, poll_interval: float = TICK_SECONDS) -> None:
        """Serve until `stop`, then until everything running has its answer or the limit for stopping has passed."""
        # This thread asks for the interpreter anew after each call into the kernel: at the usual 5 ms a handler that
        # computes would slow every answer beside it down to that.
        sys.setswitchinterval(SWITCH_SECONDS)
        self._access.start()
        self._set_accepting(True)
        try:
            while self._stop_by == inf:
                self._turn(poll_interval)
            self._set_accepting(False)
            self.socket.close()
            self._turn(0)
            while self._running() and self._now < self._stop_by:
                self._turn(poll_interval)
        finally:
            self._close_all()

    def _turn(self, poll_interval: float) -> None:
        waiting = self.connections or self._accept_again_at < inf or self._stop_by < inf
        ready = self._selector.select(poll_interval if waiting else None)
        self._now = time.monotonic()
        self._date = _http_date(int(time.time()))
        for key, _ in ready:
            key.data()
        if self._now - self._checked_at >= poll_interval:
            self._checked_at = self._now
            self._expire()
        if self._accept_again_at <= self._now:
            self._set_accepting(self._stop_by == inf)

    def _expire(self) -> None:
        for phase in self._phases:
            while connection := phase.overdue(self._now):
                self._guarded(connection, phase.expired)

    def _set_accepting(self, accepting: bool) -> None:
        registered = self.socket.fileno() in self._selector.get_map()
        if accepting and not registered:
            self._selector.register(self.socket, selectors.EVENT_READ, self._accept)
        elif not accepting and registered:
            self._selector.unregister(self.socket)
        self._accept_again_at = inf

    def _running(self) -> bool:
        """After a stop: drop who has asked nothing, and tell whether anything is still to be answered."""
        for phase in (self._idle, self._header):
            for connection in list(phase.members):
                self._close(connection)
        return self.connections > 0

    def _close_all(self) -> None:
        for phase in self._phases:
            for connection in list(phase.members):
                self._close(connection)
        self._workers.stop()
        self._access.stop()
        self.server_close()

    def server_close(self) -> None:
        """Let go of the port and of what serving would have needed, whether it has served or not."""
        super().server_close()
        self._selector.close()
        self._wake_sender.close()
        self._wake_receiver.close()

    def _accept(self) -> None:
        for _ in range(ACCEPT_AT_ONCE):
            if self.connections >= self._max_connections and not self._give_way():
                return self._pause_accepting()
            try:
                client, address = self.socket.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return None
            except OSError as error:
                if error.errno != errno.EMFILE or not self._give_way():
                    return self._pause_accepting()
            else:
                self._welcome(client, address[0])
        return None

    def _pause_accepting(self) -> None:
        """Leave new clients in the kernel's queue for a moment: asking again at once would only burn the CPU."""
        self._set_accepting(False)
        self._accept_again_at = self._now + ACCEPT_PAUSE_SECONDS

    def _give_way(self) -> bool:
        """Close the connection that has waited longest, idle ones first; none that is being answered."""
        for phase in self._phases:
            if phase.members and phase is not self._working:
                self._close(next(iter(phase.members)))
                return True
        return False

    def _welcome(self, client: socket.socket, address: str) -> None:
        client.setblocking(False)
        peer = address.removeprefix("::ffff:")
        trusted = bool(self._trusted_proxies) and is_trusted(parse_address(peer), self._trusted_proxies)
        connection = Connection(client, peer, trusted, Reader(self._limits, self._fields), self._header)
        self.connections += 1
        self._header.members[connection] = self._now + self._header.seconds
        # The request has often come already: reading at once spares a client of one request the selector.
        self._guarded(connection, self._read)

    def _enter(self, connection: Connection, phase: Phase) -> None:
        connection.phase.members.pop(connection, None)
        connection.phase = phase
        phase.members[connection] = self._now + phase.seconds
        if phase.events is not None:
            self._watch(connection, phase.events)

    def _watch(self, connection: Connection, events: int) -> None:
        if events == connection.events:
            return
        if not connection.events:
            self._selector.register(connection.socket, events, partial(self._ready, connection))
        elif events:
            self._selector.modify(connection.socket, events, partial(self._ready, connection))
        else:
            self._selector.unregister(connection.socket)
        connection.events = events

    def _ready(self, connection: Connection) -> None:
        self._guarded(connection, connection.phase.ready)

    def _guarded(self, connection: Connection, act: Act) -> None:
        """Whatever goes wrong with one connection ends that one alone."""
        try:
            act(connection)
        except OSError:
            self._close(connection)
        except Exception:
            log.exception("a connection failed")
            self._close(connection)

    def _pause(self, connection: Connection) -> None:
        """The client sends more while its request is at work: leave it in the kernel until the answer is out."""
        self._watch(connection, 0)

    def _read(self, connection: Connection) -> None:
        try:
            data = connection.socket.recv(RECEIVE_BYTES)
        except BlockingIOError:
            return self._watch(connection, selectors.EVENT_READ)
        if data:
            connection.reader.feed(data)
            self._serve(connection, answered=False)
        else:
            self._close(connection)
        return None

    def _serve(self, connection: Connection, *, answered: bool) -> None:
        """Answer the requests that are whole, in turn, as far as that goes without waiting."""
        reader = connection.reader
        while True:
            try:
                request = reader.next()
            except Refusal as refusal:
                return self._refuse(connection, refusal)
            if request is None:
                return self._await(connection, answered)
            started = self._now = time.monotonic()
            self._name(connection, request)
            response = self.router.handle_quick(request)
            if response is None:
                self._enter(connection, self._working)
                return self._workers.submit(partial(self._work, connection, request, started))
            if not self._answer(connection, request, response, started):
                return None
            answered = True

    def _name(self, connection: Connection, request: Request) -> None:
        request.id = f"{self._id_prefix}-{next(self._ids):x}"
        request.client = connection.peer
        if connection.trusted:
            request.client = client_address(connection.peer, request.headers, self._trusted_proxies)

    def _await(self, connection: Connection, answered: bool) -> None:
        """Wait for the rest of a request, or the next: its time runs from its first byte, whatever trickles in."""
        reader = connection.reader
        phase = self._body if reader.in_body else self._header if reader.has_part else self._idle
        blank = connection.phase is self._header and phase is self._idle
        if answered or not (connection.phase is phase or blank):
            self._enter(connection, phase)
        else:
            self._watch(connection, selectors.EVENT_READ)
        if reader.expects_continue:
            reader.expects_continue = False
            connection.socket.send(CONTINUE)

    def _work(self, connection: Connection, request: Request, started: float) -> None:
        """In a worker thread: make the answer, and give it back to the thread that owns the connection."""
        self._done.append((connection, request, self.router.handle(request), started))
        self._wake()

    def _wake(self) -> None:
        if not self._awake:
            self._awake = True
            with contextlib.suppress(OSError):
                self._wake_sender.send(b"\0")

    def _woken(self) -> None:
        self._wake_receiver.recv(1024)
        self._awake = False
        while self._done:
            connection, request, response, started = self._done.popleft()
            self._guarded(connection, partial(self._hand_back, request, response, started))

    def _hand_back(self, request: Request, response: Response, started: float, connection: Connection) -> None:
        if self._answer(connection, request, response, started):
            self._serve(connection, answered=True)

    def _answer(self, connection: Connection, request: Request, response: Response, started: float) -> bool:
        """Send an answer. Whether the connection is ready for its next request at once."""
        keep = connection.reader.keep_alive and self._stop_by == inf
        sent = self._reply(connection, request, response, started, keep)
        if sent and keep:
            return True
        self._after(connection, self._next if keep else self._linger if connection.reader.has_part else self._close)
        return False

    def _refuse(self, connection: Connection, refusal: Refusal) -> None:
        """Answer what can't be read as a request; nothing after it on this connection can be either."""
        request = Request("-", "-", "-")
        self._name(connection, request)
        self._reply(connection, request, self.router.refuse(request, refusal), self._now, keep=False)
        self._after(connection, self._linger)

    def _reply(self, connection: Connection, request: Request, response: Response, started: float, keep: bool) -> bool:
        """Send and note an answer. Whether all of it is on its way."""
        with_body = request.method != "HEAD"
        try:
            data = response_bytes(response, self._date, keep_alive=keep, with_body=with_body)
        except Exception as error:
            response = self.router.refuse(request, error)
            data = response_bytes(response, self._date, keep_alive=keep, with_body=with_body)
        sent = self._send(connection, data)
        seconds = time.monotonic() - started
        self._access.note(request, response, seconds)
        if self.observe:
            self.observe(request.method, request.pattern, response.status, seconds, response)
        return sent

    def _send(self, connection: Connection, data: bytes | memoryview) -> bool:
        """Send what the kernel takes at once. Whether that was all; the rest stays with the connection."""
        try:
            sent = connection.socket.send(data)
        except BlockingIOError:
            sent = 0
        connection.unsent = memoryview(data)[sent:] if sent < len(data) else None
        return connection.unsent is None

    def _after(self, connection: Connection, then: Act) -> None:
        """Go on with `then` once everything is sent."""
        if connection.unsent is None:
            return then(connection)
        connection.then = then
        return self._enter(connection, self._writing)

    def _write(self, connection: Connection) -> None:
        if connection.unsent is None or self._send(connection, connection.unsent):
            connection.then(connection)

    def _next(self, connection: Connection) -> None:
        self._serve(connection, answered=True)

    def _time_out(self, connection: Connection) -> None:
        if not connection.reader.has_part:
            return self._close(connection)
        return self._refuse(connection, Refusal(408, "too_slow", "Send the whole request within 10 seconds."))

    def _linger(self, connection: Connection) -> None:
        """End our side, and wait a moment for the client's end: closing over unread bytes would destroy the answer."""
        connection.socket.shutdown(socket.SHUT_WR)
        self._enter(connection, self._lingering)

    def _drain(self, connection: Connection) -> None:
        if not connection.socket.recv(RECEIVE_BYTES):
            self._close(connection)

    def _close(self, connection: Connection) -> None:
        if connection.phase.members.pop(connection, None) is None:
            return
        if connection.events:
            self._selector.unregister(connection.socket)
        connection.socket.close()
        self.connections -= 1


@lru_cache(1)
def _http_date(second: int) -> str:
    return formatdate(second, usegmt=True)
