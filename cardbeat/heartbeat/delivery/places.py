"""The hosts and the addresses that alerts are posted to: the posts that run at each, and what waits for room there."""

import sys
from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import Generic, TypeVar

from cardbeat.concurrency.fair_queue import FairQueue

POSTS_EACH = 4
"""Most posts at once to one host, and to one address; it is one until the host or address has answered."""
LONG_POSTS_EACH = 2
"""Most of these that may be long."""
WOKEN = 32
"""Most items that are tried when a place has room again, one of each key."""
REMEMBERED = 10_000
"""Most names in each memory."""

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")


class Place(Generic[T]):
    """A host or an address in use: the posts that run there, and what waits for room."""

    __slots__ = ("_answered", "_brief", "_long", "_used", "_waiting", "name")

    def __init__(self, name: str, used: "dict[str, Place[T]]", answered: dict[str, bool]) -> None:
        self.name = name
        self._used = used
        self._answered = answered
        self._brief = 0
        self._long = 0
        self._waiting: dict[bool, FairQueue[T]] = {}
        """By whether they must be long. Of each key at most one is being tried."""

    def has_room(self, is_long: bool) -> bool:
        posts = POSTS_EACH if self.name in self._answered else 1
        return self._brief + self._long < posts and not (is_long and self._long >= LONG_POSTS_EACH)

    def enter(self, is_long: bool) -> None:
        self._long += is_long
        self._brief += not is_long

    def leave(self, is_long: bool) -> None:
        self._long -= is_long
        self._brief -= not is_long

    def answered(self) -> None:
        """Note that a post was answered."""
        remember(self._answered, self.name, True)

    def wait(self, key: str, item: T, is_long: bool) -> None:
        if is_long not in self._waiting:
            self._waiting[is_long] = FairQueue(sys.maxsize)
        self._waiting[is_long].put(key, item)

    def woken(self) -> Iterator[tuple[T, bool]]:
        """Items to try if there is room, each with whether it must be long. `tried` must follow for each."""
        for is_long, waiting in self._waiting.items():
            if waiting.waiting and self.has_room(is_long):
                for _, item in islice(iter(partial(waiting.take, 1), None), WOKEN):
                    yield item, is_long

    def tried(self, key: str, is_long: bool) -> None:
        """End the try of an item, which has entered or waits again."""
        self._waiting[is_long].done(key)

    def forget_if_idle(self) -> None:
        """Drop the place from those in use if nothing runs or waits there."""
        if not (self._brief or self._long or any(waiting.waiting for waiting in self._waiting.values())):
            self._used.pop(self.name, None)


class Places(Generic[T]):
    """The hosts, or the addresses, that are in use, and the names of those that have answered."""

    def __init__(self) -> None:
        self._used: dict[str, Place[T]] = {}
        self._answered: dict[str, bool] = {}

    def at(self, name: str) -> Place[T]:
        place = self._used.get(name)
        if place is None:
            place = self._used[name] = Place(name, self._used, self._answered)
        return place

    def used(self, name: str) -> Place[T] | None:
        """The place, if anything runs or waits there."""
        return self._used.get(name)


def remember(memory: dict[K, V], name: K, value: V, most: int = REMEMBERED) -> None:
    """Store a value under a name. If there are more than `most` then, drop the oldest."""
    if memory.get(name) != value:
        memory.pop(name, None)
        memory[name] = value
        if len(memory) > most:
            del memory[next(iter(memory))]


class Memory(Generic[K, V]):
    """One value for each key and name. Past `REMEMBERED` values, the key with most of them loses its oldest.

    So strangers with thousands of names push out none of a key that has few.
    """

    def __init__(self) -> None:
        self._values: dict[K, dict[str, V]] = {}
        self._count = 0

    def get(self, key: K, name: str, default: V) -> V:
        return self._values.get(key, {}).get(name, default)

    def put(self, key: K, name: str, value: V) -> None:
        values = self._values.setdefault(key, {})
        self._count += name not in values
        values[name] = value
        if self._count > REMEMBERED:
            key = max(self._values, key=lambda key: len(self._values[key]))
            self.forget(key, next(iter(self._values[key])))

    def forget(self, key: K, name: str) -> None:
        values = self._values.get(key, {})
        if name in values:
            del values[name]
            self._count -= 1
            if not values:
                del self._values[key]
