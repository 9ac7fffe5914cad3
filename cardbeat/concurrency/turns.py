"""Items that wait for their turn: one of each network, again and again."""

from collections import OrderedDict
from typing import Generic, TypeVar

T = TypeVar("T")


class Turns(Generic[T]):
    """`networks` holds the items that wait, those of the network whose turn is next first. The owner holds a lock."""

    def __init__(self) -> None:
        self.networks: OrderedDict[str, OrderedDict[T, None]] = OrderedDict()

    def add(self, item: T, network: str) -> None:
        """Add an item behind all others of its network, unless it waits already."""
        items = self.networks.get(network)
        if items is None:
            items = self.networks[network] = OrderedDict()
        items[item] = None

    def take(self) -> T:
        """Remove and return the item whose turn it is; there must be one. Its network is the last one then."""
        network, items = self.networks.popitem(last=False)
        item, _ = items.popitem(last=False)
        if items:
            self.networks[network] = items
        return item

    def remove(self, item: T, network: str) -> None:
        """Remove an item that waits."""
        items = self.networks[network]
        del items[item]
        if not items:
            del self.networks[network]
