"""Whose alert is posted next, so that a slow or dead receiver holds up nobody else's. Pure: no clock, thread or row.

A courier is a thread that posts. Which ones may post where follows from how long earlier posts took.
"""

from collections import deque
from dataclasses import dataclass, field

COURIERS = 512
"""Posts that run at once: so many silent receivers can be waited for before any alert has to queue."""
DOUBTFUL_SHARE = 4
"""The doubtful lane has one in so many of the couriers."""
SLOW_POST_SECONDS = 2.0
"""From here on a post counts as slow."""
REMEMBERED = 10_000
"""Checks whose pace is remembered at the most, and hosts without work that are remembered as slow."""

QUICK, NEW, SLOW = range(3)
"""The pace of a check's receiver at its last post; one that gave no answer at all is new again."""
HOST_COURIERS = (4, 3, 2)
"""How many couriers may post to one host for receivers of a pace or a slower one.

So of the four one is left for receivers that were quick, and another for those that are not known to be slow.
"""


@dataclass(slots=True, eq=False)
class CheckQueue:
    """A check's undelivered alerts in order, by their `seq`; the first is the one being sent or waited for."""

    check_seq: int
    host: str
    alerts: list[int]
    pace: int = NEW
    """Of the check's receiver, as known when the queue became due."""
    doubtful: bool = False
    """Whether it was last posted for in the doubtful lane."""
    entry: int = 0
    """The number of its entry in the schedule while it waits for its time; 0 while it is due or being posted for."""
    moved_to: str | None = None
    """The host of its check's new URL, if that was set while the queue is due or being posted for."""


@dataclass(slots=True, eq=False)
class _Host:
    """A host's queues that are due and the number of posts that run, both by pace."""

    name: str
    due: tuple[deque[CheckQueue], ...] = field(default_factory=lambda: (deque(), deque(), deque()))
    running: list[int] = field(default_factory=lambda: [0, 0, 0])
    last: int = NEW
    """The pace of the queue taken last."""
    quick: bool | None = None
    """How the last post went; None before the first, and after one without an answer."""
    lane: "deque[_Host] | None" = None
    """The lane that it waits in, None if nothing may be posted to it now."""

    def paces(self) -> list[int]:
        """The paces of which a queue may be posted for now, next one first.

        Quick and new ones alternate, so that neither waits until the other's queues are empty.
        """
        order = (NEW, QUICK, SLOW) if self.last == QUICK else (QUICK, NEW, SLOW)
        return [pace for pace in order if self.due[pace] and self._has_room(pace)]

    def idle(self) -> bool:
        return not any(self.running) and not any(self.due)

    def _has_room(self, pace: int) -> bool:
        return sum(self.running) < HOST_COURIERS[QUICK] and sum(self.running[pace:]) < HOST_COURIERS[pace]


class Lanes:
    """The queues that are due, taken host by host in round robin (fair queueing), from two lanes of hosts.

    The doubtful lane is for posts that may get no answer soon: to slow hosts, for slow receivers, and to a host that
    has not answered yet while a post to it runs. All others stand in the usual lane, which goes first. At most
    `couriers` posts run at once. Not safe for threads: its owner holds a lock.
    """

    def __init__(self, couriers: int = COURIERS) -> None:
        self._couriers = couriers
        self.running = 0
        self._running_doubtful = 0
        self._hosts: dict[str, _Host] = {}
        self._paces: dict[int, int] = {}
        self._usual: deque[_Host] = deque()
        self._doubtful: deque[_Host] = deque()

    def add(self, queue: CheckQueue) -> None:
        """The first alert of a queue is due."""
        host = self._hosts.get(queue.host)
        if host is None:
            host = self._hosts[queue.host] = _Host(queue.host)
        queue.pace = self._paces.get(queue.check_seq, NEW)
        host.due[queue.pace].append(queue)
        self._put_in_lane(host)

    def ready(self) -> int:
        """How many more posts could begin now, counting one for each host."""
        doubtful = min(len(self._doubtful), self._couriers // DOUBTFUL_SHARE - self._running_doubtful)
        return min(len(self._usual) + doubtful, self._couriers - self.running)

    def take(self) -> CheckQueue | None:
        """The next queue to post for, None if there is none now; `done` must follow."""
        if self.ready() <= 0:
            return None
        doubtful = not self._usual
        host = (self._usual or self._doubtful).popleft()
        host.lane = None
        host.last = host.paces()[0]
        queue = host.due[host.last].popleft()
        queue.doubtful = doubtful
        host.running[queue.pace] += 1
        self.running += 1
        self._running_doubtful += doubtful
        self._put_in_lane(host)
        return queue

    def done(self, queue: CheckQueue, seconds: float, answered: bool) -> None:
        """The post for a taken queue took `seconds`, with or without an answer."""
        host = self._hosts[queue.host]
        host.running[queue.pace] -= 1
        self.running -= 1
        self._running_doubtful -= queue.doubtful
        slow = seconds >= SLOW_POST_SECONDS
        # That a slow receiver is slow says nothing new about its host.
        if not slow or queue.pace != SLOW:
            host.quick = False if slow else (True if answered else None)
        self._remember(queue.check_seq, SLOW if slow else (QUICK if answered else NEW))
        self._put_in_lane(host)
        if host.idle() and (host.quick is not False or len(self._hosts) > REMEMBERED):
            del self._hosts[host.name]

    def _remember(self, check_seq: int, pace: int) -> None:
        self._paces.pop(check_seq, None)
        if pace != NEW:
            self._paces[check_seq] = pace
        if len(self._paces) > REMEMBERED:
            del self._paces[next(iter(self._paces))]

    def _put_in_lane(self, host: _Host) -> None:
        """Move a host to the end of the lane of its next post; if it stands in that one, it keeps its place."""
        lane = self._lane(host)
        if lane is host.lane:
            return
        if host.lane is not None:
            host.lane.remove(host)
        if lane is not None:
            lane.append(host)
        host.lane = lane

    def _lane(self, host: _Host) -> deque[_Host] | None:
        paces = host.paces()
        if not paces:
            return None
        untried = host.quick is None and any(host.running)
        doubtful = untried or host.quick is False or paces[0] == SLOW
        return self._doubtful if doubtful else self._usual
