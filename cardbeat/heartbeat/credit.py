"""Credit for outages of the monitor itself: pings lost while it was down are not the jobs' fault.

Every write of a sweep and of a credit notes the present moment, by the wall clock and by the monotonic clock, and so
does an orderly stop. What passes from one noted moment to the next without being spent on writing is silence: the
monitor was down, suspended or could not write, or the wall clock was set. Where it is long, the deadlines of all checks
that were on time move by as much. Work, however slow, is not silence.

Monotonic times of two machines have nothing to do with each other. So a moment is noted with the epoch of the lease of
whoever noted it, and in another epoch only its wall time counts, as after a start.
"""

import logging
import threading
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, TypeVar

from cardbeat import monitor
from cardbeat.clock import Clock
from cardbeat.database import Database, Fence, Transaction

log = logging.getLogger(__name__)

T = TypeVar("T")

CREDIT_BATCH = 1000
"""How many checks one write job moves: bounds how long a ping waits behind it."""
DRIFT_SECONDS = 2
"""Up to here the clocks differ by rounding and by the usual corrections of time servers."""
LOOK_SECONDS: Final = 0.5
"""From one look at the clocks to the next, while a write is waited for."""


class Moment(NamedTuple):
    """Both clocks, read together, in whole seconds."""

    wall: int
    monotonic: int


def lost_seconds(gap_seconds: int, listened_seconds: int | None, outage_seconds: float) -> int:
    """By how many seconds the deadlines must move; negative if the wall clock was set back.

    Since the last noted moment `gap_seconds` passed on the wall clock, and `listened_seconds` on the monotonic one,
    which is None where it can't be known, as after a start. More than `outage_seconds` are an outage.
    """
    if listened_seconds is None or listened_seconds > outage_seconds:
        return gap_seconds if abs(gap_seconds) > outage_seconds else 0
    jump_seconds = gap_seconds - listened_seconds
    return jump_seconds if abs(jump_seconds) > DRIFT_SECONDS else 0


class Credit:
    """Credits each outage and each jump of the clock once, whatever crashes and however many processes sweep.

    The rows of `monitor` are the only state that counts, and only write jobs change them. One transaction notes that a
    credit is due and that the time was listened up to now; the credit is then given in batches, each noted with its
    progress. One that becomes due meanwhile is noted as the next.

    An outage is more than two sweeps. With a `fence` one process at a time sweeps, and what is written raises
    `LeaseLost` where another one does by now; while the lease goes over to another, pings are taken, so that time is no
    outage.
    """

    def __init__(
        self,
        database: Database,
        clock: Clock,
        monotonic: Clock,
        sweep_seconds: float,
        fence: Fence | None = None,
    ) -> None:
        self._database = database
        self._clock = clock
        self._monotonic = monotonic
        self._fence = fence
        self._outage_seconds = max(2 * sweep_seconds, DRIFT_SECONDS)
        self._takeover_seconds = 0 if fence is None else fence.gap_seconds
        # Written and read by the thread that sweeps and by the database's writer: where both write at once, that makes
        # no difference of more than a moment.
        self._listened: int | None = None
        """Until when this process has listened, by the monotonic clock; None before its first noted moment.

        From that on the noted monotonic times are known to be of this boot of the machine.
        """

    def moment(self) -> Moment:
        return Moment(int(self._clock()), int(self._monotonic()))

    def jumped_since(self, moment: Moment) -> bool:
        """Whether the wall clock was set since then, so that deadlines can't be compared with that moment."""
        now = self.moment()
        return abs(now.wall - moment.wall - (now.monotonic - moment.monotonic)) > DRIFT_SECONDS

    def write(self, work: Callable[[Transaction], T]) -> T:
        """As `Database.write`, for work that calls `note`, in the thread that sweeps.

        What passes while a write is under way is not silence, if the write succeeds and the process goes on meanwhile.
        """
        listened, settled = self._listened, threading.Event()
        begun: list[int | None] = []

        def make(transaction: Transaction) -> T:
            # A transaction that was undone is made again, and what the first one has noted is not written.
            begun.append(begun[0] if begun else self._listened)
            self._listened = begun[0]
            return work(transaction)

        written = self._database.write_later(make)
        written.then(lambda _: settled.set())
        while not settled.wait(LOOK_SECONDS):
            self.look()
        try:
            result = written.result()
        except BaseException:
            # Pings can't be written either.
            self._listened = listened
            raise
        self.look()
        return result

    def look(self) -> None:
        """Note, in memory alone, that this process goes on, unless too much has passed since the last look.

        To be called every `LOOK_SECONDS` while a write is under way.
        """
        now = int(self._monotonic())
        if self._listened is not None and now - self._listened <= self._outage_seconds:
            self._listened = now

    def note(self, transaction: Transaction, moment: Moment | None = None, counting: str | None = None) -> bool:
        """Note in this transaction the present moment, or another, and the credit due for what passed before it.

        False while a credit is to be given, be it this one or another: then nobody may be marked as overdue. Otherwise
        one more is counted of what is `counting`, with the same statement.
        """
        if self._fence is not None:
            self._fence.confirm(transaction)
        moment = moment or self.moment()
        noted = monitor.values(transaction)
        seconds = self._lost(noted, moment)
        if seconds:
            before = moment.wall if seconds > 0 else moment.wall - self._set_back_since(noted, moment) - 1
            _note_credit(transaction, noted, seconds, before)
        is_free = not seconds and "credit_seconds" not in noted
        values = {"last_sweep_at": moment.wall, "last_sweep_monotonic": moment.monotonic}
        if noted.get("last_sweep_epoch", 0) != self._epoch():
            values["last_sweep_epoch"] = self._epoch()
        if counting is not None and is_free:
            values[counting] = noted.get(counting, 0) + 1
        monitor.note(transaction, **values)
        # From here on the commit is work. If it fails, `write` takes this back.
        self._listened = moment.monotonic
        return is_free

    def note_stop(self, transaction: Transaction, moment: Moment) -> None:
        """Note in this transaction that the monitor ran until then, if it has got as far as to note anything."""
        if self._listened is not None:
            self.note(transaction, moment)

    def give_due(self, stopping: threading.Event) -> Moment:
        """Give the credits due now, first of all one that a crash or a stop cut short; the moment after that.

        To be called before each sweep. When `stopping` is set, credits stay unfinished, and no sweep may follow.
        """
        if self._is_due():
            while not stopping.is_set() and self.write(self._step):
                pass
        return self.moment()

    def _epoch(self) -> int:
        """In which a moment is noted now; 0 where there is no lease, as all who note one are on the same machine."""
        return 0 if self._fence is None else self._fence.epoch

    def _is_due(self) -> bool:
        with self._database.read() as connection:
            noted = monitor.values(connection)
        return self._lost(noted, self.moment()) != 0 or "credit_seconds" in noted

    def _lost(self, noted: Mapping[str, int], moment: Moment) -> int:
        """As `lost_seconds`, since the last moment noted, or later where this process is known to have listened.

        A jump of the clock counts from the noted moment alone: what others have credited meanwhile is in there.
        """
        if "last_sweep_at" not in noted:
            return 0
        gap, since_noted = moment.wall - noted["last_sweep_at"], self._since_noted(noted, moment)
        if since_noted is None or self._listened is None:
            # Where another one takes over, that takes its time.
            return lost_seconds(gap, None, self._outage_seconds + self._takeover_seconds)
        listened, jump = min(since_noted, moment.monotonic - self._listened), gap - since_noted
        return lost_seconds(listened + jump, listened, self._outage_seconds)

    def _since_noted(self, noted: Mapping[str, int], moment: Moment) -> int | None:
        """The monotonic seconds since the last noted moment; None where that may be of another boot or machine."""
        if self._listened is None or noted.get("last_sweep_epoch", 0) != self._epoch():
            return None
        return moment.monotonic - noted["last_sweep_monotonic"]

    def _set_back_since(self, noted: Mapping[str, int], moment: Moment) -> int:
        """In how many of the last seconds a clock may have started by the wall clock as it was set back already."""
        since_noted = self._since_noted(noted, moment)
        return int(self._outage_seconds + self._takeover_seconds) if since_noted is None else since_noted

    def _step(self, transaction: Transaction) -> bool:
        """Give the credit to the next batch, and note that in the same transaction. False when none is due any more.

        Checks pinged or created since the outage are left alone: their `clock_from` is from `credit_before` to now, or,
        where the clock was set back again since, from the next `credit_before`. No clock is moved past now, which is
        what it would be by the wall clock as it was when the credit became due: the credits behind it are given later.
        """
        moment = self.moment()
        self.note(transaction, moment)
        noted = monitor.values(transaction)
        if "credit_seconds" not in noted:
            return False
        behind = sum(seconds for name, seconds in noted.items() if name.endswith("next_credit_seconds"))
        is_set_back = noted.get("next_credit_seconds", 0) < 0
        (last_seq,) = transaction.execute(
            "SELECT max(seq) FROM (SELECT seq FROM checks WHERE seq > ? ORDER BY seq LIMIT ?) AS batch",
            (noted["credit_after_seq"], CREDIT_BATCH),
        ).fetchone()
        if last_seq is None:
            return _end_credit(transaction)
        batch = "SELECT seq FROM checks WHERE seq > ? AND seq <= ? ORDER BY seq"
        self._database.lock(transaction, batch, (noted["credit_after_seq"], last_seq))
        transaction.execute(
            "UPDATE checks SET "
            "clock_from = CASE WHEN clock_from <= :now AND clock_from + :seconds > :now THEN :now"
            " ELSE clock_from + :seconds END "
            "WHERE seq > :after_seq AND seq <= :last_seq AND status = 'on_time' "
            "AND (clock_from < :before OR (clock_from > :now AND :seconds < 0))"
            " AND NOT (clock_from >= :set_back_from AND clock_from <= :wall)",
            {
                "seconds": noted["credit_seconds"],
                "before": noted["credit_before"],
                "after_seq": noted["credit_after_seq"],
                "last_seq": last_seq,
                "now": moment.wall - behind,
                "set_back_from": noted["next_credit_before"] if is_set_back else moment.wall + 1,
                "wall": moment.wall,
            },
        )
        monitor.note(transaction, credit_after_seq=last_seq)
        return True


def _note_credit(transaction: Transaction, noted: Mapping[str, int], seconds: int, before: int) -> None:
    """Begin a credit or, while others are being given, put it behind those."""
    prefix = ""
    while f"{prefix}credit_seconds" in noted:
        prefix += "next_"
    credit = {"credit_seconds": seconds, "credit_before": before, "credit_after_seq": 0}
    monitor.note(transaction, **{f"{prefix}{name}": value for name, value in credit.items()})
    log.warning(*_sentence(seconds))


def _sentence(seconds: int) -> tuple[str, int]:
    """What the log says of a credit, which is negative where the clock was set back."""
    if seconds < 0:
        return "the clock was set back by %d s: the deadlines of checks that are on time move back by as much", -seconds
    cause = "no ping could be taken for %d s, or the clock was set forward by as much"
    return f"{cause}: the deadlines of checks that were on time move on by as much", seconds


def _end_credit(transaction: Transaction) -> bool:
    """All have been given it. Whether there is a next one, which now takes its place."""
    transaction.execute("DELETE FROM monitor WHERE name LIKE 'credit_%'")
    sql = "UPDATE monitor SET name = substr(name, length('next_') + 1) WHERE name LIKE ?"
    prefix = "next_"
    while transaction.execute(sql, (f"{prefix}credit_%",)).rowcount:
        prefix += "next_"
    return prefix != "next_"
