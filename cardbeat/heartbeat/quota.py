"""Limits of test alerts. They are low because a stranger with a free key chooses the receiver."""

import time
from math import ceil

from cardbeat.clock import Clock
from cardbeat.config import TESTS_AN_HOUR
from cardbeat.database import Transaction
from cardbeat.errors import TooMany
from cardbeat.heartbeat.alerts.limits import HourlyLimit
from cardbeat.heartbeat.check import Check

WAITING_TESTS = 5
"""Test alerts of one check that may wait."""
SHORTEST_RETRY_SECONDS = 10
LONGEST_RETRY_SECONDS = 3600
"""Bounds of `Retry-After` while tests wait: the longest attempt, and time to repair a receiver."""


class Quota:
    """Counts test alerts. Each server counts those of an hour, from zero after a start."""

    def __init__(self, monotonic: Clock = time.monotonic) -> None:
        self._hourly = HourlyLimit(monotonic)

    def take(self, transaction: Transaction, check: Check, now: int) -> None:
        """Count a test alert of this check. Raises `TooMany` above a limit.

        Call it in the transaction that stores the alert, with the check's row locked.
        """
        # Only test alerts have no outage.
        waiting = transaction.execute(
            "SELECT next_attempt_at FROM alerts"
            " WHERE check_id = ? AND outage IS NULL AND state = 'pending' ORDER BY seq",
            (check.id,),
        ).fetchall()
        if len(waiting) >= WAITING_TESTS:
            seconds = (waiting[0]["next_attempt_at"] or 0) - now
            seconds = min(max(seconds, SHORTEST_RETRY_SECONDS), LONGEST_RETRY_SECONDS)
            raise TooMany(
                f"{WAITING_TESTS} test alerts of this check wait for its receiver already; try"
                f" again in {seconds} s.",
                seconds,
            )
        wait_seconds = self._hourly.take(check.api_key_id, TESTS_AN_HOUR)
        if wait_seconds:
            raise TooMany(
                f"This key has sent {TESTS_AN_HOUR} test alerts within an hour, its limit; try"
                f" again in {ceil(wait_seconds)} s.",
                wait_seconds,
            )

    def used(self, key_id: str) -> int:
        """The number of test alerts of a key that count now."""
        return self._hourly.taken(key_id)
