"""Items that wait for their turn: one of each network, again and again. Networks that have just come go first."""

from collections import OrderedDict
from typing import Final, Generic, TypeVar

T = TypeVar("T")

NEW_IN_A_ROW: Final = 8
"""Most networks that go first before one of the others has its turn."""


class Turns(Generic[T]):
    """`waiting` is the number of items. The owner holds a lock.

    A client with one request must not wait for all networks that keep many items here. So the first turn of a network
    comes before the next ones of the others, as in FQ-CoDel (RFC 8290, 4.2). After its turn it stays among these,
    though it may have no item left, until its next turn would come: it can't be new again before.
    """

    def __init__(self) -> None:
        self.waiting = 0
        # The items of each network, those of the network whose turn is next first.
        self._new: OrderedDict[str, OrderedDict[T, None]] = OrderedDict()
        self._others: OrderedDict[str, OrderedDict[T, None]] = OrderedDict()
        self._new_in_a_row = 0

    def add(self, item: T, network: str) -> None:
        """Add an item behind all others of its network, unless it waits already."""
        items = self._others.get(network)
        if items is None:
            items = self._new.setdefault(network, OrderedDict())
        self.waiting += item not in items
        items[item] = None

    def take(self) -> T:
        """Remove and return the item whose turn it is; there must be one. Its network is the last one then."""
        network, items = self._next()
        item, _ = items.popitem(last=False)
        self._others[network] = items
        self._count_removed()
        return item

    def remove(self, item: T, network: str) -> None:
        """Remove an item that waits."""
        del (self._new if network in self._new else self._others)[network][item]
        self._count_removed()

    def _next(self) -> tuple[str, OrderedDict[T, None]]:
        while True:
            is_new = bool(self._new) and (self._new_in_a_row < NEW_IN_A_ROW or not self._others)
            network, items = (self._new if is_new else self._others).popitem(last=False)
            if items:
                self._new_in_a_row = self._new_in_a_row + 1 if is_new else 0
                return network, items

    def _count_removed(self) -> None:
        self.waiting -= 1
        if not self.waiting:
            self._new.clear()
            self._others.clear()
