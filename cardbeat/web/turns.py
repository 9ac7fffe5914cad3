"""Calls that wait for their turn: one of each network, again and again."""

from collections import OrderedDict
from collections.abc import Callable

Call = Callable[[], object]
Turn = tuple[Call, str]
"""A call and its network, which is empty for a call that waits for no turn."""


class Turns:
    """`networks` holds the calls that wait, those of the network whose turn is next first. For one thread."""

    def __init__(self) -> None:
        self.networks: OrderedDict[str, OrderedDict[Call, None]] = OrderedDict()

    def add(self, call: Call, network: str) -> None:
        """Add a call behind all others of its network, unless it waits already."""
        calls = self.networks.get(network)
        if calls is None:
            calls = self.networks[network] = OrderedDict()
        calls[call] = None

    def take(self) -> Call:
        """Remove and return the call whose turn it is; there must be one. Its network is the last one then."""
        network, calls = self.networks.popitem(last=False)
        call, _ = calls.popitem(last=False)
        if calls:
            self.networks[network] = calls
        return call
