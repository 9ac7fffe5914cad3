"""Sending what is stored in `alerts`: a dispatcher thread that reads, plans and records, and couriers that post.

Whoever holds the lease delivers. It ends with its process, however that ends: the next start takes everything up at
once, and two processes over one database never send the same alert at the same time.
"""

import logging
import math
import threading
import time
from collections import Counter, deque
from collections.abc import Collection

from cardbeat import threads
from cardbeat.clock import Clock
from cardbeat.heartbeat.alerts import Alerts
from cardbeat.heartbeat.courier import Courier, Result
from cardbeat.heartbeat.couriers import TROUBLE_SECONDS, Couriers, log_trouble
from cardbeat.heartbeat.lanes import COURIERS, CheckQueue
from cardbeat.heartbeat.liveness import FAILS, NO_THREADS, Liveness, LivenessLog
from cardbeat.heartbeat.pending import PAGE, Pending, PendingAlerts
from cardbeat.heartbeat.retries import LONGEST_RETRY_AFTER_SECONDS
from cardbeat.heartbeat.schedule import Schedule
from cardbeat.heartbeat.target import host_of
from cardbeat.heartbeat.unread import Unread
from cardbeat.system import descriptor_limit

log = logging.getLogger(__name__)

POLL_SECONDS = 1.0
"""How soon another process's alerts and changes are seen, or that it has let go of the lease."""
GROUP_COMMIT_SECONDS = 0.01
"""Results that come within it of each other share a commit."""
GONE_SECONDS = 600.0
"""How soon what waits for the next attempt is forgotten once its check is gone."""
ABANDONED_SECONDS = 0.25
"""What the thread has to end in after a stop has waited for posts in vain."""
GROUP_COMMIT_RESULTS = 500
"""Results in one commit at the most."""


class Delivery:
    """Delivers until `stop`. `elapsed` is a clock that only goes forward."""

    def __init__(self, alerts: Alerts, courier: Courier, clock: Clock, elapsed: Clock = time.monotonic) -> None:
        self._alerts = alerts
        self._clock = clock
        self._elapsed = elapsed
        # The dispatcher's own: no other thread touches them.
        self._schedule = Schedule()
        self._pending = PendingAlerts(alerts.database)
        self._unread = Unread(self._pending)
        self._unplanned: deque[Pending] = deque()
        self._last_move: int | None = None
        self._looked_for: list[int] = []
        self._look_for_at = elapsed() + GONE_SECONDS
        self._poll_at = -math.inf
        # Written by the dispatcher alone; others may read it at any time.
        self._totals: Counter[str] = Counter(delivered=0, retried=0, failed=0)
        # Read and written by the dispatcher, the couriers and callers, under this condition's lock only.
        self._changed = threading.Condition()
        self._couriers = Couriers(courier, self._changed, _courier_limit())
        self._woken = False
        self._abandoned = False
        self._thread = threading.Thread(target=self._run, name="alerts", daemon=True)
        self.liveness = Liveness(alerts.database, elapsed)
        self._liveness_log = LivenessLog(self.liveness, self.oldest_due_seconds)

    def start(self) -> None:
        """Begin to deliver, first of all what an earlier process left. Raises `StartupError` as `lease` does."""
        self._lease = self._alerts.database.lease()
        self.liveness.begin()
        self._liveness_log.start()
        threads.start(self._thread)

    def wake(self) -> None:
        """New alerts, or another webhook URL of a check that has some, are stored and committed."""
        with self._changed:
            self._woken = True
            self._changed.notify()

    def stop(self, seconds: float) -> bool:
        """Begin no more posts, and wait at most `seconds` for those that run to end and be recorded.

        What is left is sent after the next start. False where the database keeps the thread even a little longer.
        """
        self._liveness_log.stop()
        if not self._thread.is_alive():
            return True
        with self._changed:
            self._couriers.stop()
            self._changed.notify()
        self._thread.join(seconds)
        with self._changed:
            self._abandoned = True
            self._changed.notify()
        return threads.has_ended(self._thread, ABANDONED_SECONDS)

    def totals(self) -> dict[str, int]:
        """Attempts since the start by what came of them: delivered, retried, failed."""
        return dict(self._totals)

    def oldest_due_seconds(self) -> float:
        """For how long the oldest alert whose time has come waits for its post to end; 0 where none does.

        Raises `Unavailable`.
        """
        due_at = self._pending.first_due_at()
        return 0.0 if due_at is None else max(0.0, self._clock() - due_at)

    def _run(self) -> None:
        self._take_lease()
        while self._go_round():
            pass
        if not self._couriers.posting():
            # Else a post is still on its way: the lease is kept until the process ends.
            self._lease.release()

    def _take_lease(self) -> None:
        """Return with the lease, or without it when this is the end."""
        wait_seconds = 0.0
        while self._pause(wait_seconds):
            wait_seconds = POLL_SECONDS
            try:
                if self._lease.take():
                    return
                self.liveness.look_at_other()
            except Exception as error:
                wait_seconds = TROUBLE_SECONDS
                log_trouble(error)

    def _go_round(self) -> bool:
        """Wait until there is something to do, and do it; False when this is the end."""
        try:
            if not self._wait():
                return False
            time.sleep(GROUP_COMMIT_SECONDS)
            self._dispatch()
        except Exception as error:
            self.liveness.failed(FAILS)
            log_trouble(error)
            return self._pause(TROUBLE_SECONDS)
        self.liveness.worked() if self._couriers.can_post() else self.liveness.failed(NO_THREADS)
        return True

    def _wait(self) -> bool:
        """Sleep until there is something to do; False when this is the end."""
        seconds = max(0.0, min(self._schedule.next_due_at(), self._poll_at) - self._elapsed())
        with self._changed:
            self._changed.wait_for(lambda: self._couriers.has_news() or self._woken or self._ended(), seconds)
            return not self._ended()

    def _pause(self, seconds: float) -> bool:
        """Sleep whatever there is to do; False when this is the end."""
        with self._changed:
            return not self._changed.wait_for(self._ended, seconds)

    def _ended(self) -> bool:
        return self._abandoned or self._couriers.finished()

    def _dispatch(self) -> None:
        try:
            self._record()
        finally:
            # On a full disk nothing can be recorded, but what is stored must still go out.
            self._read_changes()
            self._couriers.add(self._schedule.take_due(self._elapsed()))
            self._couriers.send_out()

    def _record(self) -> None:
        """Store what couriers brought back, then let each queue go on."""
        results = self._couriers.results(GROUP_COMMIT_RESULTS)
        attempts = [result.attempt for result in results if result.attempt is not None]
        moved = self._alerts.store(attempts) if attempts else set()
        # Only now: until it is stored a result must not be lost, nor the next alert of its queue sent.
        self._couriers.forget(len(results))
        for result in results:
            wait_seconds = 0 if _is_for_another_url(result, moved) else result.wait_seconds
            self._schedule.resume(result.queue, wait_seconds, result.host, self._elapsed())
        self._totals.update("retried" if attempt.seq in moved else _OUTCOMES[attempt.state] for attempt in attempts)

    def _read_changes(self) -> None:
        """Read one page of what was stored since the last time, so that posting never waits for a long list."""
        with self._changed:
            woken, self._woken = self._woken, False
        if not woken and self._elapsed() < self._poll_at:
            return
        # Moves first: alerts that are read after them have the new URL, and later moves are read in the next round.
        moves = self._read_moves()
        pages = self._read_alerts()
        self._forget_gone()
        self._poll_at = self._elapsed() + (0 if moves or pages else POLL_SECONDS)

    def _read_moves(self) -> bool:
        """Whether there may be more."""
        if self._last_move is None:
            _, self._last_move = self._pending.newest_seqs()
        moves = self._pending.moves_after(self._last_move)
        for move in moves:
            # Under the lock: a courier may take the queue at this moment.
            with self._changed:
                self._schedule.move(move.check_seq, host_of(move.webhook_url), self._elapsed())
            self._last_move = move.seq
        return len(moves) == PAGE

    def _forget_gone(self) -> None:
        """Look whether there are still the checks of some queues, so that those of others don't wait for a day."""
        if not self._looked_for and self._elapsed() >= self._look_for_at:
            self._looked_for, self._look_for_at = self._schedule.waiting(), self._elapsed() + GONE_SECONDS
        if self._looked_for:
            self._schedule.forget(self._pending.gone(self._looked_for[-PAGE:]))
            del self._looked_for[-PAGE:]

    def _read_alerts(self) -> bool:
        """Whether there may be more."""
        if not self._unplanned:
            self._unplanned.extend(self._unread.page())
        page_is_empty = not self._unplanned
        while self._unplanned:
            self._plan(self._unplanned[0])
            self._unplanned.popleft()
        return not (page_is_empty and self._unread.has_read_old())

    def _plan(self, pending: Pending) -> None:
        if not self._schedule.append(pending.check_seq, pending.seq, pending.is_test):
            host = host_of(pending.webhook_url)
            queue = CheckQueue(pending.check_seq, pending.key_id, host, [pending.seq], pending.is_test)
            self._schedule.add(queue, self._elapsed() + _wait_seconds(pending, self._clock()))


_OUTCOMES = {"delivered": "delivered", "pending": "retried", "failed": "failed"}


def _is_for_another_url(result: Result, moved: Collection[int]) -> bool:
    """Whether an alert is due at once because its check has another URL; `moved` are those posted to the one before."""
    if result.attempt is not None:
        return result.attempt.seq in moved
    return result.queue.is_moved and result.wait_seconds is not None


def _wait_seconds(pending: Pending, now: float) -> float:
    """Seconds until a stored alert is due; 0 where the wall clock was set back so far that it would be over a day."""
    wait_seconds = pending.next_attempt_at - now if pending.attempts and pending.next_attempt_at else 0
    # What is stored is rounded up to the next second.
    return wait_seconds if 0 < wait_seconds < LONGEST_RETRY_AFTER_SECONDS + 1 else 0


def _courier_limit() -> int:
    """Fewer than usual where descriptors are few: the clients and the database need most of them."""
    return descriptor_limit(4 * COURIERS) // 4
