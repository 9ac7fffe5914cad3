"""The HTTP server. One thread owns every connection, so that nothing here needs a lock."""

import contextlib
import errno
import logging
import secrets
import socket
import sys
import time
from collections.abc import Callable, Sequence
from email.utils import formatdate
from functools import lru_cache, partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from math import inf
from typing import Final

from cardbeat.config import HttpLimits, Network
from cardbeat.errors import Refusal
from cardbeat.later import Later
from cardbeat.web.access import AccessLog
from cardbeat.web.connection import Act, Connection, Phase
from cardbeat.web.forwarded import client_address, is_trusted, parse_address
from cardbeat.web.listener import connection_limit, listening_socket
from cardbeat.web.mailbox import Mailbox
from cardbeat.web.message import Answered, Request, Response
from cardbeat.web.poller import READ, WRITE, Poller
from cardbeat.web.reader import Heads, Reader
from cardbeat.web.router import Router
from cardbeat.web.shelf import shelved
from cardbeat.web.wire import CONTINUE, response_head
from cardbeat.web.workers import Workers

log = logging.getLogger(__name__)

Observer = Callable[[Sequence[Answered]], None]
"""Told of answers, those of a turn at once."""

RECEIVE_BYTES: Final = 16 * 1024
COPIED_BYTES: Final = 16 * 1024
"""A body of this size or more is handed over beside its head, by the dearer call that spares the copy."""
ACCEPT_AT_ONCE: Final = 64
ACCEPT_PAUSE_SECONDS: Final = 0.1
TICK_SECONDS: Final = 0.25
"""How far past its deadline a connection may live."""
SWITCH_SECONDS: Final = 0.0005
FRESH_SECONDS: Final = 0.01
"""For how long requests count as having come together."""


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
        self._limits = limits
        self._trusted_proxies = trusted_proxies
        self._max_connections = max_connections or connection_limit()
        self._workers = Workers(workers)
        self._mailbox = Mailbox()
        self._access = AccessLog()
        self._answered: list[Answered] = []
        self._heads = Heads(limits, router.ignores_body)
        self._alike: dict[bytes, Answered] = {}
        """What was answered at once in this turn, by the bytes of the request."""
        self._ids = map(f"{secrets.token_hex(4)}-{{:x}}".format, count(1))
        self._date = ""
        self._now = self._checked_at = time.monotonic()
        self._accept_again_at = inf
        self._stop_by = inf
        self._poller = Poller()
        self._poller.watch(self._mailbox.receiver.fileno(), READ, self._open_mail)
        self._new = Phase(limits.header_seconds, self._read, self._time_out, events=None)
        self._header = Phase(limits.header_seconds, self._read, self._time_out)
        self._body = Phase(limits.body_seconds, self._read, self._time_out)
        self._idle = Phase(limits.idle_seconds, self._read, Connection.close)
        self._working = Phase(inf, self._pause, Connection.close, events=None)
        self._writing = Phase(limits.write_seconds, self._write, Connection.close, events=WRITE)
        self._lingering = Phase(limits.linger_seconds, self._drain, Connection.close)
        self._waiting = (self._idle, self._header, self._lingering, self._body, self._writing)
        """In the order in which they give way at the limit of open connections."""

    @property
    def url(self) -> str:
        host, port = self.server_address[:2]
        return f"http://[{host!s}]:{port}" if ":" in str(host) else f"http://{host!s}:{port}"

    @property
    def connections(self) -> int:
        return sum(len(phase.members) for phase in self._waiting) + len(self._working.members)

    def stop(self) -> None:
        """Let `serve_forever` finish what runs and return. Safe in any thread and in a signal handler."""
        if self._stop_by == inf:
            self._stop_by = time.monotonic() + self._limits.stop_seconds
            self._mailbox.wake()

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
        ready = self._poller.ready(poll_interval if waiting else None)
        self._look_anew(time.monotonic())
        self._date = _http_date(int(time.time()))
        for token in ready:
            if isinstance(token, Connection):
                self._guarded(token)
            else:
                token()
        if self._now - self._checked_at >= poll_interval:
            self._checked_at = self._now
            for phase in self._waiting:
                for connection in phase.overdue(self._now):
                    self._guarded(connection, phase.expired)
        if self._accept_again_at <= self._now:
            self._set_accepting(True)
        self._note_answers()

    def _look_anew(self, now: float) -> None:
        """What is read from here on did not come with what was read before, and is judged for itself."""
        self._now = now
        self._alike.clear()

    def _guarded(self, connection: Connection, act: Act | None = None) -> None:
        """Do `act`, or what the phase says. Whatever goes wrong with one connection ends that one alone."""
        try:
            if connection.phase:
                (act or connection.phase.ready)(connection)
        except OSError:
            connection.close()
        except Exception:
            log.exception("a connection failed")
            connection.close()

    def _set_accepting(self, accepting: bool) -> None:
        listener = self.socket.fileno()
        if accepting != self._poller.watches(listener):
            self._poller.watch(listener, READ if accepting else 0, self._accept)
        self._accept_again_at = inf

    def _running(self) -> bool:
        """After a stop: drop who has asked nothing, and tell whether anything else, with its deadline, is left."""
        for phase in (self._idle, self._header):
            for connection in phase.overdue(inf):
                connection.close()
        return self.connections > 0

    def _close_all(self) -> None:
        for phase in (*self._waiting, self._working):
            for connection in phase.overdue(inf):
                connection.close()
        self._workers.stop()
        self._access.stop()
        self.server_close()

    def server_close(self) -> None:
        """Let go of the port and of what serving would have needed, whether it has served or not."""
        super().server_close()
        self._poller.close()
        self._mailbox.close()

    def _accept(self) -> None:
        for _ in range(ACCEPT_AT_ONCE):
            full = self.connections >= self._max_connections
            if full and not any(phase.members for phase in self._waiting):
                return self._pause_accepting()
            try:
                client, address = self.socket.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return None
            except OSError as error:
                if error.errno != errno.EMFILE or not self._give_way():
                    return self._pause_accepting()
            else:
                # Not before somebody has come.
                if full:
                    self._give_way()
                self._welcome(client, address[0])
        return None

    def _pause_accepting(self) -> None:
        """Leave new clients in the kernel's queue for a moment: asking again at once would only burn the CPU."""
        self._set_accepting(False)
        self._accept_again_at = self._now + ACCEPT_PAUSE_SECONDS

    def _give_way(self) -> bool:
        """Close the connection that has waited longest, idle ones first; none that is being answered."""
        for phase in self._waiting:
            for connection in phase.overdue(inf):
                connection.close()
                return True
        return False

    def _welcome(self, client: socket.socket, address: str) -> None:
        self._look_anew(time.monotonic())
        client.setblocking(False)
        peer = address.removeprefix("::ffff:")
        trusted = bool(self._trusted_proxies) and is_trusted(parse_address(peer), self._trusted_proxies)
        connection = Connection(client, peer, trusted=trusted, reader=Reader(self._heads), poller=self._poller)
        connection.enter(self._new, self._now)
        # The request has often come already: reading at once spares a client of one request the poller.
        self._guarded(connection)

    def _pause(self, connection: Connection) -> None:
        """The client sends more while its request is at work: leave it in the kernel until the answer is out."""
        connection.watch(0)

    def _read(self, connection: Connection) -> None:
        try:
            data = connection.socket.recv(RECEIVE_BYTES)
        except BlockingIOError:
            return self._await(connection, answered=False)
        if not data:
            return connection.close()
        answered = self._alike.get(data)
        if answered and connection.phase is self._idle:
            return self._answer_alike(connection, answered)
        connection.reader.feed(data)
        return self._serve(connection, answered=False)

    def _answer_alike(self, connection: Connection, answered: Answered) -> None:
        """Answer a request as the one of the same bytes that came with it."""
        request, response, _ = answered
        request_id = next(self._ids)
        client = connection.peer if not connection.trusted else self._forwarded(connection, request)
        head = response_head(response, request_id, self._date, keep_alive=True)
        if self._give(connection, answered, head, request_id, client, again=True):
            connection.enter(self._idle, self._now)
        else:
            self._after(connection, self._next)

    def _serve(self, connection: Connection, *, answered: bool) -> None:
        """Answer the requests that are whole, in turn, as far as that goes without waiting."""
        reader = connection.reader
        while True:
            try:
                request = reader.next()
            except Refusal as refusal:
                return self._refuse(connection, refusal)
            if request is None:
                return self._await(connection, answered=answered)
            self._name(connection, request)
            answer = self._begin(request)
            if isinstance(answer, Later):
                connection.enter(self._working, self._now)
                answer.then(partial(self._leave, connection, request))
                return None
            response = answer
            if not self._answer(connection, request, response):
                return None
            if reader.whole and request.received_at == self._now:
                self._alike[reader.whole] = self._answered[-1]
            answered = True

    def _name(self, connection: Connection, request: Request) -> None:
        request.received_at = self._now
        request.id = next(self._ids)
        request.client = connection.peer if not connection.trusted else self._forwarded(connection, request)

    def _forwarded(self, connection: Connection, request: Request) -> str:
        return client_address(connection.peer, request.headers, self._trusted_proxies)

    def _await(self, connection: Connection, *, answered: bool) -> None:
        """Wait for the rest of a request, or the next: its time runs from its first byte, whatever trickles in."""
        reader = connection.reader
        if answered and not reader.has_part:
            return connection.enter(self._idle, self._now)
        phase = self._body if reader.in_body else self._header
        if answered or phase is not connection.phase:
            connection.enter(phase, self._now)
        if reader.expects_continue:
            reader.expects_continue = False
            connection.socket.send(CONTINUE)
        return None

    def _begin(self, request: Request) -> Response | Later[Response]:
        try:
            route = self.router.find(request)
            if route.in_loop:
                return route.handler(request)
        except Exception as error:
            return self.router.refuse(request, error)
        return self._workers.submit(partial(self.router.handle, request))

    def _leave(self, connection: Connection, request: Request, answer: Later[Response]) -> None:
        """Give an answer back to the thread that owns the connection."""
        self._mailbox.leave(partial(self._guarded, connection, partial(self._hand_back, request, answer)))

    def _open_mail(self) -> None:
        for call in self._mailbox.take():
            # What a client sends once it has this answer did not come with what was waiting before.
            self._look_anew(time.monotonic())
            call()

    def _hand_back(self, request: Request, answer: Later[Response], connection: Connection) -> None:
        try:
            response = answer.result()
        except Exception as error:
            response = self.router.refuse(request, error)
        if self._answer(connection, request, response):
            self._serve(connection, answered=True)

    def _answer(self, connection: Connection, request: Request, response: Response) -> bool:
        """Send and note an answer. Whether the connection is ready for its next request at once."""
        keep_alive = connection.reader.keep_alive and self._stop_by == inf
        again = bool(response.lines)
        try:
            head = response_head(response, request.id, self._date, keep_alive)
        except Exception as error:
            response = self.router.refuse(request, error)
            head = response_head(response, request.id, self._date, keep_alive)
        self._answered.append((request, response, []))
        sent = self._give(connection, self._answered[-1], head, request.id, request.client, again=again)
        if sent and keep_alive:
            return True
        self._after(connection, self._next if keep_alive else self._end)
        return False

    def _give(
        self, connection: Connection, answered: Answered, head: bytes, request_id: str, client: str, *, again: bool
    ) -> bool:
        """Send an answer and note that it was given. Whether the kernel took all of it; the rest is left `unsent`."""
        request, response, given = answered
        body = b"" if request.method == "HEAD" else response.body
        # What is given again is worth laying out for the kernel.
        shelf = shelved(body) if again and len(body) >= COPIED_BYTES else None
        try:
            if shelf:
                sent = shelf.send(connection.socket, head)
            elif len(body) >= COPIED_BYTES:
                sent = connection.socket.sendmsg((head, body))
            else:
                sent = connection.socket.send(head + body)
        except BlockingIOError:
            sent = 0
        finally:
            now = time.monotonic()
            given.append((request_id, client, now - request.received_at))
            # In a long turn, what was looked up for its first requests is too old for its last.
            if now - self._now > FRESH_SECONDS:
                self._look_anew(now)
        if sent == len(head) + len(body):
            return True
        connection.unsent = memoryview(head + body)[sent:]
        return False

    def _refuse(self, connection: Connection, refusal: Refusal) -> None:
        """Answer what can't be read as a request; nothing after it on this connection can be either."""
        request = Request("-", "-", "-")
        self._name(connection, request)
        connection.reader.keep_alive = False
        self._answer(connection, request, self.router.refuse(request, refusal))

    def _note_answers(self) -> None:
        """Log and count what was answered, in one go: between two answers it would take several times as long."""
        if self._answered:
            self._access.note(self._answered)
            if self.observe:
                self.observe(self._answered)
            self._answered.clear()

    def _after(self, connection: Connection, then: Act) -> None:
        """Go on with `then` once everything is sent."""
        if not connection.unsent:
            return then(connection)
        connection.then = then
        return connection.enter(self._writing, self._now)

    def _write(self, connection: Connection) -> None:
        with contextlib.suppress(BlockingIOError):
            connection.unsent = connection.unsent[connection.socket.send(connection.unsent) :] or b""
        if not connection.unsent:
            connection.then(connection)

    def _next(self, connection: Connection) -> None:
        self._serve(connection, answered=True)

    def _time_out(self, connection: Connection) -> None:
        if not connection.reader.has_part:
            return connection.close()
        return self._refuse(connection, Refusal(408, "too_slow", "Send the whole request within 10 seconds."))

    def _end(self, connection: Connection) -> None:
        """End a connection whose last answer is sent: at once, but not over bytes that nobody has read.

        Closing over those would destroy the answer, so our side ends first and the client's has a moment to follow.
        """
        if connection.reader.has_part or _has_unread(connection.socket):
            connection.socket.shutdown(socket.SHUT_WR)
            connection.enter(self._lingering, self._now)
        else:
            connection.close()

    def _drain(self, connection: Connection) -> None:
        if not connection.socket.recv(RECEIVE_BYTES):
            connection.close()


def _has_unread(client: socket.socket) -> bool:
    try:
        return bool(client.recv(1, socket.MSG_PEEK))
    except BlockingIOError:
        return False


@lru_cache(1)
def _http_date(second: int) -> str:
    return formatdate(second, usegmt=True)
