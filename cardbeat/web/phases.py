"""All connections of a server, each in its phase: who waits too long, and who gives way to whom."""

from typing import Any, Generic, Protocol, TypeVar

from cardbeat.config import HttpLimits
from cardbeat.web.held import HeldBytes
from cardbeat.web.loop import Phase


class Client(Protocol):
    """What the phases ask of a connection."""

    def do(self, step: Any) -> None: ...

    def close(self) -> None: ...

    def give_way(self) -> None: ...


C = TypeVar("C", bound=Client)


class Phases(Generic[C]):
    """All `count` open connections, each in its phase. With `are_ending` each ends with its next answer."""

    def __init__(
        self,
        limits: HttpLimits,
        *,
        new: Phase[C],
        header: Phase[C],
        body: Phase[C],
        idle: Phase[C],
        working: Phase[C],
        writing: Phase[C],
        lingering: Phase[C],
    ) -> None:
        self.limits = limits
        self.are_ending = False
        self.count = 0
        self.new = new
        self.header = header
        self.body = body
        self.idle = idle
        self.working = working
        self.writing = writing
        self.lingering = lingering
        self.held: HeldBytes[C] = HeldBytes(limits.held_bytes)
        """Of requests that have come in part or are at work, and of answers that are not sent."""
        self._waiting = (idle, header, new, lingering, body, writing)
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

    def relieve(self, now: float) -> None:
        """Close those that hold most for longest, if too much is held for all together."""
        if self.held.is_too_much:
            for connection in self.held.heaviest(now):
                connection.give_way()

    def expire(self, now: float) -> None:
        for phase in self._waiting:
            for connection in phase.overdue(now):
                connection.do(phase.expired)

    def close_all(self, *, but_asked: bool = False) -> None:
        """Close every connection, or those that have asked for nothing yet."""
        for phase in (self.idle, self.header, self.new) if but_asked else (*self._waiting, self.working):
            for connection in phase.overdue():
                connection.close()
