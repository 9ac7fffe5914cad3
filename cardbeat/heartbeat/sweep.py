"""The sweep: marks the checks whose deadline has passed as overdue, each with its alert."""

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from cardbeat import threads
from cardbeat.clock import Clock
from cardbeat.database import Database, Fence, Row, Transaction
from cardbeat.errors import LeaseLost, Unavailable
from cardbeat.heartbeat import alert
from cardbeat.heartbeat.alerts import Alerts
from cardbeat.heartbeat.check import Check
from cardbeat.heartbeat.credit import Credit, Moment
from cardbeat.heartbeat.rounds import Rounds
from cardbeat.heartbeat.transitions import GIVEN_UP, KEY_PREFIX, OVERDUE, subject_of

log = logging.getLogger(__name__)

SWEEP_BATCH = 250
"""How many checks one write job marks: bounds how long a ping waits behind it."""
LOCKED_SECONDS = 1.0
"""How soon a check is looked at again that somebody else was writing to."""
SWEEPS = "sweeps"
"""Under which name those are counted that have finished."""
POLL_SECONDS = 0.25
"""How soon it is seen that this process has the lease now. It comes on top of the time that it takes to get that."""


class Step(NamedTuple):
    """What one write job did: the checks that it marked, and those of the alerts that gave way to newer ones.

    `is_last` if it found no more that it could mark.
    """

    overdue: list[str]
    given_up: list[str]
    is_last: bool


_DUE = (
    "SELECT seq FROM checks WHERE status = 'on_time' AND deadline_at < ?"
    # Those of a revoked key wait for their removal.
    " AND api_key_id NOT IN (SELECT id FROM keys WHERE revoked_at IS NOT NULL) ORDER BY deadline_at LIMIT ?"
)
"""Those that are due the longest, as many as one write job marks."""


class Sweep:
    """Sweeps at its start and every `sweep_seconds`, in a thread of its own.

    With a `fence` it sweeps only while this process holds the lease, and at once when it gets that.
    `wake` is called when alerts are recorded and committed, `after` after each sweep but one that was cut short.
    `last_duration_seconds` is that of the last sweep that this process has finished, None before there was one.
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
    ) -> None:
        self._database = database
        self._alerts = alerts
        self._wake = wake
        self._sweep_seconds = sweep_seconds
        self._after = after
        self._monotonic = monotonic
        self._fence = fence
        self.credit = Credit(database, clock, monotonic, sweep_seconds, fence)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sweep", daemon=True)
        # Used by the thread that sweeps alone.
        self._has_skipped = False
        # Written by the thread that sweeps, read by those that answer requests: single values, each whole at any time.
        self._rounds = Rounds(database, SWEEPS, monotonic)
        self.last_duration_seconds: float | None = None

    def start(self) -> None:
        """Raises `StartupError` without a thread."""
        self._rounds.end()
        threads.start(self._thread)

    def stop(self, seconds: float | None = None) -> bool:
        """End the thread after the step that it is in; False where that takes longer than `seconds`."""
        if not self._stopping.is_set():
            self._stopping.set()
            # Without waiting: a database that can't be written must not hold up the stop of the service.
            moment = self.credit.moment()
            with contextlib.suppress(Unavailable):
                self._database.write_later(lambda transaction: self.credit.note_stop(transaction, moment))
        return threads.has_ended(self._thread, seconds)

    def age_seconds(self) -> float:
        """How long ago a sweep finished, here or where the lease is; before the first, how long ago sweeping began."""
        return self._rounds.age_seconds()

    def healthy(self) -> bool:
        """Whether a sweep has finished within three intervals."""
        return self.age_seconds() <= 3 * self._sweep_seconds

    def sweep_once(self, moment: Moment | None = None) -> int:
        """Mark every check that is due at `moment`, by default now, as overdue; the number of them.

        If nobody listens for a time or the wall clock is set meanwhile, the sweep ends there and the next one goes on,
        after the credit for that.
        """
        started = self._monotonic()
        moment = moment or self.credit.moment()
        marked, self._has_skipped = 0, False
        while not self._stopping.is_set():
            step = self.credit.write(lambda transaction: self._mark_overdue(transaction, moment))
            if step is None:
                break
            marked += len(step.overdue)
            if step.overdue:
                self._wake()
            self._alerts.transitions.note(OVERDUE, step.overdue)
            self._alerts.transitions.note(GIVEN_UP, step.given_up)
            if step.is_last:
                self._finish(started)
                break
        return marked

    def _finish(self, started: float) -> None:
        self._rounds.end()
        self.last_duration_seconds = self._monotonic() - started

    def _mark_overdue(self, transaction: Transaction, moment: Moment) -> Step | None:
        """Mark one batch; the change of status and its alert are one transaction. None while a credit is to be given.

        The condition stands twice: with several writers a ping may come between the choice of a check and its change.

        Pings read the clock in such a transaction too. So a clock that has not been set up to here was the same for
        every ping that is stored by now. The credit may have been given already, by another process.
        """
        # What most sweeps find, and each question to a server takes its time.
        is_empty = self._fence is not None and transaction.execute(_DUE, (moment.wall, 1)).fetchone() is None
        if not self.credit.note(transaction, counting=SWEEPS if is_empty else None) or self.credit.jumped_since(moment):
            return None
        if is_empty:
            return Step([], [], is_last=True)
        rows, is_last = self._mark(transaction, moment.wall)
        given_up = self._alerts.record(transaction, alert.OVERDUE, [Check.from_row(row) for row in rows], moment.wall)
        return Step([subject_of(row["id"], row["key_prefix"]) for row in rows], given_up, is_last)

    def _mark(self, transaction: Transaction, now: int) -> tuple[list[Row], bool]:
        """Mark one batch of what is due; the rows, and whether it is known that no more can be marked now.

        Where others write meanwhile, the rows are locked first; those that another session holds are left for the next
        sweep, as they may be held for hours. Where nobody does, one statement is enough: at each row that is read the
        interpreter switches to another thread, and there may be hundreds.
        """
        if self._fence is None:
            rows = _marked(transaction, _DUE, (now, SWEEP_BATCH), now)
            return rows, len(rows) < SWEEP_BATCH
        if due := self._database.lock_free(transaction, _DUE, (now, SWEEP_BATCH)):
            return _marked(transaction, ", ".join("?" * len(due)), due, now), False
        # Or it was pinged just now, and the next sweep comes early for nothing.
        self._has_skipped = True
        self._rounds.count(transaction)
        return [], True

    def _run(self) -> None:
        while not self._stopping.wait(self._sweep_or_look()):
            pass

    def _sweep_or_look(self) -> float:
        """Sweep, or see whether another process does; the seconds until the next time."""
        started = self._monotonic()
        if self._fence is not None and not self._fence.held():
            self._rounds.look()
            return POLL_SECONDS
        try:
            self.sweep_once(self.credit.give_due(self._stopping))
            if self._after is not None and not self._stopping.is_set():
                self._after()
        except LeaseLost:
            return POLL_SECONDS
        except Unavailable:
            # Why is in the log already.
            log.error("the sweep failed; the next one is tried in %s s", self._sweep_seconds)
        except Exception:
            log.exception("the sweep failed; the next one is tried in %s s", self._sweep_seconds)
        wait_seconds = min(LOCKED_SECONDS, self._sweep_seconds) if self._has_skipped else self._sweep_seconds
        return max(0, started + wait_seconds - self._monotonic())


def _marked(transaction: Transaction, among: str, values: Sequence[object], now: int) -> list[Row]:
    """Mark those of these checks that are due still."""
    return transaction.execute(
        f"UPDATE checks SET status = 'overdue', outage = outage + 1 WHERE seq IN ({among})"
        f" AND status = 'on_time' AND deadline_at < ? RETURNING *, {KEY_PREFIX}",
        (*values, now),
    ).fetchall()
