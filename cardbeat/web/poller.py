"""Which sockets are ready: by epoll, else by the best that the system has (kqueue, poll, select)."""

import selectors
from collections.abc import Callable
from typing import Any, Final, Protocol

from cardbeat import system

READ: Final = 1
WRITE: Final = 4

Call = Callable[[], None]


class Poller(Protocol):
    """Waits for many descriptors at once, each with what is to be called when it is ready."""

    def watch(self, descriptor: int, events: int, call: Call) -> None:
        """Note what to call when `descriptor` is ready for `events`, `READ`, `WRITE` or both; 0 forgets it."""

    def ready(self, seconds: float | None) -> list[Call]:
        """The calls of all that is ready, after waiting for the first of them for `seconds` at most."""

    def close(self) -> None: ...


class EpollPoller:
    """Linux's own. Going through `selectors` would cost as much again as the kernel's answer."""

    def __init__(self, epoll: Any) -> None:
        self._epoll = epoll
        self._calls: dict[int, Call] = {}

    def watch(self, descriptor: int, events: int, call: Call) -> None:
        if not events:
            if self._calls.pop(descriptor, None):
                self._epoll.unregister(descriptor)
        elif descriptor in self._calls:
            self._epoll.modify(descriptor, events)
        else:
            self._epoll.register(descriptor, events)
            self._calls[descriptor] = call

    def ready(self, seconds: float | None) -> list[Call]:
        return [self._calls[descriptor] for descriptor, _ in self._epoll.poll(seconds)]

    def close(self) -> None:
        self._epoll.close()


class SelectorPoller:
    """Any other system's."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()

    def watch(self, descriptor: int, events: int, call: Call) -> None:
        wanted = (selectors.EVENT_READ if events & READ else 0) | (selectors.EVENT_WRITE if events & WRITE else 0)
        known = descriptor in self._selector.get_map()
        if not wanted:
            if known:
                self._selector.unregister(descriptor)
        elif known:
            self._selector.modify(descriptor, wanted, call)
        else:
            self._selector.register(descriptor, wanted, call)

    def ready(self, seconds: float | None) -> list[Call]:
        return [key.data for key, _ in self._selector.select(seconds)]

    def close(self) -> None:
        self._selector.close()


def make_poller() -> Poller:
    epoll = system.epoll()
    return SelectorPoller() if epoll is None else EpollPoller(epoll)
