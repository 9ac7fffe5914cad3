"""The hosts and the addresses that alerts are posted to: the posts that run at each, and what waits for room there.

Each counts as a whole, and each of its ports for itself: a port that never answers must not hold up the others. Nor may
many of them, so ports that have not answered count together too.
"""

from collections import OrderedDict, deque
from collections.abc import Iterator
from itertools import islice
from operator import itemgetter
from typing import Final, Generic, Protocol, TypeVar

from cardbeat.heartbeat.webhooks.permit import BRIEF_SECONDS

QUICK, NEW, SLOW = range(3)
"""The pace of a receiver, which is a host of a key, at its last post. A receiver that did not answer is new again."""

POSTS_EACH = 4
"""Most posts at once to one host, and to one address; to one of its ports it is one until the port has answered."""
LONG_POSTS_EACH = 3
"""Most of these that may be long: two to ports that have answered, two to others."""
UNANSWERED_EACH = 3
"""Most posts at once to ports of one host or address that have not answered."""
RANKED = 1000
"""Most keys of each pace that are compared for it: with more, each end of a post would take milliseconds."""
MUCH_SECONDS = 120.0
"""Once the posts of a key took so long at a place, half of what all took is forgotten."""
REMEMBERED = 10_000
"""Most names in each memory."""

ANSWERED: Final = "answered"
UNANSWERED: Final = "unanswered"
PARTS = 3
"""The port of a host or an address, all ports that have answered, or have not, and the whole."""


class Ranked(Protocol):
    """What waits, of a key whose tier the operator chose, or which was registered at this time and has this weight."""

    host: str
    is_granted: bool
    weight: float
    registered_at: float


T = TypeVar("T", bound=Ranked)
K = TypeVar("K")
V = TypeVar("V")


class Place(Generic[T]):
    """A host or an address, or some of its ports: the posts that run there, and what waits for room."""

    __slots__ = ("_answered", "_brief", "_long", "_part", "_spent", "_tried", "_used", "_waiting", "name")

    def __init__(self, name: str, part: "Part", used: "Used[T]", answered: "Answered") -> None:
        self.name = name
        self._part = part
        self._used = used
        self._answered = answered
        self._brief = 0
        self._long = 0
        self._waiting: tuple[dict[str, deque[T]], ...] = ({}, {}, {})
        """By pace and key: the keys in the order of their turns, each with its items, also while one is being tried."""
        self._tried: set[tuple[str, int]] = set()
        """The keys of which an item of this pace is being tried."""
        self._spent: dict[str, float] = {}
        """The seconds that the posts of each key took here since the place was idle, halved now and then."""

    def has_room(self, is_long: bool) -> bool:
        posts = UNANSWERED_EACH if self._part == UNANSWERED else POSTS_EACH
        if isinstance(self._part, int) and (self.name, self._part) not in self._answered:
            posts = 1
        long_posts = LONG_POSTS_EACH if self._part is None else LONG_POSTS_EACH - 1
        return self._brief + self._long < posts and not (is_long and self._long >= long_posts)

    def enter(self, is_long: bool) -> None:
        self._used[self.name, self._part] = self
        self._long += is_long
        self._brief += not is_long

    def leave(self, is_long: bool) -> None:
        self._long -= is_long
        self._brief -= not is_long

    def note(self, key: str, seconds: float, answered: bool) -> bool:
        """Note how long a post of a key took here. Whether it is the first of its port that was answered."""
        self._spent[key] = self._spent.get(key, 0.0) + seconds
        if self._spent[key] > MUCH_SECONDS:
            self._spent = {key: spent / 2 for key, spent in self._spent.items()}
        if not (answered and isinstance(self._part, int)):
            return False
        is_first = (self.name, self._part) not in self._answered
        remember(self._answered, (self.name, self._part), True)
        return is_first

    def wait(self, key: str, item: T, pace: int) -> None:
        self._used[self.name, self._part] = self
        self._waiting[pace].setdefault(key, deque()).append(item)

    def taken_out(self, key: str, host: str) -> list[T]:
        """What waits for a host of a key, but what is being tried. It waits no longer."""
        out: list[T] = []
        for pace, waiting in enumerate(self._waiting):
            if found := [item for item in waiting.get(key, ()) if item.host == host]:
                out += found
                waiting[key] = deque(item for item in waiting[key] if item.host != host)
                if not waiting[key] and (key, pace) not in self._tried:
                    del waiting[key]
        return out

    def woken(self) -> Iterator[tuple[T, int]]:
        """Items to try if there is room, each with its pace. `tried` must follow for each, and then another call.

        That of the key whose posts took the least time here for its weight is next: those whose receivers never answer
        took most. Of equal keys it is the oldest, and one whose tier the operator chose does not wait for others. It
        may lack a courier, so of each quicker pace one is tried beside it.
        """
        best: dict[int, tuple[tuple[bool, int, float], str]] = {}
        for pace, waiting in enumerate(self._waiting):
            if waiting and self.has_room(pace == SLOW):
                untried = (key for key in waiting if (key, pace) not in self._tried)
                turns = [(self._turn(waiting[key][0], key), key) for key in islice(untried, RANKED)]
                if turns:
                    best[pace] = min(turns, key=itemgetter(0))
        slowest = min(best, key=lambda pace: best[pace][0], default=QUICK)
        for pace, (_, key) in best.items():
            if pace <= slowest:
                self._tried.add((key, pace))
                yield self._waiting[pace][key].popleft(), pace

    def _turn(self, item: T, key: str) -> tuple[bool, int, float]:
        return not item.is_granted, int(self._spent.get(key, 0.0) / item.weight / BRIEF_SECONDS), item.registered_at

    def tried(self, key: str, pace: int, entered: bool) -> None:
        """End the try of an item. If it has not entered, it waits again, and its key keeps its turn."""
        self._tried.discard((key, pace))
        waiting = self._waiting[pace]
        if (entered or not waiting[key]) and (items := waiting.pop(key)):
            waiting[key] = items

    def forget_if_idle(self) -> None:
        """Drop the place from those in use if nothing runs or waits there."""
        if not (self._brief or self._long or any(self._waiting)):
            self._used.pop((self.name, self._part), None)


Part = int | str | None
"""A port, `ANSWERED` or `UNANSWERED`, or None for the whole."""
Answered = OrderedDict[tuple[str, int], bool]
Used = dict[tuple[str, Part], Place[T]]
"""Places by name and part, while anything runs or waits there."""


class Places(Generic[T]):
    """The hosts, or the addresses, that are in use, and those whose ports have answered."""

    def __init__(self) -> None:
        self._used: Used[T] = {}
        self._answered = Answered()

    def at(self, name: str, port: int) -> list[Place[T]]:
        """The `PARTS` of a host or an address that a post takes room of."""
        parts = port, ANSWERED if (name, port) in self._answered else UNANSWERED, None
        return [self._used.get((name, part)) or Place(name, part, self._used, self._answered) for part in parts]


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
