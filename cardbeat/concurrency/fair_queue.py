"""A fair queue: items wait by name, and names are served round robin, weighed by the cost of their items."""

import heapq
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from math import inf
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

T = TypeVar("T")

OUTDATED = 1000
"""Entries that do not count which the heap may hold, in addition to twice the number of names."""


@dataclass(slots=True, weakref_slot=True, eq=False)
class _Account:
    """What a payer's items have cost, and the dearest of them; the number of its names that wait or run."""

    cost: float = 0.0
    new_ahead: float = -inf
    """A new name starts so far ahead of `cost`, or later."""
    dearest: float = 0.0
    busy: int = 0


@dataclass(slots=True)
class _Waiting(Generic[T]):
    """The waiting items of one name, the number that run, what they have cost in all, and the accounts of who pays."""

    payers: list[_Account]
    items: deque[T] = field(default_factory=deque)
    running: int = 0
    entry: tuple[float, int, str] | None = None
    """Its entry in the heap of turns that counts."""
    own_turn: float = 0.0
    """When it began to wait, and what its own items have cost since."""
    paid_before: list[tuple[_Account, float]] = field(default_factory=list)
    """What each payer's items had cost at that time."""
    spent: float = 0.0

    @property
    def turn_at(self) -> float:
        return self.own_turn + max([account.cost - before for account, before in self.paid_before])

    def begin(self, at: float) -> None:
        self.own_turn = at
        self.paid_before = [(account, account.cost) for account in self.payers]

    def pay(self, cost: float) -> None:
        self.own_turn += cost
        for account in self.payers:
            account.cost += cost


class FairQueue(Generic[T]):
    """A queue of items by name. At most `waiting_each` items wait for one name.

    A name is a key, or a client's network while there is no key. Items of one name are served first in, first out.
    Among names this is start-time fair queueing (Goyal, Vin and Cheng, 1996): each name has its next turn at a virtual
    time, which advances by the cost of its items: by `estimate` when one is taken, corrected when it is done. Without
    an estimate, a name whose items all run at once would look as if it had cost nothing. A name that begins to wait
    starts at the current virtual time, so it gains nothing by staying away. A name without items is forgotten.

    A name has payers: itself, or for example a key and a network. Its turn advances also by what a payer's items have
    cost since it began to wait, of the payer that cost most: by the sum, a name whose key and network others always
    use would never be next. So many keys of one network, or networks of one key, get at most twice a client's part.

    A new name is next among its payers' names. So that others have turns even if there is always a new one, the start
    of new names, for each payer and for all, moves on by their cost divided by the number of names that wait or run. A
    name is new until it has cost as much as the dearest item: steady ones differ by no more.

    Not thread-safe: the owner holds a lock.
    """

    def __init__(self, waiting_each: int, estimate: float = 0.0) -> None:
        self._waiting_each = waiting_each
        self._estimate = estimate
        self._names: dict[str, _Waiting[T]] = {}
        self._accounts = WeakValueDictionary[tuple[int, str], _Account]()
        """By the payer's place among those of a name, and the payer."""
        self._turns: list[tuple[float, int, str]] = []
        """A heap. An entry is too early if its name has cost more since; one that is too late does not count."""
        self._entries = count()
        self._now = 0.0
        """The virtual time of the latest turn."""
        self._all = _Account()
        self.waiting = 0
        """The number of waiting items, of all names."""

    def put(self, name: str, item: T, payers: Sequence[str] = ()) -> bool:
        """Add an item; False, and nothing is added, if `waiting_each` items wait for this name already.

        A name must always have the same payers.
        """
        queue = self._names.get(name)
        if queue is None:
            queue = self._names[name] = self._new(payers or (name,))
        elif len(queue.items) >= self._waiting_each:
            return False
        elif not queue.items:
            queue.begin(max(queue.turn_at, self._now))
        if not queue.items and not queue.running:
            self._count_busy(queue, 1)
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
        self, running_each: float, may_run: Callable[[str], bool] | None, passed_over: list[tuple[str, _Waiting[T]]]
    ) -> tuple[str, T] | None:
        while self._turns:
            _, _, name = entry = self._turns[0]
            queue = self._names.get(name)
            if queue is not None and queue.entry is entry and entry[0] < (turn_at := queue.turn_at):
                queue.entry = (turn_at, next(self._entries), name)
                heapq.heapreplace(self._turns, queue.entry)
                continue
            heapq.heappop(self._turns)
            if queue is None or queue.entry is not entry:
                continue
            queue.entry = None
            if queue.running >= running_each or (may_run and queue.items and not may_run(name)):
                passed_over.append((name, queue))
                continue
            self._now = max(self._now, turn_at)
            if queue.items:
                queue.running += 1
                queue.pay(self._estimate)
                self.waiting -= 1
                self._rank(name, queue)
                return name, queue.items.popleft()
            if not queue.running:
                del self._names[name]
        return None

    def done(self, name: str, cost: float = 1.0) -> None:
        """Report that a taken item is finished, and its cost; every call must use the same unit, such as seconds."""
        queue = self._names[name]
        queue.pay(cost - self._estimate)
        for account in (*queue.payers, self._all):
            account.dearest = max(account.dearest, cost)
            if queue.spent < account.dearest:
                account.new_ahead += cost / account.busy
        queue.spent += cost
        queue.running -= 1
        if not queue.items and not queue.running:
            self._count_busy(queue, -1)
        self._rank(name, queue)

    def _new(self, payers: Sequence[str]) -> _Waiting[T]:
        queue = _Waiting[T]([self._accounts.setdefault(payer, _Account()) for payer in enumerate(payers)])
        accounts = (*queue.payers, self._all)
        for account in accounts:
            account.new_ahead = max(account.new_ahead, self._now - account.cost)
        queue.begin(max([account.cost + account.new_ahead for account in accounts]))
        return queue

    def _count_busy(self, queue: _Waiting[T], change: int) -> None:
        for account in (*queue.payers, self._all):
            account.busy += change

    def _rank(self, name: str, queue: _Waiting[T]) -> None:
        """Add the name's next turn to the heap, behind equal times, unless the heap has one that is no later."""
        turn_at = queue.turn_at
        if queue.entry is None or queue.entry[0] > turn_at:
            queue.entry = (turn_at, next(self._entries), name)
            heapq.heappush(self._turns, queue.entry)
            if len(self._turns) > 2 * len(self._names) + OUTDATED:
                self._turns = [queue.entry for queue in self._names.values() if queue.entry is not None]
                heapq.heapify(self._turns)
