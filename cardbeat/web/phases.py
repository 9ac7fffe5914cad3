"""All connections of a server, each in its phase; which of them to close when time, room or memory runs out."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from itertools import chain, islice
from math import ceil, inf
from typing import Any, Final, Generic, Protocol, TypeVar

from cardbeat.config import HttpLimits
from cardbeat.web.loop import WRITE, Phase

KEPT_PART: Final = 7 / 8
"""Of the limit: once it is passed so many give way that the next does not pass it at once."""
CROWD_PART: Final = 1 / 8
"""A network that has more than this part of all connections gives way before all others."""
NETWORK_PART: Final = 1 / 2
"""A network has at most this part of all places. Large, because a proxy that is not trusted counts as one client."""
LOOKED_AT: Final = 256
"""Connections of each phase among which the one to give way is looked for: to look at 10,000 would take 1 ms."""
TELL_SECONDS: Final = 60.0
"""Least time between two lines of the log about connections that were closed because too much was held."""


class Client(Protocol):
    """What the phases use of a connection: the network of the client, and the steps that it takes."""

    network: str

    def do(self, step: Any) -> None: ...
    def read(self) -> None: ...
    def serve(self) -> None: ...
    def resume(self) -> None: ...
    def write(self) -> None: ...
    def time_out(self) -> None: ...
    def become_idle(self) -> None: ...
    def can_give_way(self) -> bool: ...
    def give_way(self) -> None: ...
    def close(self) -> None: ...


C = TypeVar("C", bound=Client)
H = TypeVar("H")


class HeldBytes(Generic[H]):
    """The bytes that each of many holders holds, and all of them together. For one thread."""

    def __init__(self, limit: int, network_of: Callable[[H], str]) -> None:
        self.total = 0
        self.is_too_much = False
        self._limit = limit
        self._network_of = network_of
        self._holders: dict[H, tuple[int, float]] = {}
        """For each that holds any: how many, and since when."""

    def set(self, holder: H, count: int, now: float) -> None:
        """Note how much is held for one now; the time runs on for one that holds some already."""
        before, since = self._holders.get(holder, (0, now))
        self.total += count - before
        self.is_too_much = self.total > self._limit
        if count:
            self._holders[holder] = count, since
        elif before:
            del self._holders[holder]

    def heaviest(self, now: float) -> Iterator[H]:
        """The holders to close until the total is low enough, largest product of bytes and seconds first.

        Those of the network with the largest sum go first. An honest client holds little, or not for long.
        """
        weights = {holder: count * (now - since) for holder, (count, since) in self._holders.items()}
        networks: dict[str, float] = defaultdict(float)
        for holder, weight in weights.items():
            networks[self._network_of(holder)] += weight
        ranks = {holder: (networks[self._network_of(holder)], weight) for holder, weight in weights.items()}
        for holder in sorted(ranks, key=ranks.__getitem__, reverse=True):
            if self.total <= self._limit * KEPT_PART:
                return
            yield holder


class Phases(Generic[C]):
    """All open connections, `count` of them, each in its phase. With `are_ending`, each ends after its next answer."""

    def __init__(self, limits: HttpLimits, kind: type[C], most: int) -> None:
        """`kind` is the class of the connections. Its methods are the steps taken in each phase.

        `most` is the number of places, which are the connections that may be open.
        """
        self.limits = limits
        self._most = most
        self._most_each = ceil(most * NETWORK_PART)
        self.are_ending = False
        self.count = 0
        # A client that sends nothing is idle after 5 s and closed after 10 s.
        self.new: Phase[C] = Phase(limits.idle_seconds, kind.read, kind.become_idle, events=None)
        self.header: Phase[C] = Phase(limits.header_seconds, kind.read, kind.time_out)
        self.body: Phase[C] = Phase(limits.body_seconds, kind.read, kind.time_out)
        self.idle: Phase[C] = Phase(limits.idle_seconds, kind.read, kind.close)
        self.buffered: Phase[C] = Phase(inf, kind.serve, kind.close, events=0)
        self.working: Phase[C] = Phase(inf, kind.resume, kind.close, events=None)
        self.writing: Phase[C] = Phase(limits.write_seconds, kind.write, kind.close, events=WRITE)
        self.lingering: Phase[C] = Phase(limits.linger_seconds, kind.read, kind.close)
        self.held: HeldBytes[C] = HeldBytes(limits.held_bytes, lambda connection: connection.network)
        """Bytes of requests that are incomplete or at work, and of answers that are not sent."""
        self.shed = 0
        """Connections closed since the start because too much was held. Any thread may read it."""
        self._told_shed = 0
        self._tell_shed_at = -inf
        self._by_network: Counter[str] = Counter()
        self._largest = ""
        """The network with most connections; out of date at times, as closed connections do not change it."""
        waiting = (self.idle, self.header, self.new, self.lingering, self.body, self.writing)
        self.all = (*waiting, self.buffered, self.working)
        """All phases, in the order in which their connections give way to new clients."""

    @property
    def has_room(self) -> bool:
        """Whether there is a place for a new client, or a connection that can give way to it."""
        return self.count < self._most or any(self._in_order())

    def opened(self, connection: C) -> None:
        self.count += 1
        self._add(connection.network)

    def closed(self, connection: C) -> None:
        self.count -= 1
        self._remove(connection.network)

    def moved(self, connection: C, network: str) -> None:
        """Count a connection of a proxy for the network whose request has come on it."""
        self._remove(connection.network)
        connection.network = network
        self._add(network)

    def _add(self, network: str) -> None:
        self._by_network[network] += 1
        if self._by_network[network] > self._by_network[self._largest]:
            self._largest = network

    def _remove(self, network: str) -> None:
        self._by_network[network] -= 1
        if not self._by_network[network]:
            del self._by_network[network]

    def make_room(self, network: str) -> bool:
        """Let a connection give way if a new one of this network needs its place. False if it can have none."""
        if self._by_network[network] >= self._most_each:
            return _close_first(self._in_order(network))
        return self.count < self._most or self.give_way()

    def give_way(self) -> bool:
        """Close the connection that has waited longest, idle ones first; False if all requests are at work.

        If one network has more than 1/8 of all connections, one of its connections is closed.
        """
        is_crowd = self._by_network[self._largest] > self.count * CROWD_PART
        crowd = self._in_order(self._largest) if is_crowd else ()
        return _close_first(chain(crowd, self._in_order()))

    def _in_order(self, network: str | None = None) -> Iterator[C]:
        """Yield connections that can give way, or those of one network, in the order in which they do."""
        for phase in self.all:
            for connection in islice(phase.deadlines, LOOKED_AT):
                if (network is None or connection.network == network) and connection.can_give_way():
                    yield connection

    def relieve(self, now: float) -> int:
        """Close the connections that held most for longest until little enough is held.

        Returns the number to write to the log: once in `TELL_SECONDS` those closed since the last time, else 0.
        """
        before = self.count
        for connection in self.held.heaviest(now):
            if connection.can_give_way():
                connection.give_way()
        self.shed += before - self.count
        untold = self.shed - self._told_shed
        if not untold or now < self._tell_shed_at:
            return 0
        self._told_shed, self._tell_shed_at = self.shed, now + TELL_SECONDS
        return untold

    def expire(self, now: float) -> None:
        """Do for each connection whose time is up what its phase says."""
        for phase in self.all:
            for connection in phase.overdue(now):
                connection.do(phase.expired)

    def count_unasked(self) -> int:
        """The number of connections that have sent nothing yet, or a part of a request's head."""
        return len(self.new.deadlines) + len(self.header.deadlines)

    def close(self, *phases: Phase[C]) -> None:
        """Close all connections in these phases."""
        for phase in phases:
            for connection in phase.overdue():
                connection.close()


def _close_first(connections: Iterator[Client]) -> bool:
    for connection in connections:
        connection.give_way()
        return True
    return False
