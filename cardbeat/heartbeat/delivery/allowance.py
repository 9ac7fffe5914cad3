"""How many posts a check and a key may cause, and an address may get: no stranger may let this server flood another.

Counted in memory, from zero after a start. Beyond a limit a post is given a later time, and waits until then.
"""

from typing import NamedTuple

from cardbeat.clock import Clock
from cardbeat.heartbeat.delivery.places import remember
from cardbeat.heartbeat.outbox.alert import ALERTS_AN_HOUR

HOUR_SECONDS = 3600.0
KEY_POSTS = 240
"""Alerts of a key that are posted at once, and that follow in an hour; or twice the number of its checks, if that is
more. So a failure of all checks of a key and their recovery are told at once. Retries are not counted."""
ADDRESS_POSTS, ADDRESS_POSTS_AN_HOUR = 400, 200
"""Posts to an address at once, and what follows in an hour, retries included: in no hour more than 600. Enough for 100
checks and the first three retries, while their receiver is down."""
OWN_POSTS = 20
"""Posts of each key to an address at once, and in an hour, that are not among those: so no stranger can keep another
key from a receiver that many use. For a key whose own limit is more than `KEY_POSTS` it is that limit: only the
operator grants so many checks."""
REMEMBERED = 50_000
"""Most buckets of a kind. Beyond it, the one that was used longest ago starts again from zero."""


class Turn(NamedTuple):
    """When a post may begin, and whether that time is its own. If not, it must ask again then."""

    wait_seconds: float
    is_own: bool


class Buckets:
    """A bucket of posts for each name: what is taken from it comes back at a rate an hour."""

    def __init__(self) -> None:
        self._taken: dict[str, tuple[float, float]] = {}
        """How many posts were taken and had not come back at a time, and the time."""

    def wait_seconds(self, name: str, size: int, an_hour: int, now: float) -> float:
        """Seconds until a bucket of this size has room for one more post."""
        return max(0.0, self._taken_now(name, an_hour, now) + 1 - size) * HOUR_SECONDS / an_hour

    def take(self, name: str, an_hour: int, now: float) -> None:
        """Take one post, also if there is no room: then it is one that begins later."""
        taken = self._taken_now(name, an_hour, now) + 1
        self._taken.pop(name, None)
        self._taken[name] = taken, now
        if len(self._taken) > REMEMBERED:
            del self._taken[next(iter(self._taken))]

    def _taken_now(self, name: str, an_hour: int, now: float) -> float:
        taken, at = self._taken.get(name, (0.0, now))
        return max(0.0, taken - (now - at) * an_hour / HOUR_SECONDS)


class Allowance:
    """The posts that keys and addresses have had. `elapsed` is a clock that only goes forward.

    Not safe for threads: the owner holds a lock.
    """

    def __init__(self, elapsed: Clock) -> None:
        self._elapsed = elapsed
        self._keys = Buckets()
        self._checks = Buckets()
        self._addresses = Buckets()
        self._own = Buckets()
        """By address and key."""
        self._limits: dict[str, int] = {}
        """Of keys that may cause more than `KEY_POSTS`."""

    def key_has_room(self, key: str) -> bool:
        """Whether a new alert of this key may be posted now, as far as the number of its checks is known."""
        limit = self._limit(key)
        return self._keys.wait_seconds(key, limit, limit, self._elapsed()) == 0

    def of_check(self, check_seq: int) -> float:
        """Seconds until a new alert of this check's outages may be posted; the alert is counted then."""
        name, now = str(check_seq), self._elapsed()
        wait_seconds = self._checks.wait_seconds(name, ALERTS_AN_HOUR, ALERTS_AN_HOUR, now)
        self._checks.take(name, ALERTS_AN_HOUR, now)
        return wait_seconds

    def of_key(self, key: str, checks: int = 0) -> Turn:
        """The turn of a new alert of this key, which has at least so many checks."""
        if 2 * checks > self._limit(key):
            remember(self._limits, key, 2 * checks)
        now, limit = self._elapsed(), self._limit(key)
        wait_seconds = self._keys.wait_seconds(key, limit, limit, now)
        if wait_seconds > HOUR_SECONDS:
            return Turn(HOUR_SECONDS, is_own=False)
        self._keys.take(key, limit, now)
        return Turn(wait_seconds, is_own=True)

    def has_room(self, key: str, address: str) -> bool:
        """Whether a post for this key may go to this address now."""
        return min(self._waits(key, address)) == 0

    def of_address(self, key: str, address: str) -> Turn:
        """The turn of a post for this key to this address."""
        now, (own, shared) = self._elapsed(), self._waits(key, address)
        if min(own, shared) > HOUR_SECONDS:
            return Turn(HOUR_SECONDS, is_own=False)
        if own <= shared:
            self._own.take(f"{address} {key}", self._own_posts(key), now)
        else:
            self._addresses.take(address, ADDRESS_POSTS_AN_HOUR, now)
        return Turn(min(own, shared), is_own=True)

    def _waits(self, key: str, address: str) -> tuple[float, float]:
        """Seconds until there is room among the key's own posts to this address, and among all others."""
        now, own_posts = self._elapsed(), self._own_posts(key)
        own = self._own.wait_seconds(f"{address} {key}", own_posts, own_posts, now)
        return own, self._addresses.wait_seconds(address, ADDRESS_POSTS, ADDRESS_POSTS_AN_HOUR, now)

    def _limit(self, key: str) -> int:
        return self._limits.get(key, KEY_POSTS)

    def _own_posts(self, key: str) -> int:
        return self._limits.get(key, OWN_POSTS)
