"""A fair queue: items wait by name, and names are served round robin, weighed by the cost of their items."""

import heapq
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from math import inf
from typing import Generic, TypeVar

T = TypeVar("T")

OUTDATED = 1000
"""Entries that do not count which the heap may hold, in addition to twice the number of names."""


@dataclass(slots=True)
class _Account:
    """A payer's part of the virtual time of its names' next turns, and the number of these names."""

    turn_at: float
    names: int = 0


@dataclass(slots=True)
class _Waiting(Generic[T]):
    """The waiting items of one name, the number that run, and who pays for them, with their accounts."""

    payers: dict[tuple[int, str], _Account]
    items: deque[T] = field(default_factory=deque)
    running: int = 0
    entry: tuple[float, int, str] | None = None
    """Its entry in the heap of turns that counts."""

    @property
    def turn_at(self) -> float:
        return sum([account.turn_at for account in self.payers.values()])


class FairQueue(Generic[T]):
    """A queue of items by name. At most `waiting_each` items wait for one name.

    A name is a key, or a client's network while there is no key. Items of one name are served first in, first out.
    Among names this is start-time fair queueing (Goyal, Vin and Cheng, 1996): each name has its next turn at a virtual
    time, which advances by the cost of its items: by `estimate` when one is taken, corrected when it is done. Without
    an estimate, a name whose items all run at once would look as if it had cost nothing. A new name starts at the
    current virtual time, so a name gains nothing by staying away. With equal costs this is round robin. A name without
    items is forgotten.

    A name pays for itself, unless it has several payers, such as a key and a network: its turn is at the sum of their
    times. So a network gains nothing by many keys, and a key nothing by many networks.

    Not thread-safe: the owner holds a lock.
    """

    def __init__(self, waiting_each: int, estimate: float = 0.0) -> None:
        self._waiting_each = waiting_each
        self._estimate = estimate
        self._names: dict[str, _Waiting[T]] = {}
        self._accounts: dict[tuple[int, str], _Account] = {}
        """By the payer's place among those of a name, and the payer."""
        self._turns: list[tuple[float, int, str]] = []
        """A heap. An entry is too early if its name has cost more since; one that is too late does not count."""
        self._entries = count()
        self._now = 0.0
        """The virtual time of the latest turn."""
        self.waiting = 0
        """The number of waiting items, of all names."""

    def put(self, name: str, item: T, payers: Sequence[str] = ()) -> bool:
        """Add an item; False, and nothing is added, if `waiting_each` items wait for this name already.

        A name must always have the same payers.
        """
        queue = self._names.get(name)
        if queue is None:
            queue = self._names[name] = _Waiting(self._accounts_of(payers or (name,)))
        elif len(queue.items) >= self._waiting_each:
            return False
        if not queue.items:
            self._catch_up(queue)
        queue.items.append(item)
        self.waiting += 1
        self._rank(name, queue)
        return True

    def take(self, running_each: float = inf, may_run: Callable[[str], bool] | None = None) -> tuple[str, T] | None:
        """Remove and return the next item and its name; None if no item may run now. `done` must follow.

        Skips names of which `running_each` items run already, and those that `may_run` denies.
        """
        passed_over: list[tuple[str, _Waiting[T]]] = []
        taken = self._first(running_each, may_run, passed_over)
        for name, queue in passed_over:
            self._rank(name, queue)
        return taken

    def _first(
        self,
        running_each: float,
        may_run: Callable[[str], bool] | None,
        passed_over: list[tuple[str, _Waiting[T]]],
    ) -> tuple[str, T] | None:
        while self._turns:
            entry = heapq.heappop(self._turns)
            turn_at, _, name = entry
            queue = self._names.get(name)
            if queue is None or queue.entry is not entry:
                continue
            queue.entry = None
            if turn_at < queue.turn_at:
                self._rank(name, queue)
                continue
            if queue.running >= running_each or (may_run and queue.items and not may_run(name)):
                passed_over.append((name, queue))
                continue
            self._now = max(self._now, queue.turn_at)
            if queue.items:
                queue.running += 1
                for account in queue.payers.values():
                    account.turn_at += self._estimate
                self.waiting -= 1
                item = queue.items.popleft()
                self._rank(name, queue)
                return name, item
            if not queue.running:
                self._forget(name)
        return None

    def done(self, name: str, cost: float = 1.0) -> None:
        """Report that a taken item is finished, and its cost; every call must use the same unit, such as seconds."""
        queue = self._names[name]
        queue.running -= 1
        for account in queue.payers.values():
            account.turn_at += cost - self._estimate
        self._rank(name, queue)

    def _accounts_of(self, payers: Sequence[str]) -> dict[tuple[int, str], _Account]:
        start = self._now / len(payers)
        accounts = {payer: self._accounts.setdefault(payer, _Account(start)) for payer in enumerate(payers)}
        for account in accounts.values():
            account.names += 1
        return accounts

    def _catch_up(self, queue: _Waiting[T]) -> None:
        """Let each payer have at least its part of the current time: none gains by having stayed away.

        The parts are equal. If each payer's were the most that one in its place has cost, pairs of one who cost much
        and one who cost little would put new names behind their own next turns.
        """
        least = self._now / len(queue.payers)
        for account in queue.payers.values():
            account.turn_at = max(account.turn_at, least)

    def _forget(self, name: str) -> None:
        for payer, account in self._names.pop(name).payers.items():
            account.names -= 1
            if not account.names:
                del self._accounts[payer]

    def _rank(self, name: str, queue: _Waiting[T]) -> None:
        """Add the name's next turn to the heap, behind equal times, unless the heap has one that is no later."""
        turn_at = queue.turn_at
        if queue.entry is None or queue.entry[0] > turn_at:
            queue.entry = (turn_at, next(self._entries), name)
            heapq.heappush(self._turns, queue.entry)
            if len(self._turns) > 2 * len(self._names) + OUTDATED:
                self._turns = [queue.entry for queue in self._names.values() if queue.entry is not None]
                heapq.heapify(self._turns)
