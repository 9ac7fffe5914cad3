"""A queue of items by client, served round robin."""

from collections import Counter, OrderedDict, deque
from math import inf
from typing import Generic, TypeVar

T = TypeVar("T")


class FairQueue(Generic[T]):
    """Items wait by client, and one of each client is taken in turn.

    Example: client a puts a1, a2, a3, and then client b puts b1. They are taken in the order
    a1, b1, a2, a3: b waits for one item of a, however many a has put. So it is among the items of
    one client that have different keys.

    With a limit `running_each` of 2, a third item of a client is not taken until `done` was called
    for one of the first two. Others go first.

    Not thread-safe: the owner holds a lock.
    """

    def __init__(self, running_each: float = inf) -> None:
        self._running_each = running_each
        self._waiting: OrderedDict[str, dict[str, deque[T]]] = OrderedDict()
        """By client, then by key. In both the one that is next stands first."""
        self._running = Counter[str]()
        self.count = 0
        """The number of items that wait."""

    def put(self, client: str, item: T, key: str = "") -> None:
        keys = self._waiting.setdefault(client, {})
        keys.setdefault(key, deque()).append(item)
        self.count += 1

    def take(self) -> tuple[str, T] | None:
        """Remove and return the next item and its client, None if none may run now.

        `done` must follow if there is a limit of running items.
        """
        for client, keys in self._waiting.items():
            if self._running[client] < self._running_each:
                return client, self._take_of(client, keys)
        return None

    def done(self, client: str) -> None:
        """Note that an item of this client has ended."""
        self._running[client] -= 1
        if not self._running[client]:
            del self._running[client]

    def _take_of(self, client: str, keys: dict[str, deque[T]]) -> T:
        key = next(iter(keys))
        items = keys.pop(key)
        item = items.popleft()
        if items:
            keys[key] = items
        self._waiting.move_to_end(client)
        if not keys:
            del self._waiting[client]
        if self._running_each != inf:
            self._running[client] += 1
        self.count -= 1
        return item
