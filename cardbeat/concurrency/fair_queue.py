"""A fair queue: items wait by name, and names are served round robin, weighed by the cost of their items."""

import heapq
from collections import deque
from dataclasses import dataclass, field
from itertools import count
from math import inf
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(slots=True)
class _Name(Generic[T]):
    """The waiting items of one name, the number that run, and the virtual time of its next turn."""

    turn_at: float
    items: deque[T] = field(default_factory=deque)
    running: int = 0
    is_ranked: bool = False
    """Whether the heap of turns has an entry for it."""


class FairQueue(Generic[T]):
    """A queue of items by name. At most `waiting_each` items wait for one name.

    A name is a key, or a client's network while there is no key. Items of one name are served first in, first out.
    Among names this is start-time fair queueing (Goyal, Vin and Cheng, 1996): each name has its next turn at a virtual
    time, which advances by the cost of its finished items. A new name starts at the current virtual time, so a name
    gains nothing by staying away. With equal costs this is round robin. A name without items is forgotten.

    Not thread-safe: the owner holds a lock.
    """

    def __init__(self, waiting_each: int) -> None:
        self._waiting_each = waiting_each
        self._names: dict[str, _Name[T]] = {}
        self._turns: list[tuple[float, int, str]] = []
        """A heap with at most one entry for each name. An entry is too early if its name has cost more since."""
        self._entries = count()
        self._now = 0.0
        """The virtual time of the latest turn."""
        self.waiting = 0
        """The number of waiting items, of all names."""

    def put(self, name: str, item: T) -> bool:
        """Add an item; False, and nothing is added, if `waiting_each` items wait for this name already."""
        queue = self._names.get(name)
        if queue is None:
            queue = self._names[name] = _Name(self._now)
        elif len(queue.items) >= self._waiting_each:
            return False
        queue.items.append(item)
        self.waiting += 1
        self._rank(name, queue)
        return True

    def take(self, running_each: float = inf) -> tuple[str, T] | None:
        """Remove and return the next item and its name; None if no item may run now. `done` must follow.

        Skips names of which `running_each` items run already.
        """
        passed_over: list[tuple[str, _Name[T]]] = []
        taken = self._first(running_each, passed_over)
        for name, queue in passed_over:
            self._rank(name, queue)
        return taken

    def _first(self, running_each: float, passed_over: list[tuple[str, _Name[T]]]) -> tuple[str, T] | None:
        while self._turns:
            turn_at, _, name = heapq.heappop(self._turns)
            queue = self._names[name]
            queue.is_ranked = False
            if turn_at < queue.turn_at:
                self._rank(name, queue)
                continue
            if queue.running >= running_each:
                passed_over.append((name, queue))
                continue
            self._now = max(self._now, turn_at)
            if queue.items:
                queue.running += 1
                self.waiting -= 1
                item = queue.items.popleft()
                self._rank(name, queue)
                return name, item
            if not queue.running:
                del self._names[name]
        return None

    def done(self, name: str, cost: float = 1.0) -> None:
        """Report that a taken item is finished, and its cost; every call must use the same unit, such as seconds."""
        queue = self._names[name]
        queue.running -= 1
        queue.turn_at = max(queue.turn_at + cost, self._now)
        self._rank(name, queue)

    def _rank(self, name: str, queue: _Name[T]) -> None:
        """Add the name's next turn to the heap, behind equal times, unless the heap has one."""
        if not queue.is_ranked:
            heapq.heappush(self._turns, (queue.turn_at, next(self._entries), name))
            queue.is_ranked = True
