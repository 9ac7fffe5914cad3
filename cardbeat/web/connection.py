"""One client: the phases that its connection goes through, and what it does in each.

A connection is new until its first bytes have come, then reads a header, then a body where one is announced. While
its request is at work it reads nothing more: what the client sends meanwhile stays in the kernel. At work is also a
request of which only the head has come, while its key is looked up; one that is refused by its head is answered then,
and its body left out. The answer is sent at once as far as the kernel takes it, and the rest as the client takes it.
Then the connection is idle until the next request begins, or ends: lingering, for the client to see an answer that was
sent over bytes nobody has read.
"""

import contextlib
import logging
import os
import socket
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from cardbeat.errors import Refusal
from cardbeat.later import Job, Later
from cardbeat.system import MORE_FOLLOWS, send_together, sendfile
from cardbeat.web.forwarded import Peer
from cardbeat.web.loop import Loop, Phase
from cardbeat.web.message import CONTINUE, FileBody, Request, Response
from cardbeat.web.phases import Phases
from cardbeat.web.reader import Reader
from cardbeat.web.router import Answer, Exchange, Found, Route

log = logging.getLogger(__name__)

RECEIVE_BYTES = 16 * 1024
UNCOUNTED_BYTES = 1024
"""A connection that holds no more than this takes as much itself."""
COPIED_BYTES = 16 * 1024
"""Up to this size of a body it is cheaper to join head and body than to hand both over."""

Step = Callable[["Connection"], None]


class Connection:
    """One client's socket, and how far its request or its answer has come. `peer` is the client, or its proxy."""

    __slots__ = (
        "_exchange",
        "_is_holding",
        "_job",
        "_loop",
        "_phase",
        "_phases",
        "_reader",
        "_route",
        "_socket",
        "_then",
        "_unsent",
        "_watched",
        "peer",
    )

    def __init__(
        self, client: socket.socket, peer: Peer, loop: Loop, phases: "Phases[Connection]", exchange: Exchange
    ) -> None:
        self._socket = client
        self.peer = peer
        self._loop = loop
        self._phases = phases
        self._exchange = exchange
        self._reader = Reader(phases.limits, exchange.router.ignores_body)
        self._phase: Phase[Connection] | None = None  # once it is closed
        self._route: Route | None = None  # of a request that may go on to its body
        self._job: Later[Any] | None = None  # that is waited for
        self._unsent: memoryview | None = None
        self._is_holding = False  # any bytes, as far as they are counted
        self._then: Step = Connection.close  # once everything is sent
        self._watched = 0

    def start(self) -> None:
        """Begin to serve the client. Its request has often come already, so that reading at once spares a wait."""
        self._phases.opened(self)
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
            self._phases.closed(self)
            self._hold(0)
            self.watch()
            self._socket.close()

    def read(self) -> None:
        """Take what has come. After the last answer it is dropped, until the client has ended its side too."""
        try:
            data = self._socket.recv(RECEIVE_BYTES)
        except BlockingIOError:
            return self._await() if self._phase is self._phases.new else None
        if not data:
            return self.close()
        return None if self._phase is self._phases.lingering else self._serve(data)

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

    def time_out(self) -> None:
        # What is left of a body that was left out has had its answer.
        if not self._reader.has_part or (self._reader.in_body and self._reader.request is None):
            return self.close()
        return self._refuse(Refusal(408, "too_slow", "Send the whole request within 10 seconds."))

    def give_way(self) -> None:
        """Close and let go of everything, unless it is being worked on: then that would free nothing."""
        is_at_work = self._phase is self._phases.working
        if not is_at_work or (isinstance(self._job, Job) and self._job.cancel(ConnectionAbortedError())):
            self.close()

    def _enter(self, phase: Phase["Connection"]) -> None:
        if phase is not self._phase:
            if self._phase is not None:
                del self._phase.deadlines[self]
            self._phase = phase
            if phase.events is not None:
                self.watch(phase.events)
        phase.deadlines[self] = self._loop.now + phase.seconds
        phase.deadlines.move_to_end(self)

    def _hold(self, count: int) -> None:
        """Count so many bytes as held for this client, or none where they are not worth the counting."""
        if count <= UNCOUNTED_BYTES:
            count = 0
        if count or self._is_holding:
            self._is_holding = count > 0
            self._phases.held.set(self, count, self._loop.now)

    def _serve(self, data: bytes = b"") -> None:
        """Answer the next request, if it is whole; else wait for the rest of it, if its head does not refuse it."""
        try:
            request = self._reader.next(data)
        except Refusal as refusal:
            return self._refuse(refusal)
        if self._route is not None:
            if request is None:
                return self._await()
            route, self._route, request.received_at = self._route, None, self._loop.now
            return self._take(request, route)
        request = request or self._reader.request
        if request is None:
            return self._await()
        self._exchange.identify(request, self._loop.now, self.peer)
        found = self._exchange.serve(request, is_whole=self._reader.request is None)
        return self._answer(request, found) if isinstance(found, Response) else self._take(request, found)

    def _await(self) -> None:
        """Wait for the rest of a request: its time runs from its first byte, whatever trickles in."""
        reader, phases = self._reader, self._phases
        self._hold(reader.held_bytes)
        phase = phases.body if reader.in_body else phases.header
        if phase is not self._phase:
            self._enter(phase)
        if reader.expects_continue:
            reader.expects_continue = False
            self._socket.send(CONTINUE)

    def _go_on(self) -> None:
        """Wait for the next request; if it has come with the last, all other clients have their turn before it."""
        if not self._reader.has_part:
            if self._is_holding:
                self._hold(0)
            return self._enter(self._phases.idle)
        self._hold(self._reader.held_bytes)
        self._loop.call_soon(self.do, Connection._serve)
        return self._enter(self._phases.working)

    def _take(self, request: Request, found: Found | Later[Found] | Later[Route] | Later[Answer]) -> None:
        """Go on with what a request has led to: its answer, the route that gives that, or either of them later."""
        if isinstance(found, Later):
            self._job = found
            self._hold(request.held_bytes)
            self._enter(self._phases.working)
            found.then(partial(self._loop.call_soon, self.do, Connection._resume, request))
        elif isinstance(found, Response):
            self._answer(request, found)
        elif self._reader.request is not None:
            self._route = found
            self._await()
        else:
            self._take(request, self._exchange.serve(request, found))

    def _resume(self, request: Request, settled: Later[Found]) -> None:
        self._job = None
        try:
            found = settled.result()
        except Exception as error:
            found = self._exchange.router.refuse(request, error)
        self._take(request, found)

    def _refuse(self, refusal: Refusal) -> None:
        """Answer what can't be read as a request; nothing after it on this connection can be either."""
        request = Request("-", "-", "-")
        self._exchange.identify(request, self._loop.now, self.peer)
        self._reader.keep_alive = False
        self._answer(request, Response.refusal(refusal))

    def _answer(self, request: Request, response: Response) -> None:
        """Send and note an answer, and go on once it is sent."""
        if self._reader.request is not None:
            self._reader.skip_body()
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
            # All of it stays until the last byte is sent.
            self._hold(self._reader.held_bytes + memoryview(self._unsent.obj).nbytes)
            self._enter(self._phases.writing)
        else:
            self._then(self)

    def _end(self) -> None:
        """End a connection whose last answer is sent: at once, but not over bytes that nobody has read.

        Closing over those would destroy the answer, so our side ends first and the client's has a moment to follow.
        """
        if self._reader.has_part or _has_unread(self._socket):
            self._socket.shutdown(socket.SHUT_WR)
            self._hold(self._reader.held_bytes)
            self._enter(self._phases.lingering)
        else:
            self.close()


def _send(client: socket.socket, head: bytes, body: bytes | FileBody) -> memoryview | None:
    """Send what the kernel takes now of a head and a body; returns what it did not take, if anything.

    Raises `OSError` for a client that is gone and for a file that is shorter than it was.
    """
    if isinstance(body, FileBody):
        return _send_file(client, head, body)
    try:
        sent = client.send(head + body) if len(body) < COPIED_BYTES else send_together(client, (head, body))
    except BlockingIOError:
        sent = 0
    if sent == len(head) + len(body):
        return None
    # A large body is not copied: it may be one that many clients are sent.
    return memoryview(body)[sent - len(head) :] if sent >= len(head) else memoryview(head + body)[sent:]


def _send_file(client: socket.socket, head: bytes, body: FileBody) -> memoryview | None:
    if sendfile is None:
        return _send(client, head, body.read())
    sent = 0
    try:
        sent = client.send(head, MORE_FOLLOWS)
        if sent == len(head):
            sent += sendfile(client.fileno(), body.descriptor, 0, body.length)
        if sent == len(head) + body.length:
            return None
    except OSError:  # Whatever is wrong: the rest goes another way, and fails there if it must.
        pass
    # The rest of a file is read: a slow client must not hold a descriptor, which is dearer than the bytes.
    return memoryview(head + body.read())[sent:]


def _has_unread(client: socket.socket) -> bool:
    try:
        return bool(client.recv(1, socket.MSG_PEEK))
    except BlockingIOError:
        return False
