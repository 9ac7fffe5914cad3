"""Several machines with one database: each has a monotonic clock of its own, and asks for the lease on a row."""

import contextlib
import threading

import pytest

from cardbeat.database.postgresql.lease import Lease
from tests.kit.heart import Heart
from tests.kit.support import FakeClock, begun

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
        lease = Lease(database, monotonic)
        return Heart(
            database, self.clock, monotonic=monotonic, fence=lease
        )

    def pass_time(self, seconds):
        self.clock.advance(seconds)
        for heart in self:
            heart.monotonic.advance(seconds)


def flush(heart):
    """Wait until what was to be written is."""
    heart.database.write(lambda _: None)


@contextlib.contextmanager
def held_at_commit(node, deed):
    """Begin a deed of a node, whose first transaction is committed at the end of the block."""
    made, release = threading.Event(), threading.Event()

    def holding(method):
        def call(work, *rest, **options):
            def held(*given):
                result = work(*given)
                made.set()
                release.wait(60)
                return result

            return method(held, *rest, **options)

        return call

    with pytest.MonkeyPatch.context() as patch:
        for name in ("write", "write_ping"):
            patch.setattr(
                node.database, name, holding(getattr(node.database, name))
            )
        done = begun(deed)
        assert made.wait(60)
    try:
        yield
    finally:
        release.set()
    done.result(60)


def waits_for_a_lock(node):
    with node.database.read() as connection:
        return connection.execute(
            "SELECT count(*) FROM pg_locks WHERE NOT granted"
        ).fetchone()[0]
