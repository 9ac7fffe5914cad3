"""Limits of a rate per minute, counted in memory: one allows bursts, one holds in every 60 seconds.

Each server counts by itself, from zero after a start.
"""

import threading
import time
from array import array
from bisect import bisect_right
from collections import Counter, OrderedDict, deque
from collections.abc import Callable

MAX_NAMES = 50_000
"""Names kept in memory. Past it, the name unused for longest is forgotten, and starts again from zero."""


class RateLimit:
    """At most `per_minute` at once, then one more every 60 / `per_minute` seconds (GCRA, a leaky bucket).

    The clients of a name share its limit. One client alone may use all of it. When it is used up, a client that took
    less than its fair share in the last minute may still take, until twice the limit is taken.

    For each name it keeps the time at which its burst is whole again, and for each take of the last minute the client,
    of at most `MAX_NAMES` takes. Any thread may use it.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._lock = threading.Lock()
        # Read and written under the lock only.
        self._whole_again_at: OrderedDict[str, float] = OrderedDict()
        self._takes: deque[tuple[float, str, str]] = deque()  # time, name and client of each in the last minute
        self._taken: dict[str, Counter[str]] = {}  # the number of these by name, and by client

    def wait(self, name: str, per_minute: int, client: str = "") -> float:
        """Return the seconds until this client may take one; 0 if it may now."""
        with self._lock:
            return self._wait(name, per_minute, client, self._monotonic())

    def take(self, name: str, per_minute: int, client: str = "") -> float:
        """Take one. Returns 0, or the seconds until one is available."""
        with self._lock:
            now = self._monotonic()
            if wait := self._wait(name, per_minute, client, now):
                return wait
            self._whole_again_at[name] = max(self._whole_again_at.get(name, now), now) + 60 / per_minute
            self._whole_again_at.move_to_end(name)
            if len(self._whole_again_at) > MAX_NAMES:
                self._whole_again_at.popitem(last=False)
            self._takes.append((now, name, client))
            self._taken.setdefault(name, Counter())[client] += 1
            return 0

    def used(self, name: str, per_minute: int) -> int:
        """Return how much of the burst is taken now, at most all of it."""
        with self._lock:
            now = self._monotonic()
            left = max(self._whole_again_at.get(name, now) - now, 0)
        return min(-(-round(left * per_minute * 1000) // 60_000), per_minute)

    def _wait(self, name: str, per_minute: int, client: str, now: float) -> float:
        wait = max(self._whole_again_at.get(name, now) - now, 0) + 60 / per_minute - 60
        if wait <= 1e-9:
            return 0
        self._forget_takes(now)
        clients = self._taken.get(name, Counter[str]())
        share = max(per_minute // len({*clients, client}), 1)
        return 0 if clients[client] < share and wait <= 60 + 1e-9 else wait

    def _forget_takes(self, now: float) -> None:
        while self._takes and (self._takes[0][0] <= now - 60 or len(self._takes) > MAX_NAMES):
            _, name, client = self._takes.popleft()
            self._taken[name][client] -= 1
            if not self._taken[name][client]:
                del self._taken[name][client]
                if not self._taken[name]:
                    del self._taken[name]


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
