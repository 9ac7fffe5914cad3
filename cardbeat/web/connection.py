"""One client: the phases that its connection goes through, and what it does in each.

A connection is new until its first bytes have come, then reads a header, then a body where one is announced. While
its request is at work it reads nothing more: what the client sends meanwhile stays in the kernel. The answer is sent
at once as far as the kernel takes it, and the rest as the client takes it. Then the connection is idle until the next
request begins, or ends: lingering, for the client to see an answer that was sent over bytes nobody has read.
"""

import contextlib
import logging
import os
import socket
import time
from collections.abc import Callable
from functools import partial
from math import inf
from typing import Any

from cardbeat.config import HttpLimits
from cardbeat.errors import Refusal
from cardbeat.later import Later
from cardbeat.system import MORE_FOLLOWS, send_together, sendfile
from cardbeat.web.forwarded import is_trusted, parse_address
from cardbeat.web.loop import WRITE, Loop, Phase
from cardbeat.web.message import CONTINUE, FileBody, Request, Response
from cardbeat.web.reader import Reader
from cardbeat.web.router import Answer, Exchange

log = logging.getLogger(__name__)

RECEIVE_BYTES = COPIED_BYTES = 16 * 1024
"""Up to this size it is cheaper to join head and body than to hand both over."""

Step = Callable[["Connection"], None]


class Phases:
    """All `count` open connections, each in its phase. With `are_ending` each ends with its next answer."""

    def __init__(self, limits: HttpLimits) -> None:
        self.limits = limits
        self.are_ending = False
        self.count = 0
        self.new = Phase(limits.header_seconds, Connection.read, Connection.time_out, events=None)
        self.header = Phase(limits.header_seconds, Connection.read, Connection.time_out)
        self.body = Phase(limits.body_seconds, Connection.read, Connection.time_out)
        self.idle = Phase(limits.idle_seconds, Connection.read, Connection.close)
        self.working = Phase(inf, Connection.watch, Connection.close, events=None)
        self.writing = Phase(limits.write_seconds, Connection.write, Connection.close, events=WRITE)
        self.lingering = Phase(limits.linger_seconds, Connection.drain, Connection.close)
        self._waiting = (self.idle, self.header, self.new, self.lingering, self.body, self.writing)
        """Those that wait for the client, in the order in which they give way to new clients."""

    def can_give_way(self) -> bool:
        return any(phase.deadlines for phase in self._waiting)

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

    def close_all(self, *, but_asked: bool = False) -> None:
        """Close every connection, or those that have asked for nothing yet."""
        for phase in (self.idle, self.header, self.new) if but_asked else (*self._waiting, self.working):
            for connection in phase.overdue():
                connection.close()


class Connection:
    """One client's socket, and how far its request or its answer has come. `peer` is the client's address."""

    __slots__ = (
        "_exchange",
        "_is_trusted",
        "_loop",
        "_peer",
        "_phase",
        "_phases",
        "_reader",
        "_socket",
        "_then",
        "_unsent",
        "_watched",
    )

    def __init__(self, client: socket.socket, peer: str, loop: Loop, phases: Phases, exchange: Exchange) -> None:
        self._socket = client
        self._peer = peer
        self._loop = loop
        self._phases = phases
        self._exchange = exchange
        proxies = exchange.trusted_proxies
        self._is_trusted = bool(proxies) and is_trusted(parse_address(peer), proxies)
        self._reader = Reader(phases.limits, exchange.router.ignores_body)
        self._phase: Phase[Connection] | None = None  # once it is closed
        self._unsent: memoryview | None = None
        self._then: Step = Connection.close  # once everything is sent
        self._watched = 0

    def start(self) -> None:
        """Begin to serve the client. Its request has often come already, so that reading at once spares a wait."""
        self._phases.count += 1
        self._enter(self._phases.new)
        self.do(Connection.read)

    def do(self, step: Callable[..., None] | None = None, *values: Any) -> None:
        """Take a step; without one that of the phase, one of whose events has come.

        Whatever goes wrong with one connection ends that one alone.
        """
        try:
            # None where it was closed since this was asked for.
            if self._phase is not None:
                (step or self._phase.ready)(self, *values)
        except OSError:
            self.close()
        except Exception:
            log.exception("a connection failed")
            self.close()

    def close(self) -> None:
        if self._phase is not None:
            del self._phase.deadlines[self]
            self._phase = None
            self._phases.count -= 1
            self.watch()
            self._socket.close()

    def read(self) -> None:
        try:
            data = self._socket.recv(RECEIVE_BYTES)
        except BlockingIOError:
            return self._await()
        return self._serve(data) if data else self.close()

    def watch(self, events: int = 0) -> None:
        """Be called for these events; for none, what the client sends stays in the kernel until the answer is out."""
        if events != self._watched:
            self._loop.watch(self._socket, events, self.do)
            self._watched = events

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

    def _enter(self, phase: Phase["Connection"]) -> None:
        if phase is not self._phase:
            if self._phase is not None:
                del self._phase.deadlines[self]
            self._phase = phase
            if phase.events is not None:
                self.watch(phase.events)
        phase.deadlines[self] = self._loop.now + phase.seconds
        phase.deadlines.move_to_end(self)

    def _serve(self, data: bytes = b"") -> None:
        """Answer the next request, if it is whole; else wait for the rest of it."""
        try:
            request = self._reader.next(data)
        except Refusal as refusal:
            return self._refuse(refusal)
        if request is None:
            return self._await()
        self._exchange.identify(request, self._loop.now, self._peer, is_trusted=self._is_trusted)
        return self._answer_with(request, self._exchange.begin(request))

    def _await(self) -> None:
        """Wait for the rest of a request: its time runs from its first byte, whatever trickles in."""
        reader, phases = self._reader, self._phases
        phase = phases.body if reader.in_body else phases.header
        if phase is not self._phase:
            self._enter(phase)
        if reader.expects_continue:
            reader.expects_continue = False
            self._socket.send(CONTINUE)

    def _go_on(self) -> None:
        """Wait for the next request; if it has come with the last, all other clients have their turn before it."""
        if not self._reader.has_part:
            return self._enter(self._phases.idle)
        self._loop.call_soon(self.do, Connection._serve)
        return self._enter(self._phases.working)

    def _answer_with(self, request: Request, answer: Answer | Later[Answer]) -> None:
        """Answer now, or once the thread that makes the answer brings it back."""
        if isinstance(answer, Later):
            answer.then(partial(self._loop.call_soon, self.do, Connection._resume, request))
            self._enter(self._phases.working)
        else:
            self._answer(request, answer)

    def _resume(self, request: Request, settled: Later[Answer]) -> None:
        try:
            answer = settled.result()
        except Exception as error:
            answer = self._exchange.router.refuse(request, error)
        self._answer_with(request, answer)

    def _refuse(self, refusal: Refusal) -> None:
        """Answer what can't be read as a request; nothing after it on this connection can be either."""
        request = Request("-", "-", "-")
        self._exchange.identify(request, self._loop.now, self._peer, is_trusted=self._is_trusted)
        self._reader.keep_alive = False
        self._answer(request, Response.refusal(refusal))

    def _answer(self, request: Request, response: Response) -> None:
        """Send and note an answer, and go on once it is sent."""
        keep_alive = self._reader.keep_alive and not self._phases.are_ending
        head, response = self._exchange.head_of(request, response, self._loop.date, keep_alive=keep_alive)
        body = response.body
        try:
            self._unsent = _send(self._socket, head, b"" if request.method == "HEAD" else body)
        finally:
            self._exchange.answered.append((request, response, time.monotonic() - request.received_at))
            if isinstance(body, FileBody):
                os.close(body.descriptor)
        self._then = Connection._go_on if keep_alive else Connection._end
        if self._unsent:
            self._enter(self._phases.writing)
        else:
            self._then(self)

    def _end(self) -> None:
        """End a connection whose last answer is sent: at once, but not over bytes that nobody has read.

        Closing over those would destroy the answer, so our side ends first and the client's has a moment to follow.
        """
        if self._reader.has_part or _has_unread(self._socket):
            self._socket.shutdown(socket.SHUT_WR)
            self._enter(self._phases.lingering)
        else:
            self.close()


def _has_unread(client: socket.socket) -> bool:
    try:
        return bool(client.recv(1, socket.MSG_PEEK))
    except BlockingIOError:
        return False


def _send(client: socket.socket, head: bytes, body: bytes | FileBody) -> memoryview | None:
    """Send what the kernel takes now; returns what it did not take, if anything.

    Raises `OSError` for a client that is gone and for a file that is shorter than it was.
    """
    try:
        sent = _send_now(client, head, body)
    except BlockingIOError:
        sent = 0
    if sent == len(head) + (len(body) if isinstance(body, bytes) else body.length):
        return None
    # The rest of a file is read: a slow client must not hold a descriptor, which is dearer than the bytes.
    return memoryview(head + (body if isinstance(body, bytes) else body.read()))[sent:]


def _send_now(client: socket.socket, head: bytes, body: bytes | FileBody) -> int:
    if isinstance(body, bytes):
        return client.send(head + body) if len(body) < COPIED_BYTES else send_together(client, (head, body))
    if sendfile is None:
        return send_together(client, (head, body.read()))
    sent = client.send(head, MORE_FOLLOWS)
    if sent == len(head):
        try:
            return sent + sendfile(client.fileno(), body.descriptor, 0, body.length)
        except OSError:
            # Whatever is wrong: the rest goes another way, and fails there if it must.
            return sent
    return sent
