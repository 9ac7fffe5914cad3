"""A lease on a row of the table `leases`: of one process at a time, of all on any machine that share a database."""

import logging
import secrets
import time
from contextlib import suppress
from math import inf
from typing import TYPE_CHECKING, Final, NamedTuple

from cardbeat.clock import Clock
from cardbeat.errors import LeaseLost, Unavailable

if TYPE_CHECKING:
    from cardbeat.database import Database, Transaction

log = logging.getLogger(__name__)

TERM_SECONDS: Final = 10.0
"""A lease that was not renewed for so long is free."""
HELD_SECONDS: Final = 0.8 * TERM_SECONDS
"""For so long its holder relies on it: the samples of the database's clock differ, and what it begins takes time."""
RENEWAL_SECONDS: Final = 0.2 * TERM_SECONDS
"""From one renewal to the next."""

ASKED_SECONDS: Final = 1.0
"""How often the others ask for it."""

ROUNDING_SECONDS: Final = 0.001
"""More than what is lost of a time where a server gives fewer digits of it than it has; a renewal adds far more."""

NAME: Final = "monitor"


class Term(NamedTuple):
    """From the last renewal on, by the monotonic clock."""

    epoch: int
    renewed_at: float


NONE: Final = Term(0, -inf)


class Seen(NamedTuple):
    """Until when another process has the lease, and since when, by the monotonic clock, it has not said more."""

    until: float
    since: float


NOTHING: Final = Seen(-inf, -inf)


class RowLease:
    """A `Lease` that is its own `Fence`. One thread takes and releases it."""

    gap_seconds = TERM_SECONDS + ASKED_SECONDS

    def __init__(self, database: "Database", monotonic: Clock = time.monotonic) -> None:
        self._database = database
        self._monotonic = monotonic
        self._holder = secrets.token_hex(16)
        # Written by the thread that takes it, read by any: a single value, whole at any time.
        self._term = NONE
        self._seen = NOTHING

    @property
    def epoch(self) -> int:
        return self._term.epoch

    def take(self) -> bool:
        """As `Lease.take`; the row is written once in `RENEWAL_SECONDS`, and only read while another process has it."""
        began, before = self._monotonic(), self._term
        if began < before.renewed_at + RENEWAL_SECONDS:
            return True
        epoch = self._database.write(self._take) if before.epoch or self._is_free(began) else 0
        self._term = Term(epoch, began) if epoch else NONE
        # What was seen serves for one take: to renew it is no reason to take it from another.
        self._seen = NOTHING if epoch else self._seen
        if before.epoch and not epoch:
            log.warning("another server sends alerts now: this one could not say in time that it goes on")
        return epoch != 0

    def held(self) -> bool:
        term = self._term
        return term.epoch != 0 and self._monotonic() < term.renewed_at + HELD_SECONDS

    def confirm(self, transaction: "Transaction") -> None:
        sql = "UPDATE leases SET until = until WHERE name = ? AND holder = ? AND epoch = ?"
        if not transaction.execute(sql, (NAME, self._holder, self.epoch)).rowcount:
            raise LeaseLost

    def release(self) -> None:
        term, self._term = self._term, NONE
        sql = "UPDATE leases SET until = 0 WHERE name = ? AND holder = ? AND epoch = ?"
        # Without waiting: where the database can't be written, the lease ends by itself.
        with suppress(Unavailable):
            self._database.write_later(
                lambda transaction: transaction.execute(sql, (NAME, self._holder, term.epoch)).rowcount
            )

    def _is_free(self, now: float) -> bool:
        """As the database's clock has it or, as that may be set back, when nothing was said for a term."""
        with self._database.read() as connection:
            row = connection.execute("SELECT holder, until FROM leases WHERE name = ?", (NAME,)).fetchone()
        if row is None or row["holder"] == self._holder:
            return True
        if row["until"] != self._seen.until:
            self._seen = Seen(row["until"], now)
        return bool(row["until"] <= self._database.clock()) or now >= self._seen.since + TERM_SECONDS

    def _take(self, transaction: "Transaction") -> int:
        """The epoch in which this process has it now; 0 where another one has, or has said more than was seen."""
        row = transaction.execute(
            "INSERT INTO leases (name, holder, epoch, until) VALUES (:name, :holder, 1, :until)"
            " ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until = excluded.until,"
            " epoch = CASE WHEN leases.holder = excluded.holder THEN leases.epoch ELSE leases.epoch + 1 END"
            " WHERE leases.holder = excluded.holder OR leases.until BETWEEN :from AND :to RETURNING epoch",
            {
                "name": NAME,
                "holder": self._holder,
                "until": self._database.clock() + TERM_SECONDS,
                "from": self._seen.until - ROUNDING_SECONDS,
                "to": self._seen.until + ROUNDING_SECONDS,
            },
        ).fetchone()
        return int(row["epoch"]) if row else 0
