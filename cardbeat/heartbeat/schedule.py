"""When the next alert of each check is due. Pure: no clock, thread or row."""

import heapq
import itertools
import math

from cardbeat.heartbeat.lanes import CheckQueue


class Schedule:
    """The queues of all checks that have undelivered alerts, and when those that wait are due.

    Times are seconds of a clock that only goes forward. Not safe for threads: its owner has one that uses it.
    """

    def __init__(self) -> None:
        self._queues: dict[tuple[int, bool], CheckQueue] = {}
        """By check and whether of its tests."""
        self._waiting: list[tuple[float, int, CheckQueue]] = []
        """A heap of when each is due, with the number of the entry. An outdated entry stays until its time comes."""
        self._entries = itertools.count(1)

    def append(self, check_seq: int, alert_seq: int, is_test: bool = False) -> bool:
        """Put an alert behind those of its check; False if there are none, so that a queue must be added."""
        queue = self._queues.get((check_seq, is_test))
        if queue is None:
            return False
        queue.alerts.append(alert_seq)
        return True

    def add(self, queue: CheckQueue, due_at: float) -> None:
        """The queue of a check that has none, or none of tests."""
        self._queues[queue.check_seq, queue.is_test] = queue
        self._wait(queue, due_at)

    def next_due_at(self) -> float:
        """When `take_due` will have something to give; never later, infinity if nothing waits."""
        return self._waiting[0][0] if self._waiting else math.inf

    def take_due(self, now: float) -> list[CheckQueue]:
        """The queues whose time has come, in its order; `resume` must follow for each once it was posted for."""
        due = []
        while self._waiting and self._waiting[0][0] <= now:
            _, entry, queue = heapq.heappop(self._waiting)
            if entry == queue.entry:
                queue.entry = 0
                due.append(queue)
        return due

    def resume(self, queue: CheckQueue, wait_seconds: float | None, host: str | None, now: float) -> None:
        """Let a queue go on: its first alert is tried again after `wait_seconds`, or is finished if that is None.

        `host` is the queue's new host, if it was found to have another.
        """
        if host is not None:
            queue.host = host
        if wait_seconds is None:
            del queue.alerts[0]
        if queue.alerts:
            self._wait(queue, now + (wait_seconds or 0))
        else:
            del self._queues[queue.check_seq, queue.is_test]

    def move(self, check_seq: int, host: str, now: float) -> None:
        """A check has another webhook URL, at `host`: what waits for its time is due now.

        A queue that is due already needs nothing: its courier reads the URL, and where a post to the one before fails,
        `resume` is told to go on at once.
        """
        for is_test in (False, True):
            queue = self._queues.get((check_seq, is_test))
            if queue is not None and queue.entry:
                queue.host = host
                self._wait(queue, now)

    def _wait(self, queue: CheckQueue, due_at: float) -> None:
        queue.entry = next(self._entries)
        heapq.heappush(self._waiting, (due_at, queue.entry, queue))
