"""The open connections, each in the phase it has come to."""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from socket import socket

from cardbeat.web.poller import READ, Poller
from cardbeat.web.reader import Reader

Act = Callable[["Connection"], None]


class Phase:
    """What a connection waits for, and for how long at most.

    All members may wait equally long, so they stand in the order in which their time runs out.
    """

    __slots__ = ("events", "expired", "members", "ready", "seconds")

    def __init__(self, seconds: float, ready: Act, expired: Act, events: int | None = READ) -> None:
        self.seconds = seconds
        self.ready = ready
        """What to do once one of the events has come."""
        self.expired = expired
        self.events = events
        """What the poller wakes a member for; None leaves that as it is."""
        self.members: OrderedDict[Connection, float] = OrderedDict()

    def overdue(self, now: float) -> Iterator["Connection"]:
        """The members whose time is up; each must leave before the next is asked for."""
        while self.members:
            connection, deadline = next(iter(self.members.items()))
            if deadline > now:
                return
            yield connection


class Connection:
    """One client's socket, and how far its request or its answer has come."""

    __slots__ = ("_poller", "_watched", "peer", "phase", "reader", "socket", "then", "trusted", "unsent")

    def __init__(self, client: socket, peer: str, *, trusted: bool, reader: Reader, poller: Poller) -> None:
        self.socket = client
        self.peer = peer
        self.trusted = trusted
        """Whether the peer is a trusted proxy."""
        self.reader = reader
        self.phase: Phase | None = None
        """None once it is closed."""
        self.unsent: bytes | memoryview = b""
        self.then: Act = Connection.close
        """What follows once everything is sent."""
        self._poller = poller
        self._watched = 0

    def enter(self, phase: Phase, now: float) -> None:
        if phase is not self.phase:
            if self.phase:
                self.phase.members.pop(self)
            self.phase = phase
            if phase.events is not None:
                self.watch(phase.events)
        phase.members[self] = now + phase.seconds
        phase.members.move_to_end(self)

    def watch(self, events: int) -> None:
        """Let the poller wake this connection for `events`; 0 for nothing at all."""
        if events != self._watched:
            self._poller.watch(self.socket.fileno(), events, self)
            self._watched = events

    def close(self) -> None:
        if self.phase:
            self.phase.members.pop(self)
            self.phase = None
            self.watch(0)
            self.socket.close()
