"""Limits of a rate per minute, counted in memory: one allows bursts, one holds in every 60 seconds.

Each server counts by itself, from zero after a start.
"""

import threading
import time
from array import array
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable

MAX_NAMES = 50_000
"""Names kept in memory. Past it, the name unused for longest is forgotten, and starts again from zero."""


class RateLimit:
    """At most `per_minute` at once, then one more every 60 / `per_minute` seconds (GCRA, a leaky bucket).

    For each name it keeps one number: the time at which its burst is whole again. Any thread may use it.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._lock = threading.Lock()
        # Read and written under the lock only.
        self._whole_again_at: OrderedDict[str, float] = OrderedDict()

    def take(self, name: str, per_minute: int) -> float:
        """Take one. Returns 0, or the seconds until one is available."""
        interval = 60 / per_minute
        with self._lock:
            now = self._monotonic()
            whole_again_at = max(self._whole_again_at.get(name, now), now) + interval
            if (wait := whole_again_at - now - 60) > 1e-9:
                return wait
            self._whole_again_at[name] = whole_again_at
            self._whole_again_at.move_to_end(name)
            if len(self._whole_again_at) > MAX_NAMES:
                self._whole_again_at.popitem(last=False)
            return 0

    def used(self, name: str, per_minute: int) -> int:
        """Return how much of the burst is taken now."""
        with self._lock:
            now = self._monotonic()
            left = max(self._whole_again_at.get(name, now) - now, 0)
        return -(-round(left * per_minute * 1000) // 60_000)


class StrictRateLimit:
    """At most `per_minute` in any 60 seconds (a sliding window).

    For each name it keeps the time of each take in the last minute, 8 bytes each: use it for low rates only. Any
    thread may use it.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._lock = threading.Lock()
        # Read and written under the lock only. The name that took last is at the end.
        self._taken: OrderedDict[str, array[float]] = OrderedDict()

    def take(self, name: str, per_minute: int) -> float:
        """Take one. Returns 0, or the seconds until one is available."""
        with self._lock:
            now = self._monotonic()
            while self._taken and next(iter(self._taken.values()))[-1] <= now - 60:
                self._taken.popitem(last=False)
            times = self._taken.get(name) or array("d")
            del times[: bisect_right(times, now - 60)]
            if len(times) >= per_minute:
                return times[0] + 60 - now
            times.append(now)
            self._taken[name] = times
            self._taken.move_to_end(name)
            if len(self._taken) > MAX_NAMES:
                self._taken.popitem(last=False)
            return 0
