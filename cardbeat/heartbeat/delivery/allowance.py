"""How many posts a check and a key may cause, and an address may get: no stranger may let this server flood another.

Counted in memory, from zero after a start. Beyond a limit a post is given a later time, and waits until then.
"""

import math
from collections import OrderedDict
from typing import NamedTuple

from cardbeat.clock import Clock
from cardbeat.heartbeat.check import REPEAT_SECONDS
from cardbeat.heartbeat.delivery.lanes import CheckQueue
from cardbeat.heartbeat.delivery.places import remember
from cardbeat.heartbeat.outbox.alert import ALERTS_AN_HOUR

HOUR_SECONDS = 3600.0
KEY_POSTS = 240
"""Alerts of a key that are posted at once, and that follow in an hour; or twice the number of its checks, if that is
more. So a failure of all checks of a key and their recovery are told at once. Retries are not counted."""
FADE_SECONDS = 2 * HOUR_SECONDS
"""A post at an address counts less and less: after this time 37 %. So half of each number below follows in an hour."""
ADDRESS_POSTS = 400
"""Posts to an address at once, retries included. Enough for 100 checks and the first three retries, while their
receiver is down."""
OWN_POSTS = 40
"""Posts of each key to an address at once, also if others used up those: so a few strangers can't keep another key from
a receiver that many use."""
MOST_POSTS = 1650
"""Posts to an address at once for any number of keys, with those of the key that asks counted twice: the fewer a key
has had, the sooner it has a turn. Enough for 40 posts of a key after 30 others that took all they could."""
TEST_SHARE = 0.5
"""Share of `MOST_POSTS` at which test alerts must wait: people ask for them, and outages need the room more."""
REMINDER_SHARE = 0.5
"""Share of a key's and of an address's posts at which reminders, and tries before their time, must wait: outages need
the room more."""
REMINDER_SECONDS = float(REPEAT_SECONDS[0])
"""Seconds until a reminder without room may ask again, uncounted. Often the next one has taken its place by then."""
NEW_KEY_SHARE = 0.75
"""Share of `MOST_POSTS` at which a key that was just registered must wait."""
GROWN_SECONDS = 10 * 365 * 24 * HOUR_SECONDS
"""Age at which a key may use all of `MOST_POSTS`. Its share grows with the logarithm of its days: so keys that are
registered for an attack leave room to each key that is older than they are, however long they wait."""
ASKS_AN_HOUR = 240
"""How often the posts of a key that wait for an address may ask for room, together."""
REMEMBERED = 50_000
"""Most buckets of a kind. Beyond it, the one that was used longest ago starts again from zero."""


class Turn(NamedTuple):
    """When a post may begin, and whether that time is its own. If not, it must ask again then."""

    wait_seconds: float
    is_own: bool


class Buckets:
    """A bucket of posts for each name: what is taken from it comes back at a rate an hour."""

    def __init__(self) -> None:
        self._taken = OrderedDict[str, tuple[float, float]]()
        """How many posts were taken and had not come back at a time, and the time."""

    def wait_seconds(self, name: str, size: int, an_hour: int, now: float) -> float:
        """Seconds until a bucket of this size has room for one more post."""
        return max(0.0, self._taken_now(name, an_hour, now) + 1 - size) * HOUR_SECONDS / an_hour

    def take(self, name: str, an_hour: int, now: float) -> None:
        """Take one post, also if there is no room: then it is one that begins later."""
        remember(self._taken, name, (self._taken_now(name, an_hour, now) + 1, now), REMEMBERED)

    def _taken_now(self, name: str, an_hour: int, now: float) -> float:
        taken, at = self._taken.get(name, (0.0, now))
        return max(0.0, taken - (now - at) * an_hour / HOUR_SECONDS)


class Levels:
    """Posts of each name, counted less the longer they are ago: the sum over all keys of an address is its own."""

    def __init__(self) -> None:
        self._levels = OrderedDict[str, tuple[float, float]]()
        """The level at a time, and the time."""

    def level(self, name: str, now: float) -> float:
        level, at = self._levels.get(name, (0.0, now))
        return level * math.exp((at - now) / FADE_SECONDS)

    def add(self, name: str, now: float) -> None:
        remember(self._levels, name, (self.level(name, now) + 1, now), REMEMBERED)


class Allowance:
    """The posts that keys and addresses have had. `elapsed` is a clock that only goes forward.

    Not safe for threads: what asks for an address holds a lock; one thread alone uses what asks for a key or a check.
    """

    def __init__(self, elapsed: Clock) -> None:
        self._elapsed = elapsed
        self._keys = Buckets()
        self._checks = Buckets()
        self._asks = Buckets()
        self._addresses = Levels()
        self._own = Levels()
        """By address and key."""
        self._limits = OrderedDict[str, int]()
        """Of keys that may cause more than `KEY_POSTS`."""
        self.extra_tries = OrderedDict[int, float]()
        """When a check's last try before its time has ended, by the check's `seq`."""
        self.turns = OrderedDict[str, float]()
        """When alerts that were counted may be posted, by `id`: after a move, and in a new dispatcher, they keep their
        turn."""

    def key_has_room(self, key: str, *, is_reminder: bool) -> bool:
        """Whether a new alert of this key may be posted now, as far as the number of its checks is known."""
        limit = self._limit(key)
        size = int(limit * REMINDER_SHARE) if is_reminder else limit
        return self._keys.wait_seconds(key, size, limit, self._elapsed()) == 0

    def of_check(self, queue: CheckQueue) -> float:
        """Seconds until a new alert of this check's outages may be posted; the alert is counted then."""
        # Where the last writes were lost, another key's check may have the same `seq`.
        name, now = f"{queue.key} {queue.check_seq}", self._elapsed()
        wait_seconds = self._checks.wait_seconds(name, ALERTS_AN_HOUR, ALERTS_AN_HOUR, now)
        self._checks.take(name, ALERTS_AN_HOUR, now)
        return wait_seconds

    def of_key(self, key: str, checks: int = 0, *, is_reminder: bool = False) -> Turn:
        """The turn of a new alert of this key, which has at least so many checks."""
        if 2 * checks > self._limit(key):
            remember(self._limits, key, 2 * checks)
        now, limit = self._elapsed(), self._limit(key)
        if is_reminder and not self.key_has_room(key, is_reminder=True):
            return Turn(REMINDER_SECONDS, is_own=False)
        wait_seconds = self._keys.wait_seconds(key, limit, limit, now)
        if wait_seconds > HOUR_SECONDS:
            return Turn(HOUR_SECONDS, is_own=False)
        self._keys.take(key, limit, now)
        return Turn(wait_seconds, is_own=True)

    def address_seconds(self, queue: CheckQueue, address: str) -> float:
        """Seconds until there is room for a post of this queue at this address.

        The operator chose the tier of a granted key, so no other key can use up its room there.
        """
        now = self._elapsed()
        own = self._own.level(f"{address} {queue.key}", now)
        share = REMINDER_SHARE if queue.is_reminder or queue.is_extra else 1
        if queue.is_granted:
            return _fade_seconds(own, share * max(ADDRESS_POSTS, self._limit(queue.key)))
        most = TEST_SHARE if queue.is_test or queue.is_reminder else _share_at(now - queue.registered_at)
        total = self._addresses.level(address, now)
        share_seconds = min(_fade_seconds(total, share * ADDRESS_POSTS), _fade_seconds(own, share * OWN_POSTS))
        return max(share_seconds, _fade_seconds(total + own, most * MOST_POSTS))

    def count_post(self, queue: CheckQueue, address: str) -> None:
        """Count a post of this queue at this address."""
        now = self._elapsed()
        self._own.add(f"{address} {queue.key}", now)
        if not queue.is_granted:
            self._addresses.add(address, now)

    def ask_seconds(self, queue: CheckQueue, address: str) -> float:
        """Seconds until a post that found no room may ask again, at most an hour; the posts of a key take turns."""
        if queue.is_reminder:
            return REMINDER_SECONDS
        name, now = f"{address} {queue.key}", self._elapsed()
        turn_seconds = self._asks.wait_seconds(name, 1, ASKS_AN_HOUR, now)
        if turn_seconds < HOUR_SECONDS:
            self._asks.take(name, ASKS_AN_HOUR, now)
        return min(HOUR_SECONDS, max(turn_seconds, self.address_seconds(queue, address)))

    def _limit(self, key: str) -> int:
        return self._limits.get(key, KEY_POSTS)


def _share_at(age_seconds: float) -> float:
    """The share of `MOST_POSTS` that a key of this age may use."""
    days, most_days = (max(0.0, seconds) / (24 * HOUR_SECONDS) for seconds in (age_seconds, GROWN_SECONDS))
    return NEW_KEY_SHARE + (1 - NEW_KEY_SHARE) * min(1.0, math.log1p(days) / math.log1p(most_days))


def _fade_seconds(level: float, posts: float) -> float:
    """Seconds until a level has faded so far that one more post makes it no more than these posts."""
    # The smallest error of the last wait must not make another one.
    return 0.0 if level + 1 <= posts + 1e-6 else FADE_SECONDS * math.log(level / (posts - 1))
