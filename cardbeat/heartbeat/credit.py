"""Credit for outages of the monitor itself: pings lost while it was down are not the jobs' fault.

Every finished sweep notes the time by the wall clock and by the monotonic clock, and so does an orderly stop. Before
the next sweep, what has passed on each since then tells whether the monitor was down or asleep, or the wall clock was
set. If so, the deadlines of all checks that were on time move by as much.
"""

import logging
import sqlite3
import threading
from typing import NamedTuple

from cardbeat import monitor
from cardbeat.clock import Clock
from cardbeat.database import Database

log = logging.getLogger(__name__)

CREDIT_BATCH = 1000
"""How many checks one write job moves: bounds how long a ping waits behind it."""
DRIFT_SECONDS = 2
"""Up to here the clocks differ by rounding and by the usual corrections of time servers."""


def lost_seconds(gap_seconds: int, listened_seconds: int | None, sweep_seconds: float) -> int:
    """By how many seconds the deadlines must move; negative if the wall clock was set back.

    Since the last finished sweep or orderly stop `gap_seconds` passed on the wall clock, and `listened_seconds` on the
    monotonic one, which is None where it can't be known, as after a start. An outage is more than two sweeps.
    """
    outage_seconds = max(2 * sweep_seconds, DRIFT_SECONDS)
    if listened_seconds is None or listened_seconds > outage_seconds:
        return gap_seconds if abs(gap_seconds) > outage_seconds else 0
    jump_seconds = gap_seconds - listened_seconds
    return jump_seconds if abs(jump_seconds) > DRIFT_SECONDS else 0


class Moment(NamedTuple):
    """Both clocks, read together, in whole seconds."""

    wall: int
    monotonic: int


class Credit:
    """Credits each outage and each jump of the clock once, whatever crashes and however many processes sweep.

    A credit is begun in one transaction and then given in batches, each noted with its progress: the rows of `monitor`
    are the only state that counts, and only write jobs change them.
    """

    def __init__(self, database: Database, clock: Clock, monotonic: Clock, sweep_seconds: float) -> None:
        self._database = database
        self._clock = clock
        self._monotonic = monotonic
        self._sweep_seconds = sweep_seconds
        # Written by the thread that sweeps, read by the database's writer: it turns True once and stays so.
        self.monotonic_is_known = False
        """Whether the noted monotonic time is of this boot of the machine: sure from the first finished sweep on."""

    def moment(self) -> Moment:
        return Moment(int(self._clock()), int(self._monotonic()))

    def jumped_since(self, moment: Moment) -> bool:
        """Whether the wall clock was set since then, so that deadlines can't be compared with that moment."""
        now = self.moment()
        return abs(now.wall - moment.wall - (now.monotonic - moment.monotonic)) > DRIFT_SECONDS

    def note_sweep(self, connection: sqlite3.Connection, moment: Moment) -> None:
        """Note in this transaction that a sweep as of `moment` finishes: a later outage or jump counts from there."""
        monitor.note(connection, "last_sweep_at", moment.wall)
        monitor.note(connection, "last_sweep_monotonic", moment.monotonic)

    def note_stop(self, connection: sqlite3.Connection, moment: Moment) -> None:
        """Note in this transaction that the monitor ran until then, unless a credit is due that would be lost by it."""
        if not self.monotonic_is_known:
            return
        if not lost_seconds(*self._passed(monitor.values(connection), moment), self._sweep_seconds):
            self.note_sweep(connection, moment)

    def give_due(self, stopping: threading.Event) -> Moment:
        """Finish a credit that a crash or a stop cut short, then give the one due now, if any; the moment of that.

        To be called before each sweep. When `stopping` is set, credits stay unfinished, and no sweep may follow.
        """
        self._finish(stopping)
        moment = self.moment()
        if not stopping.is_set() and self._database.write(lambda connection: self._begin(connection, moment)):
            self._finish(stopping)
        return moment

    def _begin(self, connection: sqlite3.Connection, moment: Moment) -> bool:
        noted = monitor.values(connection)
        if "last_sweep_at" not in noted:
            return False
        gap, listened = self._passed(noted, moment)
        seconds = lost_seconds(gap, listened, self._sweep_seconds)
        if not seconds:
            return False
        monitor.note(connection, "credit_seconds", seconds)
        monitor.note(connection, "credit_before", moment.wall if seconds > 0 else moment.wall - (listened or 0) - 1)
        monitor.note(connection, "credit_after_seq", 0)
        self.note_sweep(connection, moment)
        log.warning(
            "nobody listened for %d s, or the clock was set by as much: the checks on time are credited", seconds
        )
        return True

    def _passed(self, noted: dict[str, int], moment: Moment) -> tuple[int, int | None]:
        """The seconds since the last finished sweep or orderly stop, by each clock, as `lost_seconds` takes them."""
        listened = moment.monotonic - noted["last_sweep_monotonic"] if self.monotonic_is_known else None
        return moment.wall - noted["last_sweep_at"], listened

    def _finish(self, stopping: threading.Event) -> None:
        while not stopping.is_set() and self._database.write(self._step):
            pass

    def _step(self, connection: sqlite3.Connection) -> bool:
        """Give the credit to the next batch, and note that in the same transaction. False when all have it.

        Checks pinged or created since the outage are left alone: their `clock_from` is from `credit_before` to now.
        """
        noted = monitor.values(connection)
        if "credit_seconds" not in noted:
            return False
        (last_seq,) = connection.execute(
            "SELECT max(seq) FROM (SELECT seq FROM checks WHERE seq > ? ORDER BY seq LIMIT ?)",
            (noted["credit_after_seq"], CREDIT_BATCH),
        ).fetchone()
        if last_seq is None:
            connection.execute("DELETE FROM monitor WHERE name LIKE 'credit_%'")
            return False
        connection.execute(
            "UPDATE checks SET clock_from = min(clock_from + :seconds, :now) "
            "WHERE seq > :after_seq AND seq <= :last_seq AND status = 'on_time' "
            "AND (clock_from < :before OR clock_from > :now)",
            {
                "seconds": noted["credit_seconds"],
                "before": noted["credit_before"],
                "after_seq": noted["credit_after_seq"],
                "last_seq": last_seq,
                "now": int(self._clock()),
            },
        )
        monitor.note(connection, "credit_after_seq", last_seq)
        return True
