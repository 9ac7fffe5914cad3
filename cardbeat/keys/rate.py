"""Limits of a rate per minute, counted in memory: one allows bursts, one holds in every 60 seconds.

Each server counts by itself, from zero after a start.
"""

import threading
import time
from array import array
from bisect import bisect_right
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Mapping
from itertools import islice

MAX_NAMES = 50_000
"""Names kept in memory. Past it, the name unused for longest is forgotten, and starts again from zero."""
FORGOTTEN_AT_ONCE = 8
_NONE = array("d")


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

    def wait_seconds(self, name: str, per_minute: int, client: str = "") -> float:
        """Return the seconds until this client may take one; 0 if it may now."""
        with self._lock:
            return self._wait_seconds(name, per_minute, client, self._monotonic())

    def take(self, name: str, per_minute: int, client: str = "") -> float:
        """Take one. Returns 0, or the seconds until one is available."""
        with self._lock:
            now = self._monotonic()
            if wait := self._wait_seconds(name, per_minute, client, now):
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

    def _wait_seconds(self, name: str, per_minute: int, client: str, now: float) -> float:
        # Also where nobody is refused: else what was taken would be kept for ever.
        self._forget_takes(now)
        wait = max(self._whole_again_at.get(name, now) - now, 0) + 60 / per_minute - 60
        if wait <= 1e-9:
            return 0
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
