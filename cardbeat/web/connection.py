"""One client: the phases that its connection goes through, and what it does in each.

- new: nothing has come yet but empty lines. After 5 s the connection is idle.
- header, body: a part of a request has come.
- working: a handler works on the request, or its key is looked up, for which the head is enough. A request that is
  refused by its head is answered now, and its body is dropped. The connection reads nothing: what the client sends
  stays in the kernel.
- buffered: the next request, or a part of it, came with the last one, and waits for its turn. Or a trusted proxy has
  passed on a request, which waits for its client's turn.
- writing: the kernel has taken a part of the answer; the rest is sent as the client reads.
- idle: the next request has not begun.
- lingering: the last answer is sent, and bytes of the client are unread. Closing now would destroy the answer.
"""

import contextlib
import logging
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from cardbeat.concurrency.later import Job, Later
from cardbeat.errors import Refusal
from cardbeat.web.exchange import Exchange, Found, answer_to_error
from cardbeat.web.forwarded import Peer
from cardbeat.web.loop import READ, Loop, Phase
from cardbeat.web.message import CONTINUE, FileBody, Request, Response
from cardbeat.web.phases import Phases
from cardbeat.web.reader import Reader
from cardbeat.web.router import Answer, Route
from cardbeat.web.sending import has_unread, send

log = logging.getLogger(__name__)

RECEIVE_BYTES = 16 * 1024
UNCOUNTED_BYTES = 1024
"""Fewer bytes are not counted as held: the connection itself takes as much memory."""

Step = Callable[["ClientConnection"], None]


@dataclass(slots=True, eq=False, repr=False)
class ClientConnection:
    """One client's socket, and the state of its request or answer. `peer` is the client, or the proxy before it.

    `network` is that of the client. For a trusted proxy it is that of the client whose request came last.
    """

    _socket: socket.socket
    peer: Peer
    _loop: Loop
    _phases: "Phases[ClientConnection]"
    _exchange: Exchange
    network: str = field(init=False)
    _reader: Reader = field(init=False)
    _then: Step = field(init=False)  # what to do when all is sent
    _phase: "Phase[ClientConnection] | None" = None  # None when closed
    _route: Route | None = None  # of a request whose head was accepted and whose body is awaited
    _job: Later[Any] | None = None  # the result that this connection waits for
    _asked: Request | None = None  # the request that it belongs to, or one that waits for its client's turn
    _unsent: memoryview | None = None
    _is_holding: bool = False  # whether bytes are counted as held for it
    _watched: int = 0

    def __post_init__(self) -> None:
        self.network = self.peer.network
        self._reader = Reader(self._phases.limits, self._exchange.router.ignores_body)

    def start(self) -> None:
        """Begin to serve the client, in its turn. It reads then, because the request has often come already."""
        self._phases.opened(self)
        self._enter(self._phases.new)
        self._loop.call_in_turn(self.do, self.peer.network)

    def do(self, step: Step | None = None) -> None:
        """Take a step, by default the one that the phase takes at an event. An error closes this connection only."""
        try:
            # It may have been closed since this call was planned.
            if self._phase is not None:
                (step or self._phase.ready)(self)
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
            # A call that waits for its turn may keep this object for seconds.
            self._reader.forget()
            self._asked = self._unsent = None
            self.watch()
            self._socket.close()

    def read(self) -> None:
        """Receive and serve what has come. After the last answer, drop it until the client closes its side."""
        try:
            data = self._socket.recv(RECEIVE_BYTES)
        except BlockingIOError:
            return self.watch(READ) if self._phase is self._phases.new else None
        if not data:
            return self.close()
        return None if self._phase is self._phases.lingering else self.serve(data)

    def watch(self, events: int = 0) -> None:
        """Wait for these events of the socket. With 0, what the client sends stays in the kernel."""
        if events != self._watched:
            self._loop.watch(self._socket, events, self.do, self.peer.network)
            self._watched = events

    def write(self) -> None:
        if self._unsent:
            with contextlib.suppress(BlockingIOError):
                self._unsent = self._unsent[self._socket.send(self._unsent) :]
        if not self._unsent:
            self._then(self)

    def time_out(self) -> None:
        # A request whose body is dropped has its answer already.
        if self._reader.in_body and self._reader.request is None:
            return self.close()
        return self._refuse(Refusal("too_slow"))

    def become_idle(self) -> None:
        """Count a client as idle that has sent nothing since it connected."""
        self._enter(self._phases.idle)

    def can_give_way(self) -> bool:
        """Whether to close frees anything: not while a thread works on the request, nor while a write is awaited."""
        job = self._job
        return self._phase is not self._phases.working or (isinstance(job, Job) and job.may_be_cancelled)

    def give_way(self) -> None:
        """Close, and drop the request that waits for a worker or for a card."""
        job, self._job, self._asked = self._job, None, None
        self.close()
        if isinstance(job, Job):
            job.cancel(ConnectionAbortedError())

    def _enter(self, phase: Phase["ClientConnection"]) -> None:
        if phase is not self._phase:
            if self._phase is not None:
                del self._phase.deadlines[self]
            self._phase = phase
            if phase.events is not None:
                self.watch(phase.events)
        phase.deadlines[self] = self._loop.now + phase.seconds
        phase.deadlines.move_to_end(self)

    def _hold(self, count: int) -> None:
        """Set the number of bytes held for this client; 1 KiB and less counts as 0."""
        if count <= UNCOUNTED_BYTES:
            count = 0
        if count or self._is_holding:
            self._is_holding = count > 0
            self._phases.held.set(self, count, self._loop.now)

    def _hold_with(self, request: Request) -> None:
        """Count a request that waits, and what came with it: more of its body, or the next ones."""
        self._hold(self._reader.held_bytes + (request.held_bytes if self._reader.request is None else 0))

    def serve(self, data: bytes = b"") -> None:
        """Answer the next request if it is complete, or its head refuses it. Else wait for the rest."""
        if self._asked is not None:
            # It waits for its client's turn. This was a call from before.
            return None
        try:
            request = self._reader.next(data)
        except Refusal as refusal:
            return self._refuse(refusal)
        if self._route is not None:
            if request is None:
                return self._await()
            request.received_at = self._loop.now
        else:
            request = request or self._reader.request
            if request is None:
                return self._await()
            self._exchange.identify(request, self._loop.now, self.peer)
        return self._queue(request) if self.peer.is_trusted else self._serve(request)

    def _queue(self, request: Request) -> None:
        """Have a request that a proxy has passed on served in its client's turn: only its head tells the client."""
        if request.network != self.network:
            self._phases.moved(self, request.network)
        self._asked = request
        self._hold_with(request)
        self._enter(self._phases.buffered)
        self._loop.call_in_turn(partial(self.do, ClientConnection.serve_asked), request.network)

    def serve_asked(self) -> None:
        request, self._asked = self._asked, None
        if request is not None:
            self._serve(request)

    def _serve(self, request: Request) -> None:
        if self._route is not None:
            route, self._route = self._route, None
            return self._take(request, route)
        found = self._exchange.serve(request, is_whole=self._reader.request is None)
        return self._answer(request, found) if isinstance(found, Response) else self._take(request, found)

    def _await(self) -> None:
        """Wait for the rest of a request. Its time runs from its first byte, however many more follow."""
        reader, phases = self._reader, self._phases
        self._hold(reader.held_bytes)
        if not reader.has_part:
            # This was the end of a body that is dropped, or an empty line before a request.
            if self._phase is phases.new:
                return self.watch(READ)
            return None if self._phase is phases.idle else self._rest()
        phase = phases.body if reader.in_body else phases.header
        if phase is not self._phase:
            self._enter(phase)
        if reader.expects_continue:
            reader.expects_continue = False
            self._socket.send(CONTINUE)
        return None

    def _rest(self) -> None:
        """Wait for the next request; during a stop, end the connection."""
        if self._phases.are_ending:
            self._end()
        else:
            self._enter(self._phases.idle)

    def _go_on(self) -> None:
        """Wait for the next request. If it came with the last one, it has to wait for its turn."""
        if not self._reader.has_part:
            if self._is_holding:
                self._hold(0)
            return self._rest()
        self._hold(self._reader.held_bytes)
        self._loop.call_in_turn(self.do, self.peer.network)
        return self._enter(self._phases.buffered)

    def _take(self, request: Request, found: Found | Later[Found] | Later[Route] | Later[Answer]) -> None:
        """Go on with what a request has led to: its answer, the route that will answer it, or a `Later` of these."""
        if isinstance(found, Later):
            self._job, self._asked = found, request
            self._hold_with(request)
            self._enter(self._phases.working)
            found.then(self._wake)
        elif isinstance(found, Response):
            self._answer(request, found)
        elif self._reader.request is not None:
            self._route = found
            self._await()
        else:
            self._take(request, self._exchange.serve(request, found))

    def _wake(self, _: object) -> None:
        """Have the result taken in the loop's thread. A connection that has given way must not wait for a turn."""
        if self._phase is not None:
            self._loop.call_soon(self.do, self.network)

    def resume(self) -> None:
        """Go on with the result if it is there. If not, the client has sent more, which stays in the kernel."""
        request, job = self._asked, self._job
        if request is None or job is None or not job.is_settled:
            return self.watch()
        self._job = self._asked = None
        try:
            found = job.result()
        except Exception as error:
            found = answer_to_error(request, error)
        return self._take(request, found)

    def _refuse(self, refusal: Refusal) -> None:
        """Refuse bytes that are no valid request, and close then: the bytes behind them can't be read either."""
        request = Request("-", "-", "-")
        self._exchange.identify(request, self._loop.now, self.peer)
        self._reader.keep_alive = False
        self._answer(request, Response.refusal(refusal))

    def _answer(self, request: Request, response: Response) -> None:
        """Send an answer, note it for the log, and go on when it is sent."""
        if self._reader.request is not None:
            self._reader.skip_body()
        keep_alive = self._reader.keep_alive and not self._phases.are_ending
        head, response = self._exchange.head_of(request, response, self._loop.date, keep_alive=keep_alive)
        body = response.body
        try:
            self._unsent = send(self._socket, head, b"" if request.method == "HEAD" else body)
        finally:
            self._exchange.answered.append((request, response, self._loop.elapsed() - request.received_at))
            if isinstance(body, FileBody):
                os.close(body.descriptor)
        self._then = ClientConnection._go_on if keep_alive else ClientConnection._end
        if self._unsent:
            # All of it stays in memory until the last byte is sent.
            self._hold(self._reader.held_bytes + memoryview(self._unsent.obj).nbytes)
            self._enter(self._phases.writing)
        else:
            self._then(self)

    def _end(self) -> None:
        """End a connection whose last answer is sent.

        Closing a socket with unread bytes resets the connection, and the client may lose the answer. Then only the
        sending side is closed, and the client has 2 s to read the answer and close its side.
        """
        if self._reader.has_part or has_unread(self._socket):
            self._socket.shutdown(socket.SHUT_WR)
            self._hold(self._reader.held_bytes)
            self._enter(self._phases.lingering)
        else:
            self.close()
