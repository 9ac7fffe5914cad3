"""When the next alert of each check is due. Pure: no clock, thread or row."""

import heapq
import itertools
import math
from collections.abc import Collection

from cardbeat.heartbeat.lanes import CheckQueue

OUTDATED = 1000
"""Entries whose queues wait for another time by now: so many may stay, and as many as there are queues."""


class Schedule:
    """The queues of all checks that have undelivered alerts, and when those that wait are due.

    Times are seconds of a clock that only goes forward. Not safe for threads: its owner has one that uses it.
    """

    def __init__(self) -> None:
        self._queues: dict[tuple[int, bool], CheckQueue] = {}
        """By check and whether of its tests."""
        self._waiting: list[tuple[float, int, CheckQueue]] = []
        """A heap of when each is due, with the number of the entry. Some outdated ones stay until their time comes."""
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
        queue.is_taken = queue.is_moved = False
        if host is not None:
            queue.host = host
        if wait_seconds is None:
            del queue.alerts[0]
        if queue.alerts:
            self._wait(queue, now + (wait_seconds or 0))
        else:
            del self._queues[queue.check_seq, queue.is_test]

    def move(self, check_seq: int, host: str, now: float) -> None:
        """A check has another webhook URL, at `host`: what waits for its time, or in line at another host, is due now.

        Where a post runs, `resume` is to be told to go on at once, unless that was for the new URL.
        """
        for is_test in (False, True):
            queue = self._queues.get((check_seq, is_test))
            if queue is None:
                continue
            if queue.is_taken:
                queue.is_moved = True
                continue
            if not queue.entry:
                queue.is_replaced = True
                queue = self._queues[check_seq, is_test] = CheckQueue(check_seq, queue.key, host, queue.alerts, is_test)
            queue.host = host
            self._wait(queue, now)

    def waiting(self) -> list[int]:
        """The checks of the queues that wait for their time."""
        return [queue.check_seq for queue in self._queues.values() if queue.entry]

    def forget(self, check_seqs: Collection[int]) -> None:
        """Drop what waits for the time of checks that are gone."""
        for check_seq in check_seqs:
            for is_test in (False, True):
                queue = self._queues.get((check_seq, is_test))
                if queue is not None and queue.entry:
                    queue.entry = 0
                    del self._queues[check_seq, is_test]

    def _wait(self, queue: CheckQueue, due_at: float) -> None:
        queue.entry = next(self._entries)
        heapq.heappush(self._waiting, (due_at, queue.entry, queue))
        if len(self._waiting) > 2 * len(self._queues) + OUTDATED:
            self._waiting = [waiting for waiting in self._waiting if waiting[1] == waiting[2].entry]
            heapq.heapify(self._waiting)
