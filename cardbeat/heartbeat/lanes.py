"""Whose alert is posted next, so that a slow or dead receiver holds up nobody else's."""

from collections import deque
from dataclasses import dataclass, field

COURIERS = 512
"""Posts that run at once: as many silent receivers can be waited for before anybody has to queue."""
SLOW_SHARE = 4
"""One in so many of these may wait for receivers that were slow the last time."""
HOST_COURIERS = 4
"""At most for one host, and only once it has answered quickly."""
SLOW_SECONDS = 2.0
REMEMBERED_HOSTS = 10_000


@dataclass(slots=True, eq=False)
class Line:
    """A check's undelivered alerts in order, by their `seq`; the first is the one being sent or waited for."""

    check_seq: int
    host: str
    alerts: list[int]
    slow: bool = False
    """Whether it is being sent in the slow lane."""
    ticket: int = 0
    """Of its place among the lines that wait for their time; 0 while it is due or under way."""
    moved_to: str | None = None
    """The new host, while it is under way and its check has got another URL."""


@dataclass(slots=True, eq=False)
class _Host:
    name: str
    lines: deque[Line] = field(default_factory=deque)
    running: int = 0
    quick: bool | None = None
    """How the last attempt went; None before the first."""
    listed: bool = False
    """Whether it stands in one of the two queues of hosts."""


class Lanes:
    """Lines that are due, in turns of one for each host; slow hosts keep to a lane of their own.

    At most `couriers` posts run at once. Not safe for threads: its owner holds a lock.
    """

    def __init__(self, couriers: int = COURIERS) -> None:
        self._couriers = couriers
        self.running = 0
        self._running_slow = 0
        self._hosts: dict[str, _Host] = {}
        self._ready: deque[_Host] = deque()
        self._ready_slow: deque[_Host] = deque()

    def add(self, line: Line) -> None:
        host = self._hosts.get(line.host)
        if host is None:
            host = self._hosts[line.host] = _Host(line.host)
        host.lines.append(line)
        self._list(host)

    def ready(self) -> int:
        """How many more posts could begin now, counting one for each host."""
        slow = min(len(self._ready_slow), self._couriers // SLOW_SHARE - self._running_slow)
        return min(len(self._ready) + slow, self._couriers - self.running)

    def take(self) -> Line | None:
        """The next line to post for, None if there is none now; `done` must follow."""
        if self.ready() <= 0:
            return None
        host = (self._ready or self._ready_slow).popleft()
        host.listed = False
        host.running += 1
        line = host.lines.popleft()
        line.slow = host.quick is False
        self.running += 1
        self._running_slow += line.slow
        self._list(host)
        return line

    def done(self, line: Line, seconds: float, answered: bool) -> None:
        """The post for a taken line took `seconds`, with or without an answer."""
        self.running -= 1
        self._running_slow -= line.slow
        host = self._hosts[line.host]
        host.running -= 1
        self._unlist(host)
        slow = seconds >= SLOW_SECONDS
        host.quick = False if slow else (True if answered else None)
        self._list(host)
        if not host.lines and not host.running and (not slow or len(self._hosts) > REMEMBERED_HOSTS):
            del self._hosts[host.name]

    def _list(self, host: _Host) -> None:
        limit = HOST_COURIERS if host.quick else 1
        if host.lines and host.running < limit and not host.listed:
            self._queue(host).append(host)
            host.listed = True

    def _unlist(self, host: _Host) -> None:
        if host.listed:
            self._queue(host).remove(host)
            host.listed = False

    def _queue(self, host: _Host) -> deque[_Host]:
        return self._ready_slow if host.quick is False else self._ready
