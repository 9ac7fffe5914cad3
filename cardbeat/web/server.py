"""The HTTP server: the only module with sockets. One thread owns every connection, so nothing here needs a lock."""

import contextlib
import errno
import logging
import os
import resource
import secrets
import selectors
import socket
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from email.utils import formatdate
from functools import lru_cache, partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from math import inf
from typing import Any, Final

from cardbeat.config import HttpLimits, Network
from cardbeat.errors import Refusal, StartupError
from cardbeat.web.access import AccessLog
from cardbeat.web.forwarded import client_address, is_trusted, parse_address
from cardbeat.web.message import Request, Response
from cardbeat.web.reader import Reader, read_fields
from cardbeat.web.router import Router
from cardbeat.web.wire import CONTINUE, response_bytes
from cardbeat.web.workers import Workers

log = logging.getLogger(__name__)

Observer = Callable[[str, str | None, int, float, Response], None]
"""Told of each answer: method, route pattern, status, seconds, response."""

_RECEIVE_BYTES: Final = 16 * 1024
_ACCEPT_AT_ONCE: Final = 64
_TICK_SECONDS: Final = 0.5
_ACCEPT_PAUSE_SECONDS: Final = 0.1
_MAX_CONNECTIONS: Final = 16_384
_RESERVED_DESCRIPTORS: Final = 128
"""For the database, fonts, stored cards and webhooks, which work on when connections are at their limit."""
_CACHED_HEADER_BLOCKS: Final = 256
_SYSTEMD_FIRST_DESCRIPTOR: Final = 3


class Phase:
    """What a connection waits for, and how long it may. Members stand in the order in which their time runs out."""

    __slots__ = ("events", "expired", "members", "ready", "seconds")

    def __init__(
        self,
        seconds: float,
        events: int | None,
        ready: "Callable[[Connection], None]",
        expired: "Callable[[Connection], None]",
    ) -> None:
        self.seconds = seconds
        self.events = events
        """The selector's events to wake it; None leaves them as they are."""
        self.ready = ready
        self.expired = expired
        self.members: OrderedDict[Connection, float] = OrderedDict()


class Connection:
    """One client's socket and how far its request or answer has come."""

    __slots__ = ("events", "peer", "phase", "reader", "socket", "then", "trusted", "unsent")

    def __init__(self, sock: socket.socket, peer: str, trusted: bool, reader: Reader, phase: Phase) -> None:
        self.socket = sock
        self.peer = peer
        self.trusted = trusted
        self.reader = reader
        self.phase = phase
        self.events = 0
        self.unsent = memoryview(b"")
        self.then: Callable[[Connection], None] | None = None
        """What follows when everything is sent."""


class Server(ThreadingHTTPServer):
    """Serves a router over HTTP/1.1, bound to its address when made. Raises `StartupError` if it can't be.

    The base class gives the listening socket its life; serving is ours. `serve_forever` waits on all connections
    in one thread, and gives only whole requests to a few worker threads, so that no client can hold one.
    """

    request_queue_size = 1024

    def __init__(
        self,
        router: Router,
        host: str,
        port: int,
        limits: HttpLimits = HttpLimits(),  # noqa: B008 -- frozen
        trusted_proxies: Sequence[Network] = (),
        *,
        workers: int = 64,
        max_connections: int | None = None,
    ) -> None:
        self.address_family, address = _resolve(host, port)
        super().__init__(address, BaseHTTPRequestHandler, bind_and_activate=False)
        self._listen(host, port)
        self.router = router
        self.observe: Observer | None = None
        self._limits = limits
        self._trusted_proxies = trusted_proxies
        self._workers = Workers(workers)
        self._access = AccessLog()
        self._fields = lru_cache(_CACHED_HEADER_BLOCKS)(read_fields)
        self._id_prefix = secrets.token_hex(4)
        self._ids = count(1)
        self._max_connections = max_connections or _connection_limit()
        self.connections = 0
        self._now = time.monotonic()
        self._date = ""
        self._date_second = 0
        self._accept_again_at = 0.0
        self._stop_by = inf
        self._done: deque[tuple[Connection, Request, Response, float]] = deque()
        self._wake_sender, self._wake_receiver = _wake_pair()
        self._awake = False
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._wake_receiver, selectors.EVENT_READ, self._woken)
        read, write = selectors.EVENT_READ, selectors.EVENT_WRITE
        self._header = Phase(limits.header_seconds, read, self._read, self._time_out)
        self._body = Phase(limits.body_seconds, read, self._read, self._time_out)
        self._idle = Phase(limits.idle_seconds, read, self._read, self._close)
        self._working = Phase(inf, None, self._pause, self._close)
        self._writing = Phase(limits.write_seconds, write, self._write, self._close)
        self._lingering = Phase(limits.linger_seconds, read, self._drain, self._close)
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

    def serve_forever(self, poll_interval: float = _TICK_SECONDS) -> None:
        """Serve until `stop`, then until everything running has its answer or the limit for stopping has passed."""
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
        waiting = self.connections > 0 or self._accept_again_at > 0 or self._stop_by < inf
        for key, _ in self._selector.select(poll_interval if waiting else None):
            self._now = time.monotonic()
            key.data()
        self._now = time.monotonic()
        if 0 < self._accept_again_at <= self._now and self._stop_by == inf:
            self._set_accepting(True)
        for phase in self._phases:
            while phase.members:
                connection, deadline = next(iter(phase.members.items()))
                if deadline > self._now:
                    break
                self._guarded(connection, phase.expired)

    def _set_accepting(self, accepting: bool) -> None:
        registered = self.socket.fileno() in self._selector.get_map()
        if accepting and not registered:
            self._selector.register(self.socket, selectors.EVENT_READ, self._accept)
        elif not accepting and registered:
            self._selector.unregister(self.socket)
        self._accept_again_at = 0.0

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

    def _listen(self, host: str, port: int) -> None:
        """Take the socket that systemd holds for us, or bind one."""
        if os.environ.get("LISTEN_PID") == str(os.getpid()) and os.environ.get("LISTEN_FDS", "0") != "0":
            self.socket.close()
            self.socket = socket.socket(fileno=_SYSTEMD_FIRST_DESCRIPTOR)
            self.address_family = self.socket.family
        else:
            try:
                self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                self.socket.bind(self.server_address)
                self.server_activate()
            except OSError as error:
                self.socket.close()
                raise StartupError(_bind_failure(error, host, port)) from None
        self.server_address = self.socket.getsockname()
        self.socket.setblocking(False)
        # Accepted sockets inherit it: an answer's last piece must not wait for the acknowledgement of the one before.
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def _accept(self) -> None:
        for _ in range(_ACCEPT_AT_ONCE):
            if self.connections >= self._max_connections and not self._give_way():
                return self._pause_accepting()
            try:
                sock, address = self.socket.accept()
            except OSError as error:
                if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
                    self._give_way()
                    self._pause_accepting()
                return None
            self._welcome(sock, address)
        return None

    def _pause_accepting(self) -> None:
        """Leave new clients in the kernel's queue for a moment: asking again at once would only burn the CPU."""
        self._set_accepting(False)
        self._accept_again_at = self._now + _ACCEPT_PAUSE_SECONDS

    def _give_way(self) -> bool:
        """Close the connection that has waited longest, idle ones first; none that is being answered."""
        for phase in self._phases:
            if phase.members and phase is not self._working:
                self._close(next(iter(phase.members)))
                return True
        return False

    def _welcome(self, sock: socket.socket, address: Any) -> None:
        sock.setblocking(False)
        peer = parse_address(address[0])
        trusted = bool(self._trusted_proxies) and is_trusted(peer, self._trusted_proxies)
        connection = Connection(sock, str(peer), trusted, Reader(self._limits, self._fields), self._header)
        self.connections += 1
        self._enter(connection, self._header)

    def _enter(self, connection: Connection, phase: Phase) -> None:
        connection.phase.members.pop(connection, None)
        connection.phase = phase
        phase.members[connection] = self._now + phase.seconds
        if phase.events not in (None, connection.events):
            self._watch(connection, phase.events or 0)

    def _watch(self, connection: Connection, events: int) -> None:
        if not connection.events:
            self._selector.register(connection.socket, events, partial(self._ready, connection))
        elif events:
            self._selector.modify(connection.socket, events, partial(self._ready, connection))
        else:
            self._selector.unregister(connection.socket)
        connection.events = events

    def _ready(self, connection: Connection) -> None:
        self._guarded(connection, connection.phase.ready)

    def _guarded(self, connection: Connection, act: Callable[[Connection], None]) -> None:
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
            data = connection.socket.recv(_RECEIVE_BYTES)
        except BlockingIOError:
            return
        if data:
            connection.reader.feed(data)
            self._serve(connection, answered=False)
        else:
            self._close(connection)

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
        fresh = connection.phase is self._header and phase is self._idle
        if answered or not (connection.phase is phase or fresh):
            self._enter(connection, phase)
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
        line = "Connection: keep-alive\r\n" if keep else "Connection: close\r\n"
        second = int(time.time())
        if second != self._date_second:
            self._date, self._date_second = formatdate(second, usegmt=True), second
        with_body = request.method != "HEAD"
        try:
            data = response_bytes(response, self._date, line, with_body=with_body)
        except Exception as error:
            response = self.router.refuse(request, error)
            data = response_bytes(response, self._date, line, with_body=with_body)
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
        connection.unsent = memoryview(data)[sent:]
        return not connection.unsent

    def _after(self, connection: Connection, then: Callable[[Connection], None]) -> None:
        """Go on with `then` once everything is sent."""
        if not connection.unsent:
            return then(connection)
        connection.then = then
        return self._enter(connection, self._writing)

    def _write(self, connection: Connection) -> None:
        if self._send(connection, connection.unsent) and connection.then:
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
        if not connection.socket.recv(_RECEIVE_BYTES):
            self._close(connection)

    def _close(self, connection: Connection) -> None:
        if connection.phase.members.pop(connection, None) is None:
            return
        if connection.events:
            self._selector.unregister(connection.socket)
        connection.socket.close()
        self.connections -= 1


def _resolve(host: str, port: int) -> tuple[socket.AddressFamily, Any]:
    try:
        found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError):
        raise StartupError(f"the host {host!r} is not known; give an address of this machine with --host") from None
    return found[0][0], found[0][4]


def _bind_failure(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"port {port} on {host} is in use by another program; choose another with --port"
    if error.errno == errno.EADDRNOTAVAIL:
        return f"{host} is not an address of this machine; choose another with --host"
    if error.errno == errno.EACCES:
        return f"port {port} needs privileges that this program does not have; choose one from 1024 on with --port"
    return f"can't listen on {host}, port {port}: {error.strerror}"


def _connection_limit() -> int:
    """How many clients may be connected, after raising the limit of descriptors as far as is useful and allowed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MAX_CONNECTIONS + _RESERVED_DESCRIPTORS
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if soft == resource.RLIM_INFINITY:
        return _MAX_CONNECTIONS
    return max(soft // 4, min(_MAX_CONNECTIONS, soft - _RESERVED_DESCRIPTORS))


def _wake_pair() -> tuple[socket.socket, socket.socket]:
    sender, receiver = socket.socketpair()
    sender.setblocking(False)
    receiver.setblocking(False)
    return sender, receiver
