"""The threads that post: each posts for one due queue after another, and ends when none is due."""

import functools
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from itertools import islice

from cardbeat.errors import Refusal
from cardbeat.heartbeat.courier import Courier, Result
from cardbeat.heartbeat.lanes import BRIEF_SECONDS, LONG_SECONDS, CheckQueue, Lanes
from cardbeat.heartbeat.permit import Postponed

log = logging.getLogger(__name__)

TROUBLE_SECONDS = 5.0
"""Until the next try after the database could not be used, or no thread started."""
STARTING_SECONDS = 0.02
"""How long threads are started for before the dispatcher looks for what is new: hundreds may take a second."""
STACK_BYTES = 512 * 1024
"""Hundreds of couriers may wait at once, and a default stack can cost megabytes where huge pages are on."""


class Couriers:
    """At most `limit` threads, and what they bring back. `changed` is notified when they have brought something.

    A post begins only while `may_post` says so.
    """

    def __init__(
        self, courier: Courier, changed: threading.Condition, limit: int, may_post: Callable[[], bool]
    ) -> None:
        self._courier = courier
        self._may_post = may_post
        # The dispatcher and the couriers read and write all of these, under this condition's lock only.
        self.changed = changed
        self._lanes = Lanes(limit)
        self._results: deque[Result] = deque()
        self._may_send = False
        self._stopping = False
        # The dispatcher's own.
        self._lacks_threads = False

    def add(self, queues: Iterable[CheckQueue]) -> None:
        """These are due. Posting begins with the next `send_out`, or as soon as a courier is free."""
        with self.changed:
            for queue in queues:
                self._lanes.add(queue)

    def send_out(self) -> None:
        """Start threads for posts that may begin now, for a moment; if that was too short for all, there is news."""
        until = time.monotonic() + STARTING_SECONDS
        with self.changed:
            self._may_send = False
        # After a thread could not be started one is tried though nothing is due, to know whether it could now.
        while (queue := self._take()) is not None or self._lacks_threads:
            if not self._start(functools.partial(self._post_while_due, queue)):
                if queue is not None:
                    self._bring_back(Result(queue, wait_seconds=TROUBLE_SECONDS), 0)
                return
            if time.monotonic() >= until:
                with self.changed:
                    self._may_send = True
                return

    def can_post(self) -> bool:
        """Whether there are threads to post with, as far as the last `send_out` has found."""
        return not self._lacks_threads or self.posting()

    def stop(self) -> None:
        """Begin no more posts."""
        with self.changed:
            self._stopping = True

    def results(self, most: int) -> list[Result]:
        """What was brought back first, at most so many; they stay here until `forget`."""
        with self.changed:
            return list(islice(self._results, most))

    def forget(self, count: int) -> None:
        """So many of the oldest results are recorded."""
        with self.changed:
            for _ in range(count):
                self._results.popleft()

    def has_news(self) -> bool:
        """Whether there are results, or something to send out."""
        with self.changed:
            return bool(self._results) or self._may_send

    def posting(self) -> bool:
        """Whether any post is still running."""
        with self.changed:
            return self._lanes.running > 0

    def finished(self) -> bool:
        """Whether, after `stop`, every post has ended and its result is recorded."""
        with self.changed:
            return self._stopping and not self._lanes.running and not self._results

    def _take(self) -> CheckQueue | None:
        with self.changed:
            return self._next()

    def _next(self) -> CheckQueue | None:
        """The queue to post for now; the caller holds the lock."""
        return None if self._stopping or not self._may_post() else self._lanes.take()

    def _start(self, work: Callable[[], None]) -> bool:
        """Whether a thread could be started. A line tells when none can be, another when they can again."""
        try:
            _start_small(work)
        except (RuntimeError, MemoryError):
            if not self._lacks_threads:
                log.warning("no more threads for alerts; going on with those that run")
            self._lacks_threads = True
            return False
        if self._lacks_threads:
            log.warning("there are threads for alerts again")
        self._lacks_threads = False
        return True

    def _post_while_due(self, first: CheckQueue | None) -> None:
        queue = first
        while queue is not None:
            began = time.monotonic()
            result = self._attempt(queue)
            seconds = time.monotonic() - began
            with self.changed:
                if result is None:
                    self._postpone(queue, seconds)
                else:
                    self._bring_back(result, seconds)
                queue = self._next()

    def _attempt(self, queue: CheckQueue) -> Result | None:
        """None for one that is postponed."""
        try:
            return self._courier.attempt(queue, _Permit(queue, self._enter))
        except Postponed:
            return None
        except Exception as error:
            log_trouble(error)
            return Result(queue, wait_seconds=TROUBLE_SECONDS)

    def _enter(self, queue: CheckQueue, address: str) -> bool:
        with self.changed:
            return self._lanes.enter(queue, address)

    def _bring_back(self, result: Result, seconds: float) -> None:
        answered = None if result.attempt is None else result.attempt.status is not None
        with self.changed:
            self._lanes.done(result.queue, seconds, answered)
            self._results.append(result)
            self.changed.notify()

    def _postpone(self, queue: CheckQueue, seconds: float) -> None:
        """The caller holds the lock."""
        self._lanes.postpone(queue, seconds)
        self._may_send = True
        self.changed.notify()


class _Permit:
    """That of the post for a queue. Only the courier that makes the post changes what it reads there."""

    def __init__(self, queue: CheckQueue, enter: Callable[[CheckQueue, str], bool]) -> None:
        self._queue = queue
        self._enter = enter
        self.key = queue.key

    @property
    def seconds(self) -> float:
        return BRIEF_SECONDS if self.is_brief else LONG_SECONDS

    @property
    def is_brief(self) -> bool:
        return not self._queue.is_long

    @property
    def address(self) -> str | None:
        _host, *address = self._queue.places
        return address[0].name if address else None

    def enter(self, address: str) -> bool:
        return address == self.address or self._enter(self._queue, address)


def log_trouble(error: Exception) -> None:
    """The database logs its own trouble; anything else is a defect to be seen, but must not end all alerts."""
    if not isinstance(error, Refusal):
        log.exception("alerts go on in %g s", TROUBLE_SECONDS)


def _start_small(work: Callable[[], None]) -> None:
    """Start a thread with a small stack. Raises `RuntimeError` when the system has no room for another."""
    usual = threading.stack_size(STACK_BYTES)
    try:
        threading.Thread(target=work, name="alerts-courier", daemon=True).start()
    finally:
        threading.stack_size(usual)
