"""The hosts and the addresses that alerts are posted to: the posts that run at each, and what waits for room there.

Each counts as a whole, and each of its ports for itself: a port that never answers must not hold up the others.
"""

from collections import OrderedDict, deque
from collections.abc import Iterator
from itertools import islice
from typing import Generic, TypeVar

QUICK, NEW, SLOW = range(3)
"""The pace of a receiver, which is a host of a key, at its last post. A receiver that did not answer is new again."""

POSTS_EACH = 4
"""Most posts at once to one host, and to one address; to one of its ports it is one until the port has answered."""
LONG_POSTS_EACH = 2
"""Most of these that may be long."""
WOKEN = 32
"""Most items of each pace that are tried when a place has room again, one of each key."""
REMEMBERED = 10_000
"""Most names in each memory."""

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")


class Place(Generic[T]):
    """A host or an address, or one of its ports: the posts that run there, and what waits for room."""

    __slots__ = ("_answered", "_brief", "_long", "_port", "_tried", "_used", "_waiting", "name")

    def __init__(self, name: str, port: int | None, used: "Used[T]", answered: "Answered") -> None:
        self.name = name
        self._port = port
        """None for the whole."""
        self._used = used
        self._answered = answered
        self._brief = 0
        self._long = 0
        self._waiting: tuple[dict[str, deque[T]], ...] = ({}, {}, {})
        """By pace and key: the keys in the order of their turns, each with its items, also while one is being tried."""
        self._tried: set[tuple[str, int]] = set()
        """The keys of which an item of this pace is being tried."""

    def has_room(self, is_long: bool) -> bool:
        posts = POSTS_EACH if self._port is None or (self.name, self._port) in self._answered else 1
        return self._brief + self._long < posts and not (is_long and self._long >= LONG_POSTS_EACH)

    def enter(self, is_long: bool) -> None:
        self._used[self.name, self._port] = self
        self._long += is_long
        self._brief += not is_long

    def leave(self, is_long: bool) -> None:
        self._long -= is_long
        self._brief -= not is_long

    def answered(self) -> None:
        """Note that a post was answered."""
        if self._port is not None:
            remember(self._answered, (self.name, self._port), True)

    def wait(self, key: str, item: T, pace: int) -> None:
        self._used[self.name, self._port] = self
        self._waiting[pace].setdefault(key, deque()).append(item)

    def woken(self) -> Iterator[tuple[T, int]]:
        """Items to try if there is room, each with its pace. `tried` must follow for each."""
        for pace, waiting in enumerate(self._waiting):
            if waiting and self.has_room(pace == SLOW):
                for key in islice((key for key in waiting if (key, pace) not in self._tried), WOKEN):
                    self._tried.add((key, pace))
                    yield waiting[key].popleft(), pace

    def tried(self, key: str, pace: int, entered: bool) -> None:
        """End the try of an item. If it has not entered, it waits again, and its key keeps its turn."""
        self._tried.discard((key, pace))
        waiting = self._waiting[pace]
        if (entered or not waiting[key]) and (items := waiting.pop(key)):
            waiting[key] = items

    def forget_if_idle(self) -> None:
        """Drop the place from those in use if nothing runs or waits there."""
        if not (self._brief or self._long or any(self._waiting)):
            self._used.pop((self.name, self._port), None)


Answered = OrderedDict[tuple[str, int], bool]
Used = dict[tuple[str, int | None], Place[T]]
"""Places by name and port, while anything runs or waits there."""


class Places(Generic[T]):
    """The hosts, or the addresses, that are in use, and those whose ports have answered."""

    def __init__(self) -> None:
        self._used: Used[T] = {}
        self._answered = Answered()

    def at(self, name: str, port: int) -> list[Place[T]]:
        """The port of a host or an address, and then the whole."""
        return [self._used.get((name, part)) or Place(name, part, self._used, self._answered) for part in (port, None)]


def remember(memory: OrderedDict[K, V], name: K, value: V, most: int = REMEMBERED) -> None:
    """Store a value under a name. If there are more than `most` then, drop the one that was stored longest ago."""
    memory[name] = value
    memory.move_to_end(name)
    if len(memory) > most:
        # In a plain dict this would look at all the places of those that were dropped before.
        memory.popitem(last=False)


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
