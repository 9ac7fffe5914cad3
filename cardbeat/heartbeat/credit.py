"""Credit for downtime of the monitor: jobs are not blamed for pings that were lost while it was down.

Every write of a sweep or a credit stores the current moment, by the wall clock and the monotonic clock; so does an
orderly stop. Time between two stored moments that was not spent on a write is silence: the monitor was down, suspended
or unable to write, or the wall clock was set. After a long silence the deadlines of all checks that were on time move
by its length.

Monotonic clocks of two machines can't be compared. So a moment is stored with the epoch of the lease; in another epoch,
and after a start, only its wall time is used.
"""

import contextlib
import logging
import threading
from collections.abc import Callable, Mapping
from math import ceil
from typing import Final, NamedTuple, TypeVar

from cardbeat.clock import Clock
from cardbeat.concurrency.later import Later
from cardbeat.database import Database, Fence, Transaction, monitor
from cardbeat.errors import Unavailable
from cardbeat.heartbeat.due_credits import add, give

log = logging.getLogger(__name__)

T = TypeVar("T")

CREDIT_BATCH = 1000
"""Checks that one write moves. Bounds how long a ping waits for that write."""
DRIFT_SECONDS = 2
"""Differences up to this come from rounding and from time servers' corrections, and are ignored."""
INTERVAL: Final = "sweep_seconds"
"""Name of the time between two sweeps of the process that stored the last moment, in the table `monitor`."""
REFUSED: Final = "pings_refused"
"""Name of a number in `monitor`, 1 since a process refused pings: the next sweep must not take it that they can be
stored, though in the process that sweeps none came."""
_LIKE_A_PING: Final = (
    "UPDATE checks SET clock_from = clock_from, ping_count = ping_count"
    " WHERE seq = ? AND EXISTS (SELECT 1 FROM keys WHERE keys.id = api_key_id AND revoked_at IS NULL)"
)
"""Writes a check as a ping does, and changes nothing."""
_ROWS: Final = (
    "WITH RECURSIVE rows (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM rows WHERE n < 1000)"
    " INSERT INTO monitor (name, value) SELECT 'room ' || n, n FROM rows"
)
"""Some 50 KB: more than a full disk still has room for in pages that are there."""
LOOK_SECONDS: Final = 0.5
"""Time between two readings of the clock while a write is under way."""


class Moment(NamedTuple):
    """Both clocks, read at the same time, in whole seconds."""

    wall: int
    monotonic: int


def lost_seconds(gap_seconds: int, listened_seconds: int | None, outage_seconds: float) -> int:
    """The seconds by which deadlines must move; negative if the wall clock was set back.

    Since the last stored moment `gap_seconds` passed on the wall clock and `listened_seconds` on the monotonic clock
    (None if unknown, as after a start). More than `outage_seconds` of silence are an outage.
    """
    if listened_seconds is None or listened_seconds > outage_seconds:
        return gap_seconds if abs(gap_seconds) > outage_seconds else 0
    jump_seconds = gap_seconds - listened_seconds
    return jump_seconds if abs(jump_seconds) > DRIFT_SECONDS else 0


class Credit:
    """Credits each outage and each jump of the clock exactly once, despite crashes and several sweeping processes.

    All state is in the table `monitor`, and only writes change it. One transaction stores that a credit is due,
    together with the current moment; the credit is then given in batches, each storing its progress. A credit that
    becomes due before the first is finished is stored as the next one.

    An outage is a silence of more than two sweeps. With a `fence` only one process sweeps at a time, and a write raises
    `LeaseLost` if another process holds the lease. Nodes take pings while the lease changes hands, so that time is no
    outage.
    """

    def __init__(
        self,
        database: Database,
        clock: Clock,
        monotonic: Clock,
        sweep_seconds: float,
        fence: Fence | None = None,
        *,
        batch: int = CREDIT_BATCH,
    ) -> None:
        self._database = database
        self._clock = clock
        self._monotonic = monotonic
        self._fence = fence
        self._batch = batch
        self._interval = ceil(sweep_seconds)
        self._outage_seconds = max(2 * sweep_seconds, DRIFT_SECONDS)
        self._takeover_seconds = 0 if fence is None else fence.gap_seconds
        # Written and read by the sweep's thread and the database's writer, without a lock: a race costs one second.
        self._listened: int | None = None
        """The monotonic second up to which this process has listened. Once it is set, stored ones are of this boot."""
        self._stored = 0
        """The monotonic second of the last moment that it stored."""
        self._heard = self.moment()
        """When a ping was stored last, or a sweep; the last time before pings were refused for as long as an outage."""
        self._is_heard: bool | None = None
        """Whether that was a ping; False if pings were refused since, None if none came."""
        database.heard = self._hear
        self._tries = 0
        """How often the sweep began to give the credits that are due now."""
        # Used by the database's writer alone.
        self._noted = 0, 0
        """What the last call of `note` stored: the credit in seconds, and the monotonic second."""

    def moment(self) -> Moment:
        return Moment(int(self._clock()), int(self._monotonic()))

    def jumped_since(self, moment: Moment) -> bool:
        """Whether the wall clock was set since that moment, so that deadlines can't be compared with it."""
        now = self.moment()
        return abs(now.wall - moment.wall - (now.monotonic - moment.monotonic)) > DRIFT_SECONDS

    def write(self, work: Callable[[Transaction], T]) -> T:
        """As `Database.write`, for work that calls `note`; logs the credit that it stored. In the sweep's thread only.

        If it fails, the moment alone is stored up to which pings could be: until then there is no silence. Else a sweep
        that always fails would move all deadlines on for ever.
        """
        try:
            result = self._write(work)
        except Exception:
            with contextlib.suppress(Exception):
                self._note_heard()
            raise
        self.swept()
        return result

    def swept(self) -> None:
        """Note that this process or another one has just stored the moment: until then pings could be stored."""
        self._heard, self._is_heard = self.moment(), None

    def _hear(self, is_stored: bool) -> None:
        """Note that pings were stored, or that all that came were refused. Called in the database's writer."""
        moment = self.moment()
        if not is_stored:
            if self._is_heard is not False:
                with contextlib.suppress(Unavailable):
                    self._database.write_later(lambda transaction: monitor.note(transaction, **{REFUSED: 1}))
            self._is_heard = False
        elif self._is_heard is not False or moment.monotonic - self._heard.monotonic <= self._outage_seconds:
            self._heard, self._is_heard = moment, True

    def _note_heard(self) -> None:
        heard, is_heard = self._heard, self._is_heard

        def note(transaction: Transaction) -> None:
            if is_heard is False and self._is_before_noted(transaction, heard):
                self._noted = 0, self._stored
                return
            self.note(transaction, heard if is_heard is False else None)
            if is_heard is None:
                self._try_a_ping(transaction)

        self._write(note)
        if is_heard is False:
            # What follows was silence, though this process ran and could write.
            self._listened = heard.monotonic

    def _is_before_noted(self, transaction: Transaction, moment: Moment) -> bool:
        """Whether another process has stored a later moment: this one may have been suspended since its own."""
        noted = monitor.values(transaction)
        since_noted = self._since_noted(noted, moment)
        return (moment.wall - noted.get("last_sweep_at", 0) if since_noted is None else since_noted) < 0

    def _try_a_ping(self, transaction: Transaction) -> None:
        """Write the newest check that no other session holds. Raises what storing a ping would."""
        for seq in self._database.lock_free(transaction, "SELECT seq FROM checks ORDER BY seq DESC LIMIT 1", ()):
            transaction.execute(_LIKE_A_PING, (seq,))
        # Its page may have had room, on a disk that is full.
        transaction.execute(_ROWS)
        transaction.execute("DELETE FROM monitor WHERE name LIKE 'room %'")

    def _write(self, work: Callable[[Transaction], T]) -> T:
        """The time that a write takes is not silence, if the write succeeds and the process was not suspended."""
        listened, settled = self._listened, threading.Event()
        begun: list[int | None] = []

        def make(transaction: Transaction) -> tuple[T, tuple[int, int]]:
            # The writer may undo a transaction and run it again: begin with the same value as the first run.
            begun.append(begun[0] if begun else self._listened)
            self._listened = begun[0]
            return work(transaction), self._noted

        written = self._database.write_later(make)
        written.then(lambda _: settled.set())
        while not settled.wait(LOOK_SECONDS):
            self.look()
        try:
            result, (noted_seconds, self._stored) = written.result()
        except BaseException:
            # If the database can't be written, pings were lost too: this time was silence.
            self._listened = listened
            raise
        self.look()
        _tell(noted_seconds)
        return result

    def look(self) -> None:
        """Note that this process runs, unless an outage has passed since the last call. For while a write runs."""
        now = int(self._monotonic())
        if self._listened is not None and now - self._listened <= self._outage_seconds:
            self._listened = now

    def note(self, transaction: Transaction, moment: Moment | None = None, counting: str | None = None) -> bool:
        """Store the current or the given moment, and the credit due for the silence before it, in this transaction.

        False while any credit is due: then no check may be marked overdue. If True, the same statement also increments
        the counter `counting`, of a sweep that changes no check. If pings were refused before, it is no sign that they
        can be stored now: then one is tried, and what it raises is raised.
        """
        if self._fence is not None:
            self._fence.confirm(transaction)
        moment = moment or self.moment()
        noted = monitor.values(transaction)
        is_refused = noted.get(REFUSED, 0)
        if counting is not None and (self._is_heard is False or (is_refused and self._is_heard is None)):
            self._try_a_ping(transaction)
        seconds = self._lost(noted, moment)
        self._noted = seconds, moment.monotonic
        if seconds:
            before = moment.wall if seconds > 0 else moment.wall - self._set_back_since(noted, moment) - 1
            since = self._since_noted(noted, moment)
            jumped = since is not None and moment.wall - noted["last_sweep_at"] - since > DRIFT_SECONDS
            add(transaction, noted, seconds, before, now=moment.wall, jumped=jumped)
        is_free = not seconds and "credit_seconds" not in noted
        values = {"last_sweep_at": moment.wall, "last_sweep_monotonic": moment.monotonic}
        if noted.get("last_sweep_epoch", 0) != self._epoch():
            values["last_sweep_epoch"] = self._epoch()
        if noted.get(INTERVAL) != self._interval:
            values[INTERVAL] = self._interval
        if counting is not None and is_free:
            values[counting] = noted.get(counting, 0) + 1
            if is_refused:
                values[REFUSED] = 0
        monitor.note(transaction, **values)
        # The commit that follows is not silence. If it fails, `write` restores the former value.
        self._listened = moment.monotonic
        return is_free

    def note_stop(self, transaction: Transaction, moment: Moment) -> int:
        """Store in this transaction that the monitor ran until `moment`, if it has stored any moment before.

        Returns the seconds of the credit that this stored, for `tell`.
        """
        if self._listened is None:
            return 0
        self.note(transaction, moment)
        return self._noted[0]

    def give_due(self, stopping: threading.Event) -> Moment:
        """Give all due credits, an unfinished one first; the moment after that.

        Call before each sweep. If `stopping` is set, a credit may stay unfinished, and no sweep may follow.
        """
        with self._database.read() as connection:
            noted = monitor.values(connection)
        if self._lost(noted, self.moment()) or "credit_seconds" in noted:
            self._tries += 1
            while not stopping.is_set() and self.write(self.step):
                pass
            self._tries = 0
        return self.moment()

    def _epoch(self) -> int:
        """The epoch of the lease; 0 without a lease, because then all writers run on one machine."""
        return 0 if self._fence is None else self._fence.epoch

    def _lost(self, noted: Mapping[str, int], moment: Moment) -> int:
        """`lost_seconds` since the last stored moment, or since this process last listened, if that is later.

        A jump of the clock counts from the stored moment: other processes' credits are included in it.
        """
        if "last_sweep_at" not in noted:
            return 0
        gap, since_noted = moment.wall - noted["last_sweep_at"], self._since_noted(noted, moment)
        if since_noted is None or self._listened is None:
            # The process before may have swept less often. Add the time that a change of the lease's holder may take.
            outage_seconds = max(self._outage_seconds, 2 * noted.get(INTERVAL, 0))
            return lost_seconds(gap, None, outage_seconds + self._takeover_seconds)
        listened, jump = min(since_noted, moment.monotonic - self._listened), gap - since_noted
        return lost_seconds(listened + jump, listened, self._outage_seconds)

    def _since_noted(self, noted: Mapping[str, int], moment: Moment) -> int | None:
        """Monotonic seconds since the stored moment; None if it may be from another boot or machine.

        None also if it is older by an outage than what this process has stored: then a backup was put back, or a
        standby that was behind is the server now, and the pings since then are lost.
        """
        if self._listened is None or noted.get("last_sweep_epoch", 0) != self._epoch():
            return None
        if self._fence is not None and self._stored - noted["last_sweep_monotonic"] > self._outage_seconds:
            return None
        return moment.monotonic - noted["last_sweep_monotonic"]

    def _set_back_since(self, noted: Mapping[str, int], moment: Moment) -> int:
        """The latest seconds in which a ping may have been stored by a wall clock that was already set back."""
        since_noted = self._since_noted(noted, moment)
        return int(self._outage_seconds + self._takeover_seconds) if since_noted is None else since_noted

    def step(self, transaction: Transaction) -> bool:
        """Give the credit to the next batch of checks. False if no credit is due any more."""
        moment = self.moment()
        self.note(transaction, moment)
        # If a try failed before, a check whose row another session holds must not keep all others from their alerts.
        return give(self._database, transaction, moment.wall, self._batch, skips_locked=self._tries > 1)


def tell(written: Later[int]) -> None:
    """Log the credit of so many seconds, 0 for none, that a write stored. It may have been undone, or repeated."""
    with contextlib.suppress(Exception):
        _tell(written.result())


def _tell(seconds: int) -> None:
    why, moved = "the clock was set back by %d s", "are on time move back"
    if seconds > 0:
        why, moved = "no ping could be taken for %d s, or the clock was set forward by as much", "were on time move on"
    if seconds:
        log.warning(f"{why}: the deadlines of checks that {moved} by as much", abs(seconds))
