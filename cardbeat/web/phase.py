"""A phase of connections: what they wait for, and for how long at most."""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from math import inf
from typing import Generic, TypeVar

from cardbeat.web.poller import READ

C = TypeVar("C")


class Phase(Generic[C]):
    """The connections that wait for the same thing.

    All members may wait equally long, so they stand in the order in which their time runs out. `ready` is what to do
    once one of the `events` has come, `expired` once the time is up; with `events` None a member goes on being woken
    for what it was woken for before.
    """

    __slots__ = ("_deadlines", "events", "expired", "ready", "seconds")

    def __init__(
        self, seconds: float, ready: Callable[[C], None], expired: Callable[[C], None], events: int | None = READ
    ) -> None:
        self.seconds = seconds
        self.ready = ready
        self.expired = expired
        self.events = events
        self._deadlines: OrderedDict[C, float] = OrderedDict()

    def __len__(self) -> int:
        return len(self._deadlines)

    def add(self, connection: C, now: float) -> None:
        """Take in a connection, or give a member all of its time again."""
        self._deadlines[connection] = now + self.seconds
        self._deadlines.move_to_end(connection)

    def discard(self, connection: C) -> None:
        del self._deadlines[connection]

    def overdue(self, now: float = inf) -> Iterator[C]:
        """The members whose time is up, longest ago first; each must leave before the next is asked for."""
        while self._deadlines:
            connection, deadline = next(iter(self._deadlines.items()))
            if deadline > now:
                return
            yield connection
