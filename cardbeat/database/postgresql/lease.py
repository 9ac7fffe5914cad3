"""The lease on a row: one process holds it, of all that share the database on any machine.

The clock of the database counts, which all machines share. The holder notes every 2 s that it holds
the lease for 10 s from now, and relies on it for 8 s by its own monotonic clock. Example: a node is
killed that has renewed the lease at 12:00:00; another one takes it at 12:00:10.
"""

import logging
import secrets
import time
from contextlib import suppress
from math import inf

from cardbeat.clock import Clock
from cardbeat.database.database import Database, Transaction
from cardbeat.errors import LeaseLost, Unavailable

log = logging.getLogger(__name__)

TERM_SECONDS = 10.0
"""A lease that was not renewed for this long is free."""
HELD_SECONDS = 0.8 * TERM_SECONDS
RENEWAL_SECONDS = 0.2 * TERM_SECONDS

_TAKE = """
    INSERT INTO leases (name, holder, until) VALUES ('monitor', :holder, :until)
    ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until = excluded.until
    WHERE leases.holder = :holder OR leases.until < :now
"""
_LOOK = "SELECT 1 FROM leases WHERE holder <> :holder AND until >= :now"
_CONFIRM = "UPDATE leases SET until = until WHERE holder = ?"
_RELEASE = "UPDATE leases SET until = 0 WHERE holder = ?"


class Lease:
    """Held by one process at a time, of all that have the database open: it sweeps and sends.

    One thread takes and releases it.
    """

    def __init__(
        self, database: Database, monotonic: Clock = time.monotonic
    ) -> None:
        self._database = database
        self._monotonic = monotonic
        self._holder = secrets.token_hex(16)
        # Written by the thread that takes the lease, read by any.
        self._renewed_at = -inf

    def take(self) -> bool:
        """Take the lease if it is free, renew it if this process holds it; whether it does now.

        Call it once a second. Raises `Unavailable` if the database does not tell.
        """
        now = self._monotonic()
        if now < self._renewed_at + RENEWAL_SECONDS:
            return True
        time_now = self._database.clock()
        values = {
            "holder": self._holder,
            "now": time_now,
            "until": time_now + TERM_SECONDS,
        }
        # A node without the lease writes nothing.
        with self._database.read() as connection:
            is_taken = connection.execute(_LOOK, values).fetchone()
        is_ours = not is_taken and self._database.write(
            lambda it: it.execute(_TAKE, values).rowcount == 1
        )
        if is_ours:
            self._renewed_at = now
        elif self._renewed_at != -inf:
            self._renewed_at = -inf
            log.warning(
                "another server sends alerts now: this one did not renew its lease in time"
            )
        return is_ours

    def held(self) -> bool:
        """Whether this process holds the lease, without asking the database."""
        return self._monotonic() < self._renewed_at + HELD_SECONDS

    def confirm(self, transaction: Transaction) -> None:
        """Keep others from taking the lease until the transaction ends.

        Raises `LeaseLost` if another process has it.
        """
        if not transaction.execute(_CONFIRM, (self._holder,)).rowcount:
            raise LeaseLost

    def release(self) -> None:
        """Free the lease for other processes, before this one ends."""
        self._renewed_at = -inf
        # If the database can't be written, the lease ends by itself.
        with suppress(Unavailable):
            self._database.write(
                lambda it: it.execute(_RELEASE, (self._holder,)).rowcount
            )
