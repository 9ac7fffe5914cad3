"""Whose alert is posted next, so that a slow or dead receiver holds up nobody else's."""

from collections import deque
from dataclasses import dataclass, field

COURIERS = 512
"""Posts that run at once: as many silent receivers can be waited for before anybody has to queue."""
DOUBTFUL_SHARE = 4
"""One in so many of these may post where nobody may answer soon."""
SLOW_SECONDS = 2.0
REMEMBERED = 10_000
"""Checks whose pace is kept in mind, and slow hosts."""

QUICK, NEW, SLOW = range(3)
"""The pace of a check's receiver the last time; one that gave no answer at all is new again."""
HOST_COURIERS = (4, 3, 2)
"""At most for one host, by pace: that many together with those of a slower pace. So a place is always left."""


@dataclass(slots=True, eq=False)
class Line:
    """A check's undelivered alerts in order, by their `seq`; the first is the one being sent or waited for."""

    check_seq: int
    host: str
    alerts: list[int]
    pace: int = NEW
    doubtful: bool = False
    """Whether it is being sent where nobody may answer soon."""
    ticket: int = 0
    """Of its place among the lines that wait for their time; 0 while it is due or under way."""
    moved_to: str | None = None
    """The new host, while it is under way and its check has got another URL."""


@dataclass(slots=True, eq=False)
class _Host:
    """Its lines that are due, and how many run, by pace."""

    name: str
    lines: tuple[deque[Line], ...] = field(default_factory=lambda: (deque(), deque(), deque()))
    running: list[int] = field(default_factory=lambda: [0, 0, 0])
    last: int = NEW
    """The pace of the line taken last."""
    quick: bool | None = None
    """How the last attempt went; None before the first."""
    listed: "deque[_Host] | None" = None
    """Which of the two queues of hosts it stands in."""

    def paces(self) -> list[int]:
        """Of the lines that may be posted now, in turns for quick and new ones: neither waits for the other's end."""
        turns = (NEW, QUICK, SLOW) if self.last == QUICK else (QUICK, NEW, SLOW)
        return [pace for pace in turns if self.lines[pace] and self._has_room(pace)]

    def idle(self) -> bool:
        return not any(self.running) and not any(self.lines)

    def _has_room(self, pace: int) -> bool:
        return sum(self.running) < HOST_COURIERS[QUICK] and sum(self.running[pace:]) < HOST_COURIERS[pace]


class Lanes:
    """Lines that are due, in turns of one for each host; where nobody may answer soon there is a lane of its own.

    That lane is for slow receivers and hosts, and for all but the first post to a host that has not answered yet.
    At most `couriers` posts run at once. Not safe for threads: its owner holds a lock.
    """

    def __init__(self, couriers: int = COURIERS) -> None:
        self._couriers = couriers
        self.running = 0
        self._running_doubtful = 0
        self._hosts: dict[str, _Host] = {}
        self._paces: dict[int, int] = {}
        self._ready: deque[_Host] = deque()
        self._ready_doubtful: deque[_Host] = deque()

    def add(self, line: Line) -> None:
        host = self._hosts.get(line.host)
        if host is None:
            host = self._hosts[line.host] = _Host(line.host)
        line.pace = self._paces.get(line.check_seq, NEW)
        host.lines[line.pace].append(line)
        self._list(host)

    def ready(self) -> int:
        """How many more posts could begin now, counting one for each host."""
        doubtful = min(len(self._ready_doubtful), self._couriers // DOUBTFUL_SHARE - self._running_doubtful)
        return min(len(self._ready) + doubtful, self._couriers - self.running)

    def take(self) -> Line | None:
        """The next line to post for, None if there is none now; `done` must follow."""
        if self.ready() <= 0:
            return None
        doubtful = not self._ready
        host = (self._ready or self._ready_doubtful).popleft()
        host.listed = None
        host.last = host.paces()[0]
        line = host.lines[host.last].popleft()
        line.doubtful = doubtful
        host.running[line.pace] += 1
        self.running += 1
        self._running_doubtful += doubtful
        self._list(host)
        return line

    def done(self, line: Line, seconds: float, answered: bool) -> None:
        """The post for a taken line took `seconds`, with or without an answer."""
        host = self._hosts[line.host]
        host.running[line.pace] -= 1
        self.running -= 1
        self._running_doubtful -= line.doubtful
        slow = seconds >= SLOW_SECONDS
        # That a slow receiver is slow says nothing new about its host.
        if not slow or line.pace != SLOW:
            host.quick = False if slow else (True if answered else None)
        self._remember(line.check_seq, SLOW if slow else (QUICK if answered else NEW))
        self._list(host)
        if host.idle() and (host.quick is not False or len(self._hosts) > REMEMBERED):
            del self._hosts[host.name]

    def _remember(self, check_seq: int, pace: int) -> None:
        self._paces.pop(check_seq, None)
        if pace != NEW:
            self._paces[check_seq] = pace
        if len(self._paces) > REMEMBERED:
            del self._paces[next(iter(self._paces))]

    def _list(self, host: _Host) -> None:
        """Let a host stand where its next post belongs, and keep its place if it stands there."""
        queue = self._queue(host)
        if queue is host.listed:
            return
        if host.listed is not None:
            host.listed.remove(host)
        if queue is not None:
            queue.append(host)
        host.listed = queue

    def _queue(self, host: _Host) -> deque[_Host] | None:
        paces = host.paces()
        if not paces:
            return None
        untried = host.quick is None and any(host.running)
        doubtful = untried or host.quick is False or paces[0] == SLOW
        return self._ready_doubtful if doubtful else self._ready
