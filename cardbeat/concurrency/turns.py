"""Items that wait for their turn: one of each network, again and again. And a lock for threads that wait like that."""

import threading
import time
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

T = TypeVar("T")
STUCK_SECONDS = 1.0
"""After this time whoever holds a `FairLock` is not waited for."""


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


class FairLock:
    """A lock that one of each name's threads gets in turn."""

    def __init__(self) -> None:
        # All below is read and written under this lock only.
        self._lock = threading.Lock()
        self._waiting = Turns[threading.Event]()
        self._taken_at: float | None = None
        """When it was taken last; None while it is free."""

    @contextmanager
    def held(self, name: str, deadline: float) -> Iterator[None]:
        """Hold it. Raises `TimeoutError` if that takes until `deadline`, by `time.monotonic`."""
        mine = threading.Event()
        with self._lock:
            self._waiting.add(mine, name)
            if self._taken_at is None:
                self._pass_on()
        while not mine.wait(max(0.0, min(deadline - time.monotonic(), STUCK_SECONDS))):
            with self._lock:
                if self._taken_at is not None and time.monotonic() - self._taken_at >= STUCK_SECONDS:
                    self._pass_on()
                if not mine.is_set() and time.monotonic() >= deadline:
                    self._waiting.remove(mine, name)
                    raise TimeoutError("timed out")
        try:
            yield
        finally:
            with self._lock:
                self._pass_on()

    def _pass_on(self) -> None:
        self._taken_at = time.monotonic() if self._waiting.networks else None
        if self._waiting.networks:
            self._waiting.take().set()
