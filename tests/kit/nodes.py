"""Several machines with one database: each has a monotonic clock of its own, and asks for the lease on a row."""

from cardbeat.database.postgresql.lease import RowLease
from tests.kit.heart import Heart
from tests.kit.support import FakeClock

HOURS_APART = 85_000
"""By how many seconds the monotonic clocks of two machines differ."""


LEASES = "CREATE TABLE IF NOT EXISTS leases (name TEXT PRIMARY KEY, holder TEXT, until REAL)"
"""The table that PostgreSQL has for the lease."""


class Nodes:
    """Two of them; time passes for both at once."""

    def __init__(self, open_again, clock):
        self.clock = clock
        self.first, self.second = (
            self._heart(open_again(), 5000 + place * HOURS_APART)
            for place in range(2)
        )

    def __iter__(self):
        return iter((self.first, self.second))

    def _heart(self, database, booted_seconds):
        database.clock = self.clock
        database.write(lambda it: it.execute(LEASES).rowcount)
        monotonic = FakeClock(booted_seconds)
        lease = RowLease(database, monotonic)
        database.lease = lambda: lease
        return Heart(database, self.clock, monotonic=monotonic, fence=lease)

    def pass_time(self, seconds):
        self.clock.advance(seconds)
        for heart in self:
            heart.monotonic.advance(seconds)


def flush(heart):
    """Wait until what was to be written is."""
    heart.database.write(lambda _: None)
