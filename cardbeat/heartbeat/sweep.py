"""The sweep: marks the checks whose deadline has passed as overdue, and reminds of those that are, by alerts."""

import contextlib
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from cardbeat.clock import Clock
from cardbeat.concurrency.threads import BackgroundThread
from cardbeat.database import Database, Fence, Transaction, monitor
from cardbeat.errors import LeaseLost, Unavailable
from cardbeat.heartbeat.credit import CREDIT_BATCH, INTERVAL, Credit, Moment, tell
from cardbeat.heartbeat.outbox import alert
from cardbeat.heartbeat.outbox.alerts import Alerts
from cardbeat.heartbeat.transitions import OVERDUE, TURNED, Turned, note, subject_of

SWEEP_BATCH = 250
"""Most checks that one write marks. Bounds how long a ping waits for that write."""
LOCKED_SECONDS = 1.0
"""Pause after a sweep that left out checks, because another session was writing to them."""
SWEEPS = "sweeps"
"""Name of the count of finished sweeps in the table `monitor`."""
POLL_SECONDS = 0.25
"""Interval at which a process without the lease looks for it."""


def _either(on_time: str, overdue: str) -> str:
    return f"CASE WHEN status = 'on_time' THEN {on_time} ELSE {overdue} END"


_DUE_AT = _either("deadline_at", "remind_at")
"""The expression of the index `checks_due`."""
_DUE = (
    f"SELECT seq FROM checks WHERE {_DUE_AT} < ?"
    # The checks of a revoked key wait for their removal.
    f" AND api_key_id NOT IN (SELECT id FROM keys WHERE revoked_at IS NOT NULL) ORDER BY {_DUE_AT} LIMIT ?"
)
"""The checks that are due the longest."""
_NEXT_REMINDER = "remind_at + ((? - remind_at) / repeat_seconds + 1) * repeat_seconds"
_MARK = (
    f"UPDATE checks SET status = 'overdue', outage = outage + {_either('1', '0')},"
    f" overdue_at = {_either('?', 'overdue_at')}, remind_at = {_either('? + repeat_seconds', _NEXT_REMINDER)},"
    f" overdue_deadline_at = {_either('deadline_at', 'overdue_deadline_at')},"
    f""" overdue_reason = {_either("'late'", "overdue_reason")}"""
)


class Step(NamedTuple):
    """One write: the checks it marked, as the log names them, and how many it reminded of. `is_last` if it was all."""

    overdue: list[str]
    reminded: int
    is_last: bool


class Sweep:
    """Sweeps at the start and then every `sweep_seconds`, in a thread of its own.

    With a `fence` it sweeps only while this process holds the lease. `wake` is called after each commit that stored
    alerts, `after` after each sweep that was not interrupted. `last_duration_seconds` is None until a sweep finished.
    """

    def __init__(
        self,
        database: Database,
        clock: Clock,
        alerts: Alerts,
        wake: Callable[[], None],
        sweep_seconds: float,
        *,
        after: Callable[[], None] | None = None,
        monotonic: Clock = time.monotonic,
        fence: Fence | None = None,
        batch: int = SWEEP_BATCH,
        credit_batch: int = CREDIT_BATCH,
    ) -> None:
        self._database = database
        self._alerts = alerts
        self._wake = wake
        self._sweep_seconds = sweep_seconds
        self._after = after
        self._monotonic = monotonic
        self._fence = fence
        self._batch = batch
        self.credit = Credit(database, clock, monotonic, sweep_seconds, fence, batch=credit_batch)
        self._thread = BackgroundThread("sweep", self.sweep_or_look, sweep_seconds, monotonic=monotonic)
        # Used by the sweep's thread alone.
        self._has_skipped = False
        self._sweeps_seen: int | None = None
        self._moment_seen: int | None = None
        # Written by that thread, read by any.
        self._interval = 0
        """The interval of another process that sweeps, 0 if this one does."""
        self._ended_at = monotonic()
        self.last_duration_seconds: float | None = None

    def start(self) -> None:
        """Raises `StartupError` without a thread."""
        self._ended_at = self._monotonic()
        self._thread.start()

    def stop(self, seconds: float | None = None) -> bool:
        """End the thread after its present write; False if that takes longer than `seconds`."""
        if not self._thread.stopping.is_set():
            self._thread.stop(0)
            # Do not wait for this write: a database that can't be written must not delay the stop of the service.
            moment = self.credit.moment()
            with contextlib.suppress(Unavailable):
                stop = self._database.write_later(lambda transaction: self.credit.note_stop(transaction, moment))
                stop.then(tell)
        return self._thread.stop(seconds)

    def age_seconds(self) -> float:
        """Seconds since a sweep finished, in this or another process; before the first one, since the start."""
        return max(0.0, self._monotonic() - self._ended_at)

    def healthy(self) -> bool:
        """Whether a sweep has finished within three intervals, of the process that sweeps if that has longer ones."""
        return self.age_seconds() <= 3 * max(self._sweep_seconds, self._interval)

    def sweep_once(self, moment: Moment | None = None) -> int:
        """Mark all checks that are due at `moment` (by default now) as overdue, and remind; returns how many it marked.

        Stops early if a credit becomes due, after an outage or a jump of the wall clock. The next sweep goes on.
        """
        started = self._monotonic()
        moment = moment or self.credit.moment()
        marked, self._has_skipped = 0, False
        while not self._thread.stopping.is_set():
            step = self.credit.write(lambda transaction: self._mark_overdue(transaction, moment))
            if step is None:
                break
            marked += len(step.overdue)
            if step.overdue or step.reminded:
                self._wake()
            note(OVERDUE, step.overdue)
            if step.is_last:
                self._ended_at = self._monotonic()
                self.last_duration_seconds = self._ended_at - started
                break
        return marked

    def _mark_overdue(self, transaction: Transaction, moment: Moment) -> Step | None:
        """Mark one batch, store its alerts and reminders in one transaction. None if a credit has to be given first.

        If the wall clock has not jumped until now, it was right for all pings stored before: they read it inside
        transactions too. The jump is checked here because another process may have given the credit for it already.
        """
        # Most sweeps find nothing: then look only, which is quicker, and over a server saves a round trip.
        is_empty = transaction.execute(_DUE, (moment.wall, 1)).fetchone() is None
        if not self.credit.note(transaction, counting=SWEEPS if is_empty else None) or self.credit.jumped_since(moment):
            return None
        if is_empty:
            return Step([], 0, is_last=True)
        turned, is_last = self._mark(transaction, moment.wall)
        # No reminder is due in the second in which an outage begins.
        marked = [check for check in turned if check.overdue_at == moment.wall]
        reminded = [check for check in turned if check.overdue_at != moment.wall]
        for alert_type, some in (alert.OVERDUE, marked), (alert.REMINDER, reminded):
            self._alerts.record(transaction, alert_type, some, moment.wall)
        return Step([subject_of(check.id, check.key_prefix) for check in marked], len(reminded), is_last)

    def _mark(self, transaction: Transaction, now: int) -> tuple[list[Turned], bool]:
        """Mark one batch; its checks, and whether it is known that no more can be marked now.

        With several writers the rows are locked first. Rows that another session holds are left for the next sweep,
        because they may be held for hours. With one writer a single statement is enough, and quicker: for each row read
        the interpreter may switch to another thread.
        """
        if self._fence is None:
            rows = _marked(transaction, _DUE, (now, self._batch), now)
            return rows, len(rows) < self._batch
        if due := self._database.lock_free(transaction, _DUE, (now, self._batch)):
            return _marked(transaction, ", ".join("?" * len(due)), due, now), False
        # Another session holds the rows that are left. If they were pinged just now, the next sweep is early in vain.
        self._has_skipped = True
        monitor.increment(transaction, SWEEPS)
        return [], True

    def sweep_or_look(self) -> float:
        """Sweep with the lease; without it, look whether another process sweeps. Seconds until the next call."""
        if self._fence is not None and not self._fence.held():
            self._look()
            return POLL_SECONDS
        self._interval = 0
        try:
            self.sweep_once(self.credit.give_due(self._thread.stopping))
            if self._after is not None and not self._thread.stopping.is_set():
                self._after()
        except LeaseLost:
            return POLL_SECONDS
        return min(LOCKED_SECONDS, self._sweep_seconds) if self._has_skipped else self._sweep_seconds

    def _look(self) -> None:
        """Note when another process has finished a sweep, by this process's clock: machines' wall clocks may differ."""
        # The database logs why it can't be read.
        with contextlib.suppress(Exception), self._database.read() as connection:
            noted = monitor.values(connection)
            sweeps, self._interval = noted.get(SWEEPS, 0), noted.get(INTERVAL, 0)
            if sweeps != self._sweeps_seen:
                self._sweeps_seen, self._ended_at = sweeps, self._monotonic()
            # Stored also by a sweep that fails, while pings are stored.
            if (stored_at := noted.get("last_sweep_at")) != self._moment_seen:
                self._moment_seen = stored_at
                self.credit.swept()


def _marked(transaction: Transaction, among: str, values: Sequence[object], now: int) -> list[Turned]:
    """Mark these checks, or if they are overdue, note when the next reminder is due.

    `among` is SQL, for a list of `seq`, with these values. The condition stands here again: with several writers a ping
    may have come since. `+ 0` keeps it from choosing the index. Reminders that were due earlier too are skipped.
    """
    sql = f"{_MARK} WHERE seq IN ({among}) AND {_DUE_AT} + 0 < ? {TURNED}"
    return [Turned(*row) for row in transaction.execute(sql, (now, now, now, *values, now))]
