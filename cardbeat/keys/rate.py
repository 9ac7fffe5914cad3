"""Limits of a rate per minute, counted in memory.

Each server counts by itself, from zero after a start.
"""

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping

from cardbeat.clock import Clock

_ROUNDING_SECONDS = 1e-6
"""More than the error of a sum of many fractions such as 60 / 7."""


class RateLimit:
    """At most `per_minute` at once, then one more every 60 / `per_minute` seconds (GCRA).

    For each name it keeps the time at which nothing is taken any more. Example with 30 a minute:
    each take moves that time on by 2 s. After 30 takes at once it is 60 s from now. It may not be
    further away, so the next take waits 2 s.

    Limits are mappings from a name to its number per minute. Any thread may use this.
    """

    def __init__(
        self, monotonic: Clock = time.monotonic, most_names: int = 50_000
    ) -> None:
        """Past `most_names` the name unused for longest is forgotten, and starts from zero."""
        self._monotonic = monotonic
        self._most_names = most_names
        self._lock = threading.Lock()
        # Used under the lock only. The name that took last stands last.
        self._free_at: OrderedDict[str, float] = OrderedDict()

    def take(self, limits: Mapping[str, int]) -> float:
        """Take one of each name, or none. Returns 0, or the seconds until all are available."""
        with self._lock:
            now = self._monotonic()
            free_at = {}
            for name, per_minute in limits.items():
                free_at[name] = (
                    max(now, self._free_at.get(name, now))
                    + 60 / per_minute
                )
            wait_seconds = max(free_at.values(), default=now) - now - 60
            if wait_seconds > _ROUNDING_SECONDS:
                return wait_seconds
            for name in free_at:
                self._free_at.pop(name, None)
            self._free_at.update(free_at)
            while len(self._free_at) > self._most_names:
                self._free_at.popitem(last=False)
            return 0

    def used(self, name: str, per_minute: int) -> int:
        """Return how many of a minute's number are taken now."""
        with self._lock:
            taken_seconds = self._free_at.get(name, 0) - self._monotonic()
        return max(
            0,
            math.ceil(
                (taken_seconds - _ROUNDING_SECONDS) * per_minute / 60
            ),
        )
