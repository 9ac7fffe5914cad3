"""One client's connection, and the phases that it goes through."""

from collections import OrderedDict
from collections.abc import Callable
from selectors import EVENT_READ
from socket import socket

from cardbeat.web.reader import Reader

Act = Callable[["Connection"], None]


class Phase:
    """What a connection waits for, and for how long at most.

    All members may wait equally long, so they stand in the order in which their time runs out.
    """

    __slots__ = ("events", "expired", "members", "ready", "seconds")

    def __init__(self, seconds: float, ready: Act, expired: Act, events: int | None = EVENT_READ) -> None:
        self.seconds = seconds
        self.ready = ready
        """What to do once one of the events has come."""
        self.expired = expired
        self.events = events
        """What the selector wakes the connection for; None leaves that as it is."""
        self.members: OrderedDict[Connection, float] = OrderedDict()

    def overdue(self, now: float) -> "Connection | None":
        """The first member whose time is up."""
        for connection, deadline in self.members.items():
            return connection if deadline <= now else None
        return None


class Connection:
    """One client's socket, and how far its request or its answer has come."""

    __slots__ = ("events", "peer", "phase", "reader", "socket", "then", "trusted", "unsent")

    def __init__(self, client: socket, peer: str, trusted: bool, reader: Reader, phase: Phase) -> None:
        self.socket = client
        self.peer = peer
        self.trusted = trusted
        """Whether the peer is a trusted proxy."""
        self.reader = reader
        self.phase = phase
        self.events = 0
        """What the selector watches for; 0 while it does not know the connection."""
        self.unsent: memoryview | None = None
        self.then: Act = phase.expired
        """What follows once everything is sent."""
