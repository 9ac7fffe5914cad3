"""A fair queue: what waits is queued by name, and the names are served in turns, weighed by what theirs has cost."""

import heapq
from collections import deque
from dataclasses import dataclass, field
from itertools import count
from math import inf
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(slots=True)
class _Name(Generic[T]):
    """What waits and runs for one name, and the virtual time at which it has its next turn."""

    turn_at: float
    items: deque[T] = field(default_factory=deque)
    running: int = 0
    is_ranked: bool = False
    """Whether it has an entry in the heap of turns."""


class FairQueue(Generic[T]):
    """At most `waiting_each` items wait for a name.

    A name is whoever is to be treated fairly: a key, or a client where there is no key yet. Within a name the first
    that came is the first to go. Among names this is start-time fair queueing (Goyal, Vin and Cheng, 1996): each has
    its next turn at a virtual time, which moves on by the cost of what ran for it, and whoever is new begins at that of
    the newest turn. So a name that was served cheaply goes before one that cost much, and nobody gains by having been
    away. With the same cost for everything the names go round in circles. Once nobody waits, all are even again, so
    nothing is kept of names that have gone.

    Not safe for threads: its owner holds a lock.
    """

    def __init__(self, waiting_each: int) -> None:
        self._waiting_each = waiting_each
        self._names: dict[str, _Name[T]] = {}
        self._turns: list[tuple[float, int, str]] = []
        """A heap of the names, at most one entry each. One may be too early: then the name has cost more since."""
        self._entries = count()
        self._now = 0.0
        """The virtual time of the newest turn."""
        self.waiting = 0
        """How many items wait."""

    def put(self, name: str, item: T) -> bool:
        """Let an item wait for its turn; False, and nothing is done, where too many wait for this name already."""
        if self.is_full(name):
            return False
        queue = self._names.get(name)
        if queue is None:
            queue = self._names[name] = _Name(self._now)
        queue.items.append(item)
        self.waiting += 1
        self._rank(name, queue)
        return True

    def is_full(self, name: str) -> bool:
        """Whether `put` would do nothing for this name."""
        queue = self._names.get(name)
        return queue is not None and len(queue.items) >= self._waiting_each

    def take(self, running_each: float = inf) -> tuple[str, T] | None:
        """The item whose turn it is, with its name, or None if none may run now; `done` must follow for it.

        Names of which `running_each` run already are passed over.
        """
        if not self._turns:
            return None
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
        """An item that was taken is finished and has cost this much, in any unit as long as it is always the same."""
        queue = self._names[name]
        queue.running -= 1
        queue.turn_at = max(queue.turn_at + cost, self._now)
        self._rank(name, queue)

    def _rank(self, name: str, queue: _Name[T]) -> None:
        """Give a name its place among the turns, behind those of the same time, unless it has one."""
        if not queue.is_ranked:
            heapq.heappush(self._turns, (queue.turn_at, next(self._entries), name))
            queue.is_ranked = True
