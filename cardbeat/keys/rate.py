"""Limits of a rate per minute, counted in memory: one allows bursts, one holds in every 60 seconds.

Each server counts by itself, from zero after a start.
"""

import threading
import time
from array import array
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Mapping
from itertools import islice

MAX_NAMES = 50_000
"""Names kept in memory. Past it, the name unused for longest is forgotten, and starts again from zero."""
FORGOTTEN_AT_ONCE = 8
_NONE = array("d")


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
    """For each name at most so many in any 60 seconds (a sliding window).

    It keeps the time of each take in the last minute, 8 bytes for each of its names: use it for low rates only. Any
    thread may use it.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._lock = threading.Lock()
        # Read and written under the lock only. The name that took last is at the end, and no name is without a time.
        self._taken: OrderedDict[str, array[float]] = OrderedDict()

    def wait_seconds(self, per_minute: Mapping[str, int]) -> float:
        """0 if one is available of each of these names; else the seconds until it is. Takes none."""
        with self._lock:
            return self._wait_seconds(per_minute, self._monotonic())

    def take(self, per_minute: Mapping[str, int]) -> float:
        """Take one of each of these names, or none. Returns 0, or the seconds until all are available."""
        with self._lock:
            now = self._monotonic()
            if wait := self._wait_seconds(per_minute, now):
                return wait
            for name in per_minute:
                self._taken.setdefault(name, array("d")).append(now)
                self._taken.move_to_end(name)
                if len(self._taken) > MAX_NAMES:
                    self._taken.popitem(last=False)
            return 0

    def _wait_seconds(self, per_minute: Mapping[str, int], now: float) -> float:
        """As `wait_seconds`. Forgets what is a minute old, of these names and of some others."""
        for name in (*islice(self._taken, FORGOTTEN_AT_ONCE), *per_minute):
            times = self._taken.get(name, _NONE)
            if times and times[-1] <= now - 60:
                del self._taken[name]
            else:
                del times[: bisect_right(times, now - 60)]
        taken = ((self._taken.get(name, _NONE), most) for name, most in per_minute.items())
        return max((times[0] + 60 - now for times, most in taken if len(times) >= most), default=0)
