"""A lease on a row of the table `leases`: one process holds it, of all that share the database on any machine."""

import logging
import secrets
import time
from contextlib import suppress
from math import inf
from typing import TYPE_CHECKING, Final, NamedTuple

from cardbeat.clock import Clock
from cardbeat.errors import LeaseLost, Unavailable

if TYPE_CHECKING:
    from cardbeat.database.protocols import Database, Transaction

log = logging.getLogger(__name__)

TERM_SECONDS: Final = 10.0
"""A lease that was not renewed for this long is free."""
HELD_SECONDS: Final = 0.8 * TERM_SECONDS
"""How long the holder relies on a renewal: the machines' samples of the clock differ, and what it begins takes time."""
RENEWAL_SECONDS: Final = 0.2 * TERM_SECONDS
"""From one renewal to the next."""
ASKED_SECONDS: Final = 1.0
"""How often other processes ask for the lease."""
ROUNDING_SECONDS: Final = 0.001
"""More than a server may round off a time. A renewal adds far more."""

NAME: Final = "monitor"


class Term(NamedTuple):
    """What this process holds: an epoch, 0 for nothing, and when it was last renewed, by the monotonic clock."""

    epoch: int = 0
    renewed_at: float = -inf


class RowLease:
    """A `Lease` that is its own `Fence`. One thread takes and releases it."""

    gap_seconds = TERM_SECONDS + ASKED_SECONDS

    def __init__(self, database: "Database", monotonic: Clock = time.monotonic) -> None:
        self._database = database
        self._monotonic = monotonic
        self._holder = secrets.token_hex(16)
        # Replaced as a whole by the thread that takes the lease, read by any.
        self._term = Term()
        self._seen_until = -inf
        """The `until` that another process wrote."""
        self._free_at = inf
        """When that lease ends, by the monotonic clock: the database's clock may be set before it ends."""

    @property
    def epoch(self) -> int:
        return self._term.epoch

    def take(self) -> bool:
        """As `Lease.take`. Writes the row every `RENEWAL_SECONDS`, and only reads it while another process holds it."""
        began, before = self._monotonic(), self._term
        if began < before.renewed_at + RENEWAL_SECONDS:
            return True
        epoch = self._database.write(self._take) if before.epoch or self._is_free() else 0
        self._term = Term(epoch, began) if epoch else Term()
        if epoch:
            # It allowed this take. A renewal must not take the lease from another process by it.
            self._seen_until = -inf
        elif before.epoch:
            log.warning("another server sends alerts now: this one did not renew its lease in time")
        return epoch != 0

    def held(self) -> bool:
        term = self._term
        return term.epoch != 0 and self._monotonic() < term.renewed_at + HELD_SECONDS

    def confirm(self, transaction: "Transaction") -> None:
        sql = "UPDATE leases SET until = until WHERE name = ? AND holder = ? AND epoch = ?"
        if not transaction.execute(sql, (NAME, self._holder, self.epoch)).rowcount:
            raise LeaseLost

    def release(self) -> None:
        term, self._term = self._term, Term()
        sql = "UPDATE leases SET until = 0 WHERE name = ? AND holder = ? AND epoch = ?"
        # Without waiting: if the database can't be written, the lease ends by itself.
        with suppress(Unavailable):
            self._database.write_later(
                lambda transaction: transaction.execute(sql, (NAME, self._holder, term.epoch)).rowcount
            )

    def _is_free(self) -> bool:
        """Whether the lease was released, or was not renewed for a term since this process has looked at it."""
        with self._database.read() as connection:
            row = connection.execute("SELECT holder, until FROM leases WHERE name = ?", (NAME,)).fetchone()
        if row is None or row["holder"] == self._holder:
            return True
        until, now = row["until"], self._monotonic()
        if until != self._seen_until:
            # At the first look only the clock tells how long ago it was renewed; later the last look tells it too.
            left = until - self._database.clock() if self._seen_until == -inf else TERM_SECONDS - ASKED_SECONDS
            self._seen_until, self._free_at = until, now + min(left, TERM_SECONDS)
        return not until or now >= self._free_at

    def _take(self, transaction: "Transaction") -> int:
        """The epoch in which this process holds it now, 0 if another process holds it or has renewed it since."""
        row = transaction.execute(
            "INSERT INTO leases (name, holder, epoch, until) VALUES (:name, :holder, 1, :until)"
            " ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until = excluded.until,"
            " epoch = CASE WHEN leases.holder = excluded.holder THEN leases.epoch ELSE leases.epoch + 1 END"
            " WHERE leases.holder = excluded.holder OR leases.until BETWEEN :from AND :to RETURNING epoch",
            {
                "name": NAME,
                "holder": self._holder,
                "until": self._database.clock() + TERM_SECONDS,
                "from": self._seen_until - ROUNDING_SECONDS,
                "to": self._seen_until + ROUNDING_SECONDS,
            },
        ).fetchone()
        return int(row["epoch"]) if row else 0
