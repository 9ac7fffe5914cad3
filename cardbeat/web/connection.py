"""One client: the phases that its connection goes through, and what it does in each.

A connection is new until its first bytes have come, then reads a header, then a body where one is announced. While
its request is at work it reads nothing more: what the client sends meanwhile stays in the kernel. The answer is sent
at once as far as the kernel takes it, and the rest as the client takes it. Then the connection is idle until the next
request begins, or ends: lingering, for the client to see an answer that was sent over bytes nobody has read.
"""

import contextlib
import logging
import secrets
import socket
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count
from math import inf
from typing import Final

from cardbeat.config import HttpLimits, Network
from cardbeat.errors import Refusal
from cardbeat.later import Later
from cardbeat.web.forwarded import client_address, is_trusted, parse_address
from cardbeat.web.loop import Loop
from cardbeat.web.message import Answered, FileBody, Request, Response
from cardbeat.web.poller import READ, WRITE
from cardbeat.web.reader import Reader
from cardbeat.web.router import Router
from cardbeat.web.sending import send
from cardbeat.web.wire import CONTINUE, response_head
from cardbeat.web.workers import Workers

log = logging.getLogger(__name__)

RECEIVE_BYTES: Final = 16 * 1024

Step = Callable[["Connection"], None]


class Phase:
    """The connections that wait for the same thing.

    All members may wait equally long, so they stand in the order in which their time runs out. `ready` is what to do
    once one of the `events` has come, `expired` once the time is up; with `events` None a member goes on being woken
    for what it was woken for before.
    """

    __slots__ = ("_deadlines", "events", "expired", "ready", "seconds")

    def __init__(self, seconds: float, ready: Step, expired: Step, events: int | None = READ) -> None:
        self.seconds = seconds
        self.ready = ready
        self.expired = expired
        self.events = events
        self._deadlines: OrderedDict[Connection, float] = OrderedDict()

    def __len__(self) -> int:
        return len(self._deadlines)

    def add(self, connection: "Connection", now: float) -> None:
        """Take in a connection, or give a member all of its time again."""
        self._deadlines[connection] = now + self.seconds
        self._deadlines.move_to_end(connection)

    def discard(self, connection: "Connection") -> None:
        del self._deadlines[connection]

    def overdue(self, now: float = inf) -> Iterator["Connection"]:
        """The members whose time is up, longest ago first; each must leave before the next is asked for."""
        while self._deadlines:
            connection, deadline = next(iter(self._deadlines.items()))
            if deadline > now:
                return
            yield connection


class Phases:
    """All open connections, each in its phase."""

    def __init__(self, limits: HttpLimits) -> None:
        self.new = Phase(limits.header_seconds, Connection.read, Connection.time_out, events=None)
        self.header = Phase(limits.header_seconds, Connection.read, Connection.time_out)
        self.body = Phase(limits.body_seconds, Connection.read, Connection.time_out)
        self.idle = Phase(limits.idle_seconds, Connection.read, Connection.close)
        self.working = Phase(inf, Connection.pause, Connection.close, events=None)
        self.writing = Phase(limits.write_seconds, Connection.write, Connection.close, events=WRITE)
        self.lingering = Phase(limits.linger_seconds, Connection.drain, Connection.close)
        self._waiting = (self.idle, self.header, self.new, self.lingering, self.body, self.writing)
        """Those that wait for the client, in the order in which they give way to new clients."""

    def __len__(self) -> int:
        return sum(map(len, self._waiting)) + len(self.working)

    def can_give_way(self) -> bool:
        return any(map(len, self._waiting))

    def give_way(self) -> bool:
        """Close the connection that has waited longest, idle ones first; none that is being answered."""
        for phase in self._waiting:
            for connection in phase.overdue():
                connection.close()
                return True
        return False

    def expire(self, now: float) -> None:
        for phase in self._waiting:
            for connection in phase.overdue(now):
                connection.do(phase.expired)

    def close_unasked(self) -> None:
        """Close the connections that have asked for nothing yet."""
        for phase in (self.idle, self.header, self.new):
            for connection in phase.overdue():
                connection.close()

    def close_all(self) -> None:
        for phase in (*self._waiting, self.working):
            for connection in phase.overdue():
                connection.close()


class Exchange:
    """What all connections of a server share: how requests become answers, and who is told of them.

    Only the loop's thread uses it. `answered` is what was answered in the present turn of the loop.
    """

    def __init__(
        self, loop: Loop, router: Router, workers: Workers, limits: HttpLimits, trusted_proxies: Sequence[Network]
    ) -> None:
        self.loop = loop
        self.router = router
        self.workers = workers
        self.limits = limits
        self.trusted_proxies = trusted_proxies
        self.phases = Phases(limits)
        self.answered: list[Answered] = []
        self.is_stopping = False
        self.request_ids = map(f"{secrets.token_hex(4)}-{{:x}}".format, count(1))

    def begin(self, request: Request) -> Response | Later[Response]:
        """The answer to a request, at once or later."""
        try:
            route = self.router.find(request)
            if route.in_loop:
                return route.handler(request)
        except Exception as error:
            return self.router.refuse(request, error)
        return self.workers.submit(partial(self.router.handle, request))


class Connection:
    """One client's socket, and how far its request or its answer has come. `peer` is the client's address."""

    __slots__ = ("_exchange", "_is_trusted", "_peer", "_phase", "_reader", "_socket", "_then", "_unsent", "_watched")

    def __init__(self, client: socket.socket, peer: str, exchange: Exchange) -> None:
        self._socket = client
        self._exchange = exchange
        self._peer = peer
        self._is_trusted = bool(exchange.trusted_proxies) and is_trusted(parse_address(peer), exchange.trusted_proxies)
        self._reader = Reader(exchange.limits, exchange.router.ignores_body)
        self._phase: Phase | None = None
        """None once it is closed."""
        self._unsent: memoryview | None = None
        self._then: Step = Connection.close
        """What follows once everything is sent."""
        self._watched = 0

    def start(self) -> None:
        """Begin to serve the client. Its request has often come already: reading at once spares it the poller."""
        self._enter(self._exchange.phases.new)
        self.do(Connection.read)

    def do(self, step: Step) -> None:
        """Take a step. Whatever goes wrong with one connection ends that one alone."""
        try:
            if self._phase:
                step(self)
        except OSError:
            self.close()
        except Exception:
            log.exception("a connection failed")
            self.close()

    def close(self) -> None:
        if self._phase:
            self._phase.discard(self)
            self._phase = None
            self._watch(0)
            self._socket.close()

    def read(self) -> None:
        try:
            data = self._socket.recv(RECEIVE_BYTES)
        except BlockingIOError:
            return self._await(answered=False)
        if not data:
            return self.close()
        self._reader.feed(data)
        return self._serve(answered=False)

    def pause(self) -> None:
        """The client sends more while its request is at work: leave it in the kernel until the answer is out."""
        self._watch(0)

    def write(self) -> None:
        if self._unsent:
            with contextlib.suppress(BlockingIOError):
                self._unsent = self._unsent[self._socket.send(self._unsent) :]
        if not self._unsent:
            self._then(self)

    def drain(self) -> None:
        if not self._socket.recv(RECEIVE_BYTES):
            self.close()

    def time_out(self) -> None:
        if not self._reader.has_part:
            return self.close()
        return self._refuse(Refusal(408, "too_slow", "Send the whole request within 10 seconds."))

    def _ready(self) -> None:
        """The loop's call: one of the events of the phase has come."""
        # None where this turn of the loop has closed it.
        if self._phase:
            self.do(self._phase.ready)

    def _enter(self, phase: Phase) -> None:
        if phase is not self._phase:
            if self._phase:
                self._phase.discard(self)
            self._phase = phase
            if phase.events is not None:
                self._watch(phase.events)
        phase.add(self, self._exchange.loop.now)

    def _watch(self, events: int) -> None:
        if events != self._watched:
            self._exchange.loop.watch(self._socket, events, self._ready)
            self._watched = events

    def _serve(self, *, answered: bool) -> None:
        """Answer the requests that are whole, in turn, as far as that goes without waiting."""
        while True:
            try:
                request = self._reader.next()
            except Refusal as refusal:
                return self._refuse(refusal)
            if request is None:
                return self._await(answered=answered)
            self._identify(request)
            answer = self._exchange.begin(request)
            if isinstance(answer, Later):
                self._enter(self._exchange.phases.working)
                return answer.then(partial(self._hand_back, request))
            if not self._answer(request, answer):
                return None
            answered = True

    def _identify(self, request: Request) -> None:
        exchange = self._exchange
        request.received_at = exchange.loop.now
        request.id = next(exchange.request_ids)
        request.client = self._peer
        if self._is_trusted:
            request.client = client_address(self._peer, request.headers, exchange.trusted_proxies)

    def _await(self, *, answered: bool) -> None:
        """Wait for the rest of a request, or the next: its time runs from its first byte, whatever trickles in."""
        reader, phases = self._reader, self._exchange.phases
        if answered and not reader.has_part:
            return self._enter(phases.idle)
        phase = phases.body if reader.in_body else phases.header
        if answered or phase is not self._phase:
            self._enter(phase)
        if reader.expects_continue:
            reader.expects_continue = False
            self._socket.send(CONTINUE)
        return None

    def _hand_back(self, request: Request, answer: Later[Response]) -> None:
        """In the thread that has made the answer: give it to the one that owns the connection."""
        self._exchange.loop.call_soon(partial(self.do, lambda _: self._resume(request, answer)))

    def _resume(self, request: Request, answer: Later[Response]) -> None:
        try:
            response = answer.result()
        except Exception as error:
            response = self._exchange.router.refuse(request, error)
        if self._answer(request, response):
            self._serve(answered=True)

    def _refuse(self, refusal: Refusal) -> None:
        """Answer what can't be read as a request; nothing after it on this connection can be either."""
        request = Request("-", "-", "-")
        self._identify(request)
        self._reader.keep_alive = False
        self._answer(request, Response.refusal(refusal))

    def _answer(self, request: Request, response: Response) -> bool:
        """Send and note an answer. Whether the connection is ready for its next request at once."""
        exchange = self._exchange
        keep_alive = self._reader.keep_alive and not exchange.is_stopping
        head, response = self._head(request, response, keep_alive)
        body = response.body
        try:
            self._unsent = send(self._socket, head, b"" if request.method == "HEAD" else body)
        finally:
            exchange.answered.append((request, response, time.monotonic() - request.received_at))
            if isinstance(body, FileBody):
                body.close()
        if keep_alive and not self._unsent:
            return True
        then = Connection._next if keep_alive else Connection._end
        if self._unsent:
            self._then = then
            self._enter(exchange.phases.writing)
        else:
            then(self)
        return False

    def _head(self, request: Request, response: Response, keep_alive: bool) -> tuple[bytes, Response]:
        """The head of an answer; also the answer, which is another one if this one can't be written."""
        date, router = self._exchange.loop.date, self._exchange.router
        try:
            return response_head(response, request.id, date, keep_alive), response
        except Exception as error:
            response = router.refuse(request, error)
            return response_head(response, request.id, date, keep_alive), response

    def _next(self) -> None:
        self._serve(answered=True)

    def _end(self) -> None:
        """End a connection whose last answer is sent: at once, but not over bytes that nobody has read.

        Closing over those would destroy the answer, so our side ends first and the client's has a moment to follow.
        """
        if self._reader.has_part or _has_unread(self._socket):
            self._socket.shutdown(socket.SHUT_WR)
            self._enter(self._exchange.phases.lingering)
        else:
            self.close()


def _has_unread(client: socket.socket) -> bool:
    try:
        return bool(client.recv(1, socket.MSG_PEEK))
    except BlockingIOError:
        return False
