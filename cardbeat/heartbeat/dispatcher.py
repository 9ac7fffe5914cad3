"""What is due and what is on its way, as whoever delivers knows it: read, planned, sent out and recorded in rounds."""

import math
from collections import Counter, deque
from collections.abc import Collection

from cardbeat.clock import Clock
from cardbeat.heartbeat.alerts import Alerts
from cardbeat.heartbeat.courier import Result
from cardbeat.heartbeat.couriers import Couriers
from cardbeat.heartbeat.lanes import CheckQueue
from cardbeat.heartbeat.pending import PAGE, Pending, PendingAlerts
from cardbeat.heartbeat.retries import LONGEST_RETRY_AFTER_SECONDS
from cardbeat.heartbeat.schedule import Schedule
from cardbeat.heartbeat.target import host_of
from cardbeat.heartbeat.unread import Unread

POLL_SECONDS = 1.0
"""How soon another process's alerts and changes are seen."""
GONE_SECONDS = 600.0
"""How soon what waits for the next attempt is forgotten once its check is gone."""
GROUP_COMMIT_RESULTS = 500
"""Results in one commit at the most."""


class Dispatcher:
    """Knows nothing at first, and from then on what one process delivers; another one may not deliver meanwhile.

    One thread uses it, but for `wake`. `elapsed` is a clock that only goes forward. In `totals` attempts are counted by
    what came of them: delivered, retried, failed.
    """

    def __init__(self, alerts: Alerts, couriers: Couriers, totals: Counter[str], clock: Clock, elapsed: Clock) -> None:
        self._alerts = alerts
        self.couriers = couriers
        self._totals = totals
        self._clock = clock
        self._elapsed = elapsed
        # The thread's own.
        self._schedule = Schedule()
        self._pending = PendingAlerts(alerts.database)
        self._unread = Unread(self._pending)
        self._unplanned: deque[Pending] = deque()
        self._last_move: int | None = None
        self._looked_for: list[int] = []
        self._look_for_at = elapsed() + GONE_SECONDS
        self._poll_at = -math.inf
        self._server: str | None = None
        # Read and written by this thread, the couriers and callers, under this condition's lock only.
        self._changed = couriers.changed
        self._woken = False

    def wake(self) -> None:
        """New alerts, or another webhook URL of a check that has some, are stored and committed."""
        with self._changed:
            self._woken = True
            self._changed.notify()

    def due_at(self) -> float:
        """When the next round has something to do, if nothing comes before."""
        return min(self._schedule.next_due_at(), self._poll_at)

    def has_news(self) -> bool:
        """Whether something came."""
        return self._woken or self.couriers.has_news()

    def is_of_this_server(self) -> bool:
        """Whether what it knows was read from the server that has the database now. Raises `Unavailable`.

        Another one may lack what was stored last, and give its numbers to something else.
        """
        server = self._alerts.database.server()
        self._server = server if self._server is None else self._server
        return server == self._server

    def go_round(self) -> None:
        """Record what was posted, read what is new, and send out what is due. Raises `Unavailable`."""
        try:
            self.record()
        finally:
            # On a full disk nothing can be recorded, but what is stored must still go out.
            self._read_changes()
            self.couriers.add(self._schedule.take_due(self._elapsed()))
            self.couriers.send_out()

    def record(self) -> None:
        """Store what couriers brought back, then let each queue go on. Raises `Unavailable`."""
        results = self.couriers.results(GROUP_COMMIT_RESULTS)
        attempts = [result.attempt for result in results if result.attempt is not None]
        moved = self._alerts.store(attempts) if attempts else set()
        # Only now: until it is stored a result must not be lost, nor the next alert of its queue sent.
        self.couriers.forget(len(results))
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
