"""All connections of a server, each in its phase: who waits too long, and who gives way to whom."""

from collections import Counter
from collections.abc import Iterator
from math import inf
from typing import Any, Final, Generic, Protocol, TypeVar

from cardbeat.config import HttpLimits
from cardbeat.web.forwarded import Peer
from cardbeat.web.held import HeldBytes
from cardbeat.web.loop import WRITE, Phase

CROWD_PART: Final = 1 / 8
"""Of all connections: whoever has more gives way before anybody else does."""

TELL_SECONDS: Final = 60.0
"""Between two lines of the log about connections that were closed because too much was held."""


class Client(Protocol):
    """What the phases ask of a connection: who is at its other end, and the steps that it takes."""

    peer: Peer

    def do(self, step: Any) -> None: ...

    def read(self) -> None: ...

    def watch(self) -> None: ...

    def write(self) -> None: ...

    def time_out(self) -> None: ...

    def give_way(self) -> None: ...

    def close(self) -> None: ...


C = TypeVar("C", bound=Client)


class Phases(Generic[C]):
    """All `count` open connections, each in its phase. With `are_ending` each ends with its next answer."""

    def __init__(self, limits: HttpLimits, kind: type[C]) -> None:
        """`kind` is the class of the connections, whose methods are the steps that they take in their phases."""
        self.limits = limits
        self.are_ending = False
        self.count = 0
        self.new: Phase[C] = Phase(limits.header_seconds, kind.read, kind.time_out, events=None)
        self.header: Phase[C] = Phase(limits.header_seconds, kind.read, kind.time_out)
        self.body: Phase[C] = Phase(limits.body_seconds, kind.read, kind.time_out)
        self.idle: Phase[C] = Phase(limits.idle_seconds, kind.read, kind.close)
        self.working: Phase[C] = Phase(inf, kind.watch, kind.close, events=None)
        self.writing: Phase[C] = Phase(limits.write_seconds, kind.write, kind.close, events=WRITE)
        self.lingering: Phase[C] = Phase(limits.linger_seconds, kind.read, kind.close)
        self.held: HeldBytes[C] = HeldBytes(limits.held_bytes)
        """Of requests that have come in part or are at work, and of answers that are not sent."""
        self.shed = 0
        """Connections closed because too much was held, since the start. Any thread may read it."""
        self._told_shed = 0
        self._tell_shed_at = -inf
        self._by_network: Counter[str] = Counter()
        self._largest = ""
        """The network with most connections, as far as one can tell from those that have come."""
        self._waiting = (self.idle, self.header, self.new, self.lingering, self.body, self.writing)
        """Those that wait for the client, in the order in which they give way to new clients."""

    def can_give_way(self) -> bool:
        return any(phase.deadlines for phase in self._waiting)

    def opened(self, connection: C) -> None:
        """Count one more."""
        network, by_network = connection.peer.network, self._by_network
        self.count += 1
        by_network[network] += 1
        if by_network[network] > by_network[self._largest]:
            self._largest = network

    def closed(self, connection: C) -> None:
        """Count one less."""
        network, by_network = connection.peer.network, self._by_network
        self.count -= 1
        by_network[network] -= 1
        if not by_network[network]:
            del by_network[network]

    def give_way(self) -> bool:
        """Close the connection that has waited longest, idle ones first; none that is being answered.

        It is one of the client that has most of all, if that has so many that it would push everyone else out.
        """
        is_crowd = self._by_network[self._largest] > self.count * CROWD_PART
        for connection in self._in_order(self._largest) if is_crowd else ():
            connection.close()
            return True
        for connection in self._in_order():
            connection.close()
            return True
        return False

    def _in_order(self, network: str | None = None) -> Iterator[C]:
        """Who is to give way, first of all, be it one of this network."""
        for phase in self._waiting:
            for connection in phase.deadlines:
                if network is None or connection.peer.network == network:
                    yield connection

    def relieve(self, now: float) -> int:
        """Close those that hold most for longest, as long as too much is held for all together.

        How many were closed so is to be told once in `TELL_SECONDS`: then it is the number since the last time, else 0.
        """
        before = self.count
        for connection in self.held.heaviest(now):
            connection.give_way()
        self.shed += before - self.count
        untold = self.shed - self._told_shed
        if not untold or now < self._tell_shed_at:
            return 0
        self._told_shed, self._tell_shed_at = self.shed, now + TELL_SECONDS
        return untold

    def expire(self, now: float) -> None:
        for phase in self._waiting:
            for connection in phase.overdue(now):
                connection.do(phase.expired)

    def close_all(self, *, but_asked: bool = False) -> None:
        """Close every connection, or those that have asked for nothing yet."""
        for phase in (self.idle, self.header, self.new) if but_asked else (*self._waiting, self.working):
            for connection in phase.overdue():
                connection.close()
