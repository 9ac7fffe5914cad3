"""The hosts, or the addresses, that alerts are posted to: how many posts run at each, and who waits for room there."""

import sys
from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import Generic, TypeVar

from cardbeat.fair_queue import FairQueue

POSTS_EACH = 4
"""Posts to one host, and to one address, at once; before it has answered the first, one."""
LONG_POSTS_EACH = 2
"""How many of these may be long."""
WOKEN = 32
"""Of those that wait for a place, how many are tried when there is room again: one for each key."""
REMEMBERED = 10_000
"""Of how many names something is remembered at the most."""

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")


class Place(Generic[T]):
    """A host or an address: the posts that run there, and what waits for room."""

    __slots__ = ("_brief", "_has_answered", "_long", "_waiting", "name")

    def __init__(self, name: str, has_answered: bool) -> None:
        self.name = name
        self._has_answered = has_answered
        self._brief = 0
        self._long = 0
        self._waiting: dict[bool, FairQueue[T]] = {}
        """By whether they must be long. A key has one that is tried, at the most."""

    def has_room(self, is_long: bool) -> bool:
        posts = POSTS_EACH if self._has_answered else 1
        return self._brief + self._long < posts and not (is_long and self._long >= LONG_POSTS_EACH)

    def enter(self, is_long: bool) -> None:
        self._long += is_long
        self._brief += not is_long

    def leave(self, is_long: bool) -> None:
        self._long -= is_long
        self._brief -= not is_long

    def answered(self) -> bool:
        """Note an answer; whether it is the first."""
        is_first, self._has_answered = not self._has_answered, True
        return is_first

    def wait(self, key: str, item: T, is_long: bool) -> None:
        if is_long not in self._waiting:
            self._waiting[is_long] = FairQueue(sys.maxsize)
        self._waiting[is_long].put(key, item)

    def woken(self) -> Iterator[tuple[T, bool]]:
        """What is to be tried, as there may be room, and whether it must be long; `tried` is to follow for each."""
        for is_long, waiting in self._waiting.items():
            if waiting.waiting and self.has_room(is_long):
                for _, item in islice(iter(partial(waiting.take, 1), None), WOKEN):
                    yield item, is_long

    def tried(self, key: str, is_long: bool) -> None:
        """One that was woken is in, or waits again."""
        self._waiting[is_long].done(key)

    def is_idle(self) -> bool:
        return not (self._brief or self._long or any(waiting.waiting for waiting in self._waiting.values()))


class Places(Generic[T]):
    """The places that are in use, and the names of those that have answered."""

    def __init__(self) -> None:
        self._used: dict[str, Place[T]] = {}
        self._answered: dict[str, bool] = {}

    def at(self, name: str) -> Place[T]:
        place = self._used.get(name)
        if place is None:
            place = self._used[name] = Place(name, name in self._answered)
        return place

    def used(self, name: str) -> Place[T] | None:
        """The place, if anything runs or waits there."""
        return self._used.get(name)

    def answered(self, place: Place[T]) -> None:
        if place.answered():
            remember(self._answered, place.name, True)

    def forget_idle(self, place: Place[T]) -> None:
        if place.is_idle():
            self._used.pop(place.name, None)


def remember(memory: dict[K, V], name: K, value: V) -> None:
    """Keep what is new as the newest, and no more than `REMEMBERED`."""
    if memory.get(name) != value:
        memory.pop(name, None)
        memory[name] = value
        if len(memory) > REMEMBERED:
            del memory[next(iter(memory))]
