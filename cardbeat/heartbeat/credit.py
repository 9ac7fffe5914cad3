"""Time in which nobody listened, given back to the checks that were on time (CONTRACT 4).

A sweep notes when it finished, and a stop when it came, by the wall clock and by the monotonic one. Before the next
sweep the two tell whether the monitor was down or asleep, or its wall clock was set: then the clocks of the checks on
time move with it.
"""

import logging
import sqlite3
import threading
from typing import NamedTuple

from cardbeat.clock import Clock
from cardbeat.database import Database

log = logging.getLogger(__name__)

STEP_CHECKS = 1000
"""How many checks one write job moves: bounds how long a ping waits behind it."""
DRIFT_SECONDS = 2
"""Up to here the clocks differ by rounding and by the usual corrections of time servers."""


def lost_seconds(gap_seconds: int, listened_seconds: int | None, sweep_seconds: float) -> int:
    """By how much the clocks of the checks must move, negative for a wall clock that was set back.

    `gap_seconds` passed on the wall clock since the last finished sweep or orderly stop, `listened_seconds` on the
    monotonic one; None if that can't be known, as after a start.
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
    """Credits an outage or a clock's jump once, whatever crashes in between and however many processes sweep."""

    def __init__(self, database: Database, clock: Clock, monotonic: Clock, sweep_seconds: float) -> None:
        self._database = database
        self._clock = clock
        self._monotonic = monotonic
        self._sweep_seconds = sweep_seconds
        self.monotonic_is_known = False
        """Whether the noted monotonic time is of this boot of the machine: so from the first finished sweep on."""

    def moment(self) -> Moment:
        return Moment(int(self._clock()), int(self._monotonic()))

    def jumped_since(self, moment: Moment) -> bool:
        """Whether the wall clock was set since then: nothing may be judged by that moment any more."""
        now = self.moment()
        return abs(now.wall - moment.wall - (now.monotonic - moment.monotonic)) > DRIFT_SECONDS

    def note_sweep(self, connection: sqlite3.Connection, moment: Moment) -> None:
        """Note in this transaction that a sweep judged by `moment` finishes: a later jump counts from there."""
        _put(connection, "last_sweep_at", moment.wall)
        _put(connection, "last_sweep_monotonic", moment.monotonic)

    def note_stop(self, connection: sqlite3.Connection, moment: Moment) -> None:
        """Note in this transaction that somebody listened until then, unless there is something to settle first."""
        if not self.monotonic_is_known:
            return
        if not lost_seconds(*self._passed(_noted(connection), moment), self._sweep_seconds):
            self.note_sweep(connection, moment)

    def settle(self, stopping: threading.Event) -> Moment:
        """Finish a credit that a crash or a stop cut short, then give the one due now, if any; the moment of that.

        To be called before each sweep, which a credit left unfinished by `stopping` must not come to.
        """
        self._finish(stopping)
        moment = self.moment()
        if not stopping.is_set() and self._database.write(lambda connection: self._begin(connection, moment)):
            self._finish(stopping)
        return moment

    def _begin(self, connection: sqlite3.Connection, moment: Moment) -> bool:
        noted = _noted(connection)
        if "last_sweep_at" not in noted:
            return False
        gap, listened = self._passed(noted, moment)
        seconds = lost_seconds(gap, listened, self._sweep_seconds)
        if not seconds:
            return False
        _put(connection, "credit_seconds", seconds)
        _put(connection, "credit_before", moment.wall if seconds > 0 else moment.wall - (listened or 0) - 1)
        _put(connection, "credit_after_seq", 0)
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
        """Move the clocks of the next checks; their progress is in the same transaction. False when all are done.

        Checks pinged or created since are left alone: their clocks stand between `credit_before` and now.
        """
        noted = _noted(connection)
        if "credit_seconds" not in noted:
            return False
        (last_seq,) = connection.execute(
            "SELECT max(seq) FROM (SELECT seq FROM checks WHERE seq > ? ORDER BY seq LIMIT ?)",
            (noted["credit_after_seq"], STEP_CHECKS),
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
        _put(connection, "credit_after_seq", last_seq)
        return True


def _noted(connection: sqlite3.Connection) -> dict[str, int]:
    return dict(connection.execute("SELECT name, value FROM monitor").fetchall())


def _put(connection: sqlite3.Connection, name: str, value: int) -> None:
    connection.execute(
        "INSERT INTO monitor (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        (name, value),
    )
