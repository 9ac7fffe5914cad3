"""The sweep: what the monitor does every minute.

1. How long since the last sweep? If the monitor was away, or its clock was set, it first moves the
   clocks of checks: jobs are not blamed for pings that nothing could take (`_move`).
2. Mark the checks whose deadline has passed as overdue, each together with its alert.
3. Remind of checks that stay overdue.

Each write changes a bounded number of rows. With the last one of a step it stores the time, as
`last_sweep_at`.
"""

import contextlib
import logging
import time
from collections.abc import Callable

from cardbeat.clock import Clock
from cardbeat.database import (
    Database,
    Lease,
    Transaction,
    marks,
    numbers,
    set_numbers,
)
from cardbeat.errors import LeaseLost
from cardbeat.heartbeat import transitions
from cardbeat.heartbeat.alerts.message import REMINDER
from cardbeat.heartbeat.check import COLUMNS, NOW_OVERDUE, Check, note
from cardbeat.jobs import BackgroundThread

log = logging.getLogger(__name__)

MARKED_AT_ONCE = 250
"""Most checks that one write marks. Bounds how long a ping waits for that write."""
MOVED_AT_ONCE = 5000
"""Most checks whose clocks one write moves."""
SHORTEST_OUTAGE_SECONDS = 2
"""Times are whole seconds, so shorter gaps may be no gaps."""
TAKEOVER_SECONDS = 12
"""Where several nodes share the database: how long after the last renewal of a killed node another
one sweeps. All nodes take pings then, so this is no outage."""
POLL_SECONDS = 0.25
"""Interval at which a process without the lease looks for it."""

_DUE_AT = (
    "CASE WHEN status = 'on_time' THEN deadline_at ELSE remind_at END"
)
"""The expression of the index `checks_due`."""
_DUE = (
    f"SELECT seq FROM checks WHERE {_DUE_AT} < ?"
    # The checks of a revoked key wait for their removal.
    " AND api_key_id NOT IN (SELECT id FROM keys WHERE revoked_at IS NOT NULL)"
    f" ORDER BY {_DUE_AT} LIMIT ?"
)
# Three numbers stand in the table `monitor` while clocks are being moved: by how many seconds, when
# that was noticed, and the `seq` of the last check that is done.
_CREDIT = (
    "UPDATE checks SET clock_from = CASE WHEN clock_from + :credit_gap < :credit_until"
    " THEN clock_from + :credit_gap ELSE :credit_until END"
    " WHERE seq > :credit_after AND seq <= :last AND status = 'on_time'"
    " AND clock_from <= :credit_until"
)
_SET_BACK = (
    "UPDATE checks SET clock_from = :credit_until"
    " WHERE seq > :credit_after AND seq <= :last AND status = 'on_time'"
    " AND clock_from > :credit_until"
    " AND (snoozed_until IS NULL OR clock_from > snoozed_until)",
    "UPDATE checks SET remind_at = :credit_until + repeat_seconds"
    " WHERE seq > :credit_after AND seq <= :last AND remind_at > :credit_until + repeat_seconds"
    " AND (snoozed_until IS NULL OR snoozed_until <= :credit_until)",
)


class Sweep(BackgroundThread):
    """Sweeps at the start and then every `sweep_seconds`, in a thread of its own.

    With a `fence` it sweeps only while this process holds the lease. `wake` and `after` are called
    after each finished sweep: posts of its alerts would slow down its writes. A long one does not
    delay them, because delivery also looks by itself. `last_duration_seconds` is None until a sweep
    finished.
    """

    def __init__(
        self,
        database: Database,
        clock: Clock,
        wake: Callable[[], None],
        sweep_seconds: float,
        *,
        after: Callable[[], None] | None = None,
        monotonic: Clock = time.monotonic,
        fence: Lease | None = None,
        marked_at_once: int = MARKED_AT_ONCE,
        moved_at_once: int = MOVED_AT_ONCE,
    ) -> None:
        super().__init__(
            "sweep",
            self.sweep_or_look,
            sweep_seconds,
            monotonic=monotonic,
        )
        self._database = database
        self._clock = clock
        self._wake = wake
        self._sweep_seconds = sweep_seconds
        self._after = after
        self._fence = fence
        self._marked_at_once = marked_at_once
        self._moved_at_once = moved_at_once
        self._outage_seconds = max(
            2 * sweep_seconds, SHORTEST_OUTAGE_SECONDS
        )
        if fence is not None:
            takeover = sweep_seconds + TAKEOVER_SECONDS
            self._outage_seconds = max(self._outage_seconds, takeover)
        # Used by the sweep's thread alone.
        self._seen: int | None = None
        # Written by that thread, read by any.
        self._ended_at = monotonic()
        self.last_duration_seconds: float | None = None

    def age_seconds(self) -> float:
        """Seconds since a sweep, of this or another process; before the first, since the start."""
        return max(0.0, self._monotonic() - self._ended_at)

    def healthy(self) -> bool:
        """Whether a sweep has finished within three intervals."""
        return self.age_seconds() <= 3 * self._sweep_seconds

    def sweep_or_look(self) -> float:
        """Sweep with the lease; without it, look whether another process sweeps.

        Returns the seconds until the next call.
        """
        if self._fence is not None and not self._fence.held():
            self._look()
            return POLL_SECONDS
        try:
            self.sweep_once()
        except LeaseLost:
            return POLL_SECONDS
        return self._sweep_seconds

    def _look(self) -> None:
        """Note when another process has swept, by this process's clock."""
        # The database logs why it can't be read.
        with (
            contextlib.suppress(Exception),
            self._database.read() as connection,
        ):
            seen = numbers(connection).get("last_sweep_at")
            if seen != self._seen:
                self._seen = seen
                # They count until the next sweep, whichever process makes it.
                self._database.pings_refused = False
                self._ended_at = self._monotonic()

    def sweep_once(self) -> int:
        """Mark all checks that are due as overdue, and remind; returns how many it marked.

        It does nothing if a ping was refused for want of the database since the last sweep, so the
        time since the last one grows as if the monitor was away: over two intervals it counts.
        """
        if self._database.pings_refused:
            self._database.pings_refused = False
            log.warning(
                "pings were refused since the last sweep, so this one is left out"
            )
            return 0
        started = self._monotonic()
        marked = 0
        while not self.stopping.is_set():
            overdue, due = self._database.write(self._step)
            marked += len(overdue)
            note(NOW_OVERDUE, [check.subject for check in overdue])
            if due is not None and due < self._marked_at_once:
                self._ended_at = self._monotonic()
                self.last_duration_seconds = self._ended_at - started
                self._wake()
                if self._after is not None:
                    self._after()
                break
        return marked

    def _step(
        self, transaction: Transaction
    ) -> tuple[list[Check], int | None]:
        """One write of a sweep: the checks that it marked, and how many were due.

        While clocks have to be moved, no check is marked, and the second is None.
        """
        if self._fence is not None:
            self._fence.confirm(transaction)
        now = int(self._clock())
        noted = numbers(transaction)
        if "credit_gap" in noted:
            self._move(transaction, noted)
            return [], None
        gap = now - noted.get("last_sweep_at", now)
        if 0 <= gap <= self._outage_seconds:
            set_numbers(transaction, last_sweep_at=now)
            return self._mark(transaction, now)
        set_numbers(
            transaction, credit_gap=gap, credit_until=now, credit_after=0
        )
        if gap < 0:
            transaction.execute(
                "UPDATE alerts SET next_attempt_at = next_attempt_at + ?,"
                " asked_until = asked_until + ?"
                " WHERE state = 'pending' AND next_attempt_at > ?",
                (gap, gap, now),
            )
        log.warning(
            "no sweep for %d s, or the clock was set: the deadlines of checks that were on time"
            " move by as much",
            gap,
        )
        return [], None

    def _move(
        self, transaction: Transaction, noted: dict[str, int]
    ) -> None:
        """Move the clocks of the next checks, after an outage or after the clock was set.

        The gap since the last sweep is all that counts. Example: away from noon to 3 p.m.; a check
        whose clock runs from 11.50 gets 2.50, so it has as much time left as it had. One that was
        pinged since the restart gets 3, and no clock passes that. A check that was overdue stays
        so.

        If the clock was set back, clocks that run from a time to come start now. An alert may be
        late by as much as that, but none is false.

        `last_sweep_at` is stored with the last of them: until then it is the time before the gap.
        A process that is killed in between leaves the rest to the next one, and a further gap is
        found then.
        """
        batch = (
            "SELECT seq FROM checks WHERE seq > ? ORDER BY seq LIMIT ?"
        )
        sql = f"SELECT max(seq) FROM ({batch}) AS batch"
        values = (noted["credit_after"], self._moved_at_once)
        found = transaction.execute(sql, values).fetchone()
        if found[0] is None:
            transaction.execute(
                "DELETE FROM monitor WHERE name IN"
                " ('credit_gap', 'credit_until', 'credit_after')"
            )
            set_numbers(transaction, last_sweep_at=noted["credit_until"])
            return
        set_numbers(transaction, credit_after=found[0])
        self._database.lock(transaction, batch, values)
        statements: tuple[str, ...] = _SET_BACK
        if noted["credit_gap"] > 0:
            statements = (_CREDIT,)
        for statement in statements:
            transaction.execute(statement, noted | {"last": found[0]})

    def _mark(
        self, transaction: Transaction, now: int
    ) -> tuple[list[Check], int]:
        """Mark one batch of checks, and remind of others; store the alerts with it.

        Rows that another session holds are left for the next sweep. The conditions stand in the
        statements again: on PostgreSQL a ping may have come since.
        """
        due = self._database.lock_free(
            transaction, _DUE, (now, self._marked_at_once)
        )
        if not due:
            return [], 0
        among = f"seq IN ({marks(due)})"
        marked = transitions.turn_overdue(
            transaction,
            "late",
            f"{among} AND deadline_at < ?",
            [*due, now],
            now,
        )
        if len(marked) < len(due):
            # Reminders that were due earlier too are skipped.
            rows = transaction.execute(
                "UPDATE checks SET remind_at = remind_at"
                " + ((? - remind_at) / repeat_seconds + 1) * repeat_seconds"
                f" WHERE {among} AND status = 'overdue' AND remind_at < ?"
                f" RETURNING {COLUMNS}",
                (now, *due, now),
            )
            reminded = [Check(*row) for row in rows]
            transitions.record(transaction, REMINDER, reminded, now)
        return marked, len(due)
