"""The threads that post alerts. Each posts one due alert after another, and ends when none is due.

One of them computes at a time, until it waits for the network: the interpreter runs one thread at a time anyway, and
with every thread that wants to run, the loop and the database's writer wait longer for each of their many short steps.
"""

import contextlib
import functools
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Container, Iterable
from itertools import islice

from cardbeat.concurrency.threads import DaemonThread
from cardbeat.errors import Refusal
from cardbeat.heartbeat.delivery.allowance import Allowance
from cardbeat.heartbeat.delivery.courier import Courier, Result
from cardbeat.heartbeat.delivery.lanes import CheckQueue, Lanes
from cardbeat.heartbeat.delivery.places import PARTS
from cardbeat.heartbeat.webhooks.permit import BRIEF_SECONDS, LONG_SECONDS, Late, Postponed

log = logging.getLogger(__name__)

TROUBLE_SECONDS = 5.0
"""Pause after the database could not be used, or there was no thread or descriptor."""
STARTING_SECONDS = 0.02
"""Longest time of one `send_out`: to start hundreds of threads may take a second, and new alerts must be read."""
STUCK_SECONDS = 5.0
"""To compute a post takes a millisecond, and at most as long as the database takes for a read."""
STACK_BYTES = 512 * 1024
"""Stack of a courier. Hundreds may wait at once, and with huge pages a default stack can cost megabytes."""


class Couriers:
    """At most `limit` threads, and the results of their posts. `changed` is notified of each result.

    A post begins only while `may_post` returns True.
    """

    def __init__(
        self,
        courier: Courier,
        changed: threading.Condition,
        limit: int,
        may_post: Callable[[], bool],
        *,
        allowance: Allowance,
        starting_seconds: float = STARTING_SECONDS,
    ) -> None:
        self._courier = courier
        self._may_post = may_post
        self._starting_seconds = starting_seconds
        # The dispatcher and the couriers read and write all of these, under the (reentrant) lock of this condition.
        self.changed = changed
        self.allowance = allowance
        self._lanes = Lanes(limit)
        self._results: deque[Result] = deque()
        self._left: list[Result] = []
        self._may_send = False
        self._stopping = False
        self._turn = _Turn()
        # Used by the dispatcher alone.
        self._lacks_threads = False

    def add(self, queues: Iterable[CheckQueue]) -> None:
        """Take queues that are due. The next `send_out`, or the next courier that is free, posts for them."""
        with self.changed:
            for queue in queues:
                self._lanes.add(queue)

    def send_out(self) -> None:
        """Start threads for the posts that may begin now. `has_news` if `starting_seconds` was too short for all."""
        until = time.monotonic() + self._starting_seconds
        with self.changed:
            self._may_send = False
        while self._turn.take(max(0.0, until - time.monotonic())):
            queue = self._take()
            if queue is None:
                return
            if not self._start(functools.partial(self._post_while_due, queue)):
                self._turn.leave()
                self._bring_back(Result(queue, wait_seconds=TROUBLE_SECONDS), 0)
                return
            if time.monotonic() >= until:
                break
        with self.changed:
            self._may_send = True

    def stop(self) -> None:
        """Begin no more posts."""
        with self.changed:
            self._stopping = True

    def results(self, most: int) -> list[Result]:
        """The oldest results, at most `most`. They stay here until `forget`."""
        with self.changed:
            return list(islice(self._results, most))

    def forget(self, count: int, left: Container[int] = ()) -> list[Result]:
        """Drop the oldest `count` results; return the recorded ones. Those of alerts `left` wait for `retry_left`."""
        with self.changed:
            oldest = [self._results.popleft() for _ in range(count)]
            self._left += [result for result in oldest if result.queue.alert in left]
        return [result for result in oldest if result.queue.alert not in left]

    def retry_left(self) -> None:
        """Let the results that were left be among the others again, as the newest."""
        with self.changed:
            self._results += self._left
            self._left.clear()

    def has_news(self) -> bool:
        """Whether there are results, or posts that may begin."""
        with self.changed:
            return bool(self._results) or self._may_send

    def posting(self) -> bool:
        """Whether any post runs."""
        with self.changed:
            return self._lanes.running > 0

    def finished(self) -> bool:
        """Whether, after `stop`, every post has ended and its result is recorded."""
        with self.changed:
            return self._stopping and not (self._lanes.running or self._results or self._left)

    def _take(self) -> CheckQueue | None:
        """The next queue to post for. If there is none now, the turn that the caller has is over."""
        with self.changed:
            queue = None if self._stopping or not self._may_post() else self._lanes.take()
        if queue is None:
            self._turn.leave()
        return queue

    def _start(self, work: Callable[[], None]) -> bool:
        """Start a thread; False if that is not possible. Logs when threads begin to lack, and when they are back."""
        usual = threading.stack_size(STACK_BYTES)
        try:
            DaemonThread(work, "alerts-courier").start()
        except (RuntimeError, MemoryError):
            if not self._lacks_threads:
                log.warning("no more threads for alerts; going on with those that run")
            self._lacks_threads = True
            return False
        finally:
            threading.stack_size(usual)
        if self._lacks_threads:
            log.warning("there are threads for alerts again")
        self._lacks_threads = False
        return True

    def _post_while_due(self, first: CheckQueue) -> None:
        queue: CheckQueue | None = first
        while queue is not None:
            began = time.monotonic()
            result = self._attempt(queue)
            seconds = time.monotonic() - began
            if result is None:
                self._postpone(queue, seconds)
            else:
                self._bring_back(result, seconds)
            # Else one that waits goes on.
            queue = self._take() if self._turn.take() else None

    def _attempt(self, queue: CheckQueue) -> Result | None:
        """The result of a post, None if it is postponed. The turn is over then."""
        permit = None
        try:
            permit = _Permit(queue, self.enter, self._turn.leave)
            return self._courier.attempt(queue, permit)
        except Late:
            # An address was only slow, and a long post there need not wait for one that may get no more.
            queue.refused = None
            return None
        except Postponed:
            return None
        except Exception as error:
            log_trouble(error)
            return Result(queue, wait_seconds=TROUBLE_SECONDS)
        finally:
            (permit.leave_turn if permit else self._turn.leave)()

    def enter(self, queue: CheckQueue, address: str) -> bool:
        """Whether the post that runs for this queue may connect to this address. If so, it is counted there."""
        with self.changed:
            if self.allowance.address_seconds(queue, address):
                queue.refused = queue.refused or address
                return False
            if not self._lanes.enter(queue, address):
                return False
            self.allowance.count_post(queue, address)
            return True

    def _bring_back(self, result: Result, seconds: float) -> None:
        answered = None if result.attempt is None else result.attempt.status is not None
        with self.changed:
            self._lanes.done(result.queue, seconds, answered)
            self._results.append(result)
            self.changed.notify()

    def _postpone(self, queue: CheckQueue, seconds: float) -> None:
        with self.changed:
            if queue.refused is not None and queue.crowded is None:
                # A try before its time is left out then: the turns to ask are for those that have no other time.
                wait_seconds = None if queue.is_extra else self.allowance.ask_seconds(queue, queue.refused)
                self._bring_back(Result(queue, wait_seconds=wait_seconds, is_held=True), seconds)
                return
            self._lanes.postpone(queue, seconds)
            self._may_send = True
            self.changed.notify()


class _Permit:
    """The permit of the post for a queue. Only the courier of this post changes what is read here."""

    def __init__(
        self, queue: CheckQueue, enter: Callable[[CheckQueue, str], bool], leave_turn: Callable[[], None]
    ) -> None:
        self._queue = queue
        self._enter = enter
        self._leave_turn: Callable[[], None] | None = leave_turn
        self.key = queue.key
        self.is_granted = queue.is_granted

    @property
    def seconds(self) -> float:
        return BRIEF_SECONDS if self.is_brief else LONG_SECONDS

    @property
    def is_brief(self) -> bool:
        return not self._queue.is_long

    @property
    def address(self) -> str | None:
        address = self._queue.places[PARTS:]
        return address[0].name if address else None

    def enter(self, address: str) -> bool:
        return self._enter(self._queue, address)

    def leave_turn(self) -> None:
        leave, self._leave_turn = self._leave_turn, None
        if leave is not None:
            leave()


class _Turn:
    """The turn to compute. One thread has it, and at most one waits for it. Any thread may leave it.

    After `STUCK_SECONDS` whoever has it is not waited for: a thread may have ended in it, for want of memory.
    """

    def __init__(self) -> None:
        self._is_taken, self._is_awaited = threading.Lock(), threading.Lock()
        self._taken_at = 0.0

    def take(self, seconds: float = STUCK_SECONDS) -> bool:
        """Wait for the turn. False if another waits, or it takes longer than `seconds`."""
        if not self._is_awaited.acquire(blocking=False):
            return False
        try:
            is_mine = self._is_taken.acquire(timeout=seconds) or time.monotonic() - self._taken_at >= STUCK_SECONDS
            self._taken_at = time.monotonic() if is_mine else self._taken_at
            return is_mine
        finally:
            self._is_awaited.release()

    def leave(self) -> None:
        # Another thread that was not waited for may have left it.
        with contextlib.suppress(RuntimeError):
            self._is_taken.release()


def log_trouble(error: Exception) -> None:
    """Log an unexpected error with its trace. Never raises, because no error may end a thread."""
    # The database logs its own errors.
    if not isinstance(error, Refusal):
        with contextlib.suppress(Exception):
            log.exception("alerts go on in %g s", TROUBLE_SECONDS)
