"""When the next alert of each check is due. Pure: no clock, thread or row."""

import heapq
import itertools
import math

from cardbeat.heartbeat.delivery.lanes import CheckQueue

OUTDATED = 1000
"""Entries of replaced queues that the heap may hold, in addition to twice the number of known queues."""


class Schedule:
    """The known queues, and when the waiting ones are due. Of a check at most one is known, and one of its tests.

    Times are seconds of a clock that only goes forward. Not safe for threads: one thread uses it.
    """

    def __init__(self) -> None:
        self._queues: dict[tuple[int, bool], CheckQueue] = {}
        """By `check_seq` and `is_test`."""
        self._waiting: list[tuple[float, int, CheckQueue]] = []
        """A heap of when each is due, with a number that keeps the order of equal times."""
        self._entries = itertools.count()

    def knows(self, check_seq: int, is_test: bool) -> bool:
        """Whether such a queue waits, is due or is posted for."""
        return (check_seq, is_test) in self._queues

    def add(self, queue: CheckQueue, due_at: float) -> None:
        """Let a queue wait until `due_at`. None of its check and kind may be known."""
        queue.is_taken = False
        self._queues[queue.check_seq, queue.is_test] = queue
        heapq.heappush(self._waiting, (due_at, next(self._entries), queue))

    def next_due_at(self) -> float:
        """The time of the first waiting queue; infinity if none waits."""
        return self._waiting[0][0] if self._waiting else math.inf

    def take_due(self, now: float) -> list[CheckQueue]:
        """The queues that are due, in the order of their times. They stay known until `forget`."""
        due = []
        while self._waiting and self._waiting[0][0] <= now:
            _, _, queue = heapq.heappop(self._waiting)
            if not queue.is_replaced:
                due.append(queue)
        return due

    def forget(self, queue: CheckQueue) -> None:
        """Let a queue that was taken not be known any more."""
        del self._queues[queue.check_seq, queue.is_test]

    def replace(self, check_seq: int) -> None:
        """Forget the queues of a check that was moved, except those that a post runs for."""
        for is_test in (False, True):
            queue = self._queues.get((check_seq, is_test))
            if queue is not None and queue.is_taken:
                queue.is_moved = True
            elif queue is not None:
                queue.is_replaced = True
                self.forget(queue)
        if len(self._waiting) > 2 * len(self._queues) + OUTDATED:
            self._waiting = [waiting for waiting in self._waiting if not waiting[2].is_replaced]
            heapq.heapify(self._waiting)
