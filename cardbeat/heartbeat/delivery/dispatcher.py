"""One round of delivery: record results, read what is new, send out what is due.

The database is the queue of alerts. Memory holds one `CheckQueue` for each check whose first waiting alert is being
posted or is due within `KEPT_SECONDS`, and nothing of other alerts. After a post the database tells the next alert.
"""

import contextlib
import math
from collections import Counter
from collections.abc import Iterable
from itertools import islice

from cardbeat.clock import Clock
from cardbeat.heartbeat.delivery.couriers import Couriers
from cardbeat.heartbeat.delivery.lanes import CheckQueue
from cardbeat.heartbeat.delivery.places import remember
from cardbeat.heartbeat.delivery.retries import LONGEST_RETRY_AFTER_SECONDS, may_be_earlier
from cardbeat.heartbeat.delivery.schedule import Schedule
from cardbeat.heartbeat.outbox.alerts import Alerts
from cardbeat.heartbeat.outbox.pending import PAGE, Pending, PendingAlerts
from cardbeat.heartbeat.webhooks.target import receiver_of

POLL_SECONDS = 1.0
"""Interval at which alerts and changes that other processes store are read."""
READ_AGAIN_SECONDS = 600.0
"""Interval at which all pending alerts are read again, page by page, to find those that will be due soon."""
KEPT_SECONDS = 2 * READ_AGAIN_SECONDS
"""An alert whose next attempt is further away is left in the database until it is read again."""
GROUP_COMMIT_RESULTS = 500
"""Most results in one commit."""
MOST_PAGES = 5
"""Most pages of new alerts, and of those that are read again, in a round: results and posts must not wait for more."""
DAY_SECONDS, GROWN_DAYS = 86_400, 30
"""A key of so many days weighs as much as an older one: 31 times what a new key does."""
EXTRA_SECONDS = 600.0
"""Least time between two extra tries for a check: a job that fails again and again must not flood its receiver."""
HELD_AT_ONCE, MOST_HELD_WRITES = 100, 5
"""Most held alerts whose times one write stores, and most such writes in a round. All pings wait for each of them."""


class Dispatcher:
    """The state of delivery since this process got the lease; it starts empty.

    One thread uses it, except for `wake`. `elapsed` is a clock that only goes forward. `totals` counts attempts by
    their result: delivered, retried, failed.
    """

    def __init__(
        self,
        alerts: Alerts,
        couriers: Couriers,
        totals: Counter[str],
        clock: Clock,
        elapsed: Clock,
        *,
        poll_seconds: float = POLL_SECONDS,
    ) -> None:
        self._alerts = alerts
        self.couriers = couriers
        self._allowance = couriers.allowance
        self._totals = totals
        self._clock = clock
        self._elapsed = elapsed
        self._poll_seconds = poll_seconds
        # Used by the one thread alone.
        self._schedule = Schedule()
        self._pending = PendingAlerts(alerts.database)
        self._checks: list[int] = []
        """Checks whose next alert is to be read."""
        self._held: dict[int, int] = {}
        """When alerts are due that wait for their turn, in Unix seconds by `seq`; not stored yet."""
        self._has_begun = False
        """Whether all alerts that waited at the begin were read."""
        self._newest: tuple[int, int] | None = None
        """The `seq` of the last alert and of the last move that were read; None before the first round."""
        self._read_again: int | None = None
        """The `seq` of the oldest alert that was read again, newest first; None once all are."""
        self._read_again_at = self._poll_at = -math.inf
        self._server: str | None = None
        # Read and written by this thread, the couriers and callers, under this condition's lock only.
        self._changed = couriers.changed
        self._woken = False

    def wake(self) -> None:
        """Note that new alerts, or moves of some (`PendingAlerts.moves_after`), are committed."""
        with self._changed:
            self._woken = True
            self._changed.notify()

    def due_at(self) -> float:
        """The time of the next round, unless there is news before."""
        return min(self._schedule.next_due_at(), self._poll_at)

    def has_news(self) -> bool:
        """Whether there is something to do now."""
        return self._woken or self.couriers.has_news()

    def is_of_this_server(self) -> bool:
        """Whether its state was read from the server and the tables that are there now. Raises `Unavailable`.

        Others may lack the last writes, and give their numbers to other rows.
        """
        server = self._alerts.database.server()
        self._server = server if self._server is None else self._server
        return server == self._server

    def go_round(self) -> None:
        """Record results, read what is new, and send out what is due. Raises `Unavailable`."""
        try:
            self.record()
        finally:
            # On a full disk no result can be recorded, but stored alerts must still go out.
            self._read_changes()
            self.couriers.add([queue for queue in self._schedule.take_due(self._elapsed()) if self._has_turn(queue)])
            self.couriers.send_out()
            self._store_held()

    def record(self) -> None:
        """Store results but those of locked checks, then plan the next alert of each check. Raises `Unavailable`."""
        results = self.couriers.results(GROUP_COMMIT_RESULTS)
        attempts = [result.attempt for result in results if result.attempt is not None]
        moved, locked = self._alerts.store(attempts, int(self._clock())) if attempts else (set(), set())
        # Only now: until a result is stored, it must not be lost, and its check's next alert must not be sent.
        for result in self.couriers.forget(len(results), locked):
            self._schedule.forget(result.queue)
            is_moved = result.queue.is_moved or (result.attempt is not None and result.attempt.seq in moved)
            # The next try has its time as it is stored.
            was_extra = result.queue.is_extra and result.attempt is not None
            if was_extra:
                remember(self._allowance.extra_tries, result.queue.check_seq, self._elapsed())
            if result.wait_seconds is None or is_moved or was_extra:
                self._checks.append(result.queue.check_seq)
            elif result.is_held:
                self._hold(result.queue, result.wait_seconds)
            else:
                self._wait(result.queue, result.wait_seconds)
        stored = [attempt for attempt in attempts if attempt.seq not in locked]
        self._totals.update("retried" if one.seq in moved or one.state == "pending" else one.state for one in stored)
        self._plan_checks()

    def _has_turn(self, queue: CheckQueue) -> bool:
        """Whether an alert may be posted now. If its key or its check has caused too many, it is held until it may."""
        # Of a reminder each try counts: they are sent for ever, also to a receiver that is gone.
        if queue.is_counted and not queue.is_reminder:
            return True
        has_room = self._allowance.key_has_room(queue.key, is_reminder=queue.is_reminder)
        checks = 0 if has_room else self._checks_of(queue.key)
        wait_seconds, queue.is_counted = self._allowance.of_key(queue.key, checks, is_reminder=queue.is_reminder)
        if queue.is_counted and not queue.is_test and not queue.is_reminder:
            wait_seconds = max(wait_seconds, self._allowance.of_check(queue))
        if queue.is_counted and not queue.is_reminder:
            remember(self._allowance.turns, queue.alert_id, self._elapsed() + wait_seconds)
        if wait_seconds:
            self._hold(queue, wait_seconds)
        return not wait_seconds

    def _checks_of(self, key_id: str) -> int:
        """The number of checks of a key; 0 if it can't be read."""
        # No error may get out: the alerts that are due are in no list while this is asked.
        with contextlib.suppress(Exception), self._alerts.database.read() as connection:
            sql = "SELECT checks FROM totals_by_key WHERE api_key_id = ?"
            row = connection.execute(sql, (key_id,)).fetchone()
            return row[0] if row else 0
        return 0

    def _hold(self, queue: CheckQueue, seconds: float) -> None:
        self._schedule.add(queue, self._elapsed() + seconds)
        self._held[queue.alert] = math.ceil(self._clock() + seconds)

    def _store_held(self) -> None:
        """Store when held alerts are due, for those who read their history and `oldest_due_seconds`."""
        for _ in range(min(math.ceil(len(self._held) / HELD_AT_ONCE), MOST_HELD_WRITES)):
            some = dict(islice(self._held.items(), HELD_AT_ONCE))
            locked = self._alerts.put_off(some)
            for seq in some:
                del self._held[seq]
            # Behind the others, for a later round.
            self._held.update((seq, some[seq]) for seq in locked)

    def _read_changes(self) -> None:
        """Read at most one page of moves and `MOST_PAGES` of alerts, so that posts never wait for a long list."""
        with self._changed:
            woken, self._woken = self._woken, False
        if not woken and self._elapsed() < self._poll_at:
            return
        self.couriers.retry_left()
        if self._newest is None:
            self._newest = self._pending.newest_seqs()
        alert, move = self._newest
        # Moves first: alerts that are read after them have the new URL.
        move = self._read_moves(move)
        alert, count = self._read_new(alert)
        self._newest = alert, move
        count += self._plan_again(alert)
        self._poll_at = self._elapsed() + (self._poll_seconds if not count and self._read_again is None else 0)

    def _read_moves(self, last: int) -> int:
        """Read the moves after number `last`, plan their checks' alerts again, and return the last number."""
        moves = self._pending.moves_after(last)
        # Under the lock, because a courier may take one of these queues now.
        with self._changed:
            for _, check_seq in moves:
                self._schedule.replace(check_seq)
                self._checks.append(check_seq)
        self._plan_checks()
        return moves[-1][0] if moves else last

    def _read_new(self, last: int) -> tuple[int, int]:
        """Read the alerts after number `last`, plan them, and return the last number and how many they were."""
        count = 0
        for _ in range(MOST_PAGES):
            page = self._pending.after(last)
            self._plan(page)
            self._plan_extra(page)
            last, count = page[-1].seq if page else last, count + len(page)
            if len(page) < PAGE:
                break
        return last, count

    def _plan_again(self, newest: int) -> int:
        """Read the next pages of all alerts again, or begin with the newest when it is time; returns how many."""
        if self._elapsed() >= self._read_again_at:
            self._read_again, self._read_again_at = newest + 1, self._elapsed() + READ_AGAIN_SECONDS
        count = 0
        while self._read_again is not None and count < MOST_PAGES * PAGE:
            page = self._pending.before(self._read_again)
            self._plan(page)
            if not self._has_begun:
                self._plan_extra(page)
            self._read_again, count = page[0].seq if page else None, count + len(page)
        self._has_begun = self._has_begun or self._read_again is None
        return count

    def _plan_checks(self) -> None:
        while self._checks:
            self._plan(self._pending.of_checks(self._checks[:PAGE]))
            del self._checks[:PAGE]

    def _plan_extra(self, pending: Iterable[Pending]) -> None:
        """Try at once what waits for a retry before these alerts: its receiver may have been back for hours."""
        now, wall, tries = self._elapsed(), self._clock(), self._allowance.extra_tries
        behind = {one.check_seq for one in pending if not (one.is_first or one.is_test)}
        asked = [one for one in behind if now - tries.get(one, -math.inf) >= EXTRA_SECONDS]
        for one in self._pending.of_checks(asked):
            if not one.is_test and may_be_earlier(_wait_seconds(one, wall), one.last_error, wall):
                with self._changed:
                    self._schedule.replace(one.check_seq)
                self._plan([one], is_extra=True)
                # Its test was replaced too.
                self._checks.append(one.check_seq)

    def _plan(self, pending: Iterable[Pending], *, is_extra: bool = False) -> None:
        """Schedule each alert that is first, unless its check is known already. An extra try is due now."""
        for one in pending:
            is_known = self._schedule.knows(one.check_seq, one.is_test)
            if one.is_first and not is_known and one.webhook_url is not None:
                host, port = receiver_of(one.webhook_url)
                queue = CheckQueue(one.check_seq, one.key_id, host, one.seq, port, one.is_test, one.id)
                queue.is_reminder = one.is_reminder
                queue.is_granted = one.is_granted
                age_seconds = max(0.0, self._clock() - one.key_created_at)
                queue.registered_at = self._elapsed() - age_seconds
                queue.weight = 1 + min(GROWN_DAYS, age_seconds / DAY_SECONDS)
                queue.is_counted = one.attempts > 0 or one.id in self._allowance.turns
                turn_seconds = self._allowance.turns.get(one.id, -math.inf) - self._elapsed()
                if turn_seconds > 0:
                    self._hold(queue, turn_seconds)
                else:
                    queue.is_extra = is_extra
                    self._wait(queue, 0 if is_extra else _wait_seconds(one, self._clock()))

    def _wait(self, queue: CheckQueue, seconds: float) -> None:
        if seconds <= KEPT_SECONDS:
            self._schedule.add(queue, self._elapsed() + seconds)


def _wait_seconds(pending: Pending, now: float) -> float:
    """Seconds until a stored alert is due; 0 if that is over a day, because then the wall clock was set back."""
    wait_seconds = pending.next_attempt_at - now if pending.attempts and pending.next_attempt_at else 0
    # The stored time is rounded up to the next second.
    return wait_seconds if 0 < wait_seconds < LONGEST_RETRY_AFTER_SECONDS + 1 else 0
