"""Limits of a rate per minute: one that lets as many pass in a burst, and one that holds in every minute."""

import threading
import time
from array import array
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable
from typing import Protocol

from cardbeat.later import Later

MAX_NAMES = 50_000
"""Bounds the memory: past it, the name seen longest ago is forgotten, and may begin again with a whole burst."""


class Limit(Protocol):
    """Of a rate per minute. Any thread may ask."""

    def take_later(self, name: str, per_minute: int, /) -> Later[float]:
        """Take one: 0 if there was one left, else the seconds until there is. Nobody waits for it here."""


class CountedLimit(Limit, Protocol):
    """One that tells how much of it is used."""

    def used(self, name: str, per_minute: int, /) -> int:
        """How many of the burst are taken now."""


class RateLimit:
    """At most `per_minute` at once, then one each time that its share of a minute has passed (GCRA, a leaky bucket).

    For each name it keeps one time: when its burst will be whole again.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._lock = threading.Lock()
        # Any thread may take: read and written under the lock only.
        self._whole_again_at: OrderedDict[str, float] = OrderedDict()

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

    def take_later(self, name: str, per_minute: int) -> Later[float]:
        """As `take`, settled at once."""
        return settled(self.take(name, per_minute))

    def used(self, name: str, per_minute: int) -> int:
        """How many of the burst are taken now."""
        with self._lock:
            now = self._monotonic()
            left = max(self._whole_again_at.get(name, now) - now, 0)
        return used_of_burst(left, per_minute)


class StrictRateLimit:
    """At most `per_minute` in any 60 seconds (a sliding window).

    For each name it keeps the time of every take of the last minute, in 8 bytes each, so it is for low rates. Of more
    than `MAX_NAMES` that took within a minute, the one that took longest ago may begin again.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._lock = threading.Lock()
        # Any thread may take: read and written under the lock only. The name that took last is at the end.
        self._taken: OrderedDict[str, array[float]] = OrderedDict()

    def take(self, name: str, per_minute: int) -> float:
        """Take one: 0 if there was one left, else the seconds until there is."""
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

    def take_later(self, name: str, per_minute: int) -> Later[float]:
        """As `take`, settled at once."""
        return settled(self.take(name, per_minute))


def used_of_burst(seconds_left: float, per_minute: int) -> int:
    """How many are taken of a burst that will be whole again so soon."""
    return -(-round(seconds_left * per_minute * 1000) // 60_000)


def settled(seconds: float) -> Later[float]:
    taken: Later[float] = Later()
    taken.succeed(seconds)
    return taken
