"""Rates per minute: with a burst of as many, or never more in any minute."""

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable

MAX_NAMES = 50_000
"""Bounds the memory: past it, whoever was seen longest ago starts afresh."""


class RateLimit:
    """Counts what each name takes, as one instant a name: when its burst will be whole again (GCRA)."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._whole_again_at: OrderedDict[str, float] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, name: str, per_minute: int) -> float:
        """Take one: 0 if there was one left, else the seconds until there is."""
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
        """How many of the burst are taken now."""
        with self._lock:
            now = self._monotonic()
            left = max(self._whole_again_at.get(name, now) - now, 0)
        return -(-round(left * per_minute * 1000) // 60_000)


class StrictRateLimit:
    """Lets no name take more than so many in any minute, at whatever moment that begins.

    It holds each moment of the last minute, so it is for what is taken slowly.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._taken: OrderedDict[str, deque[float]] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, name: str, per_minute: int) -> float:
        """Take one: 0 if there was one left, else the seconds until there is."""
        with self._lock:
            now = self._monotonic()
            while self._taken and next(iter(self._taken.values()))[-1] <= now - 60:
                self._taken.popitem(last=False)
            moments = self._taken.get(name, deque())
            while moments and moments[0] <= now - 60:
                moments.popleft()
            if len(moments) >= per_minute:
                return moments[0] + 60 - now
            moments.append(now)
            self._taken[name] = moments
            self._taken.move_to_end(name)
            return 0
