"""Which sockets are ready. The standard library's `selectors` would cost as much again as the kernel's own answer."""

import select
from typing import Any, Final

READ: Final = select.POLLIN
WRITE: Final = select.POLLOUT


class Poller:
    """Waits for many descriptors at once, each with what to be told when it is ready: by epoll, else by poll."""

    def __init__(self) -> None:
        self._tokens: dict[int, Any] = {}
        if hasattr(select, "epoll"):
            self._poll: Any = select.epoll()
            self._per_second = 1
        else:
            self._poll = select.poll()
            self._per_second = 1000

    def watch(self, descriptor: int, events: int, token: object = None) -> None:
        """Tell `token` when `descriptor` is ready for `events`; 0 forgets it."""
        if not events:
            del self._tokens[descriptor]
            self._poll.unregister(descriptor)
        elif descriptor in self._tokens:
            self._poll.modify(descriptor, events)
        else:
            self._poll.register(descriptor, events)
            self._tokens[descriptor] = token

    def watches(self, descriptor: int) -> bool:
        return descriptor in self._tokens

    def ready(self, seconds: float | None) -> list[Any]:
        """The tokens of what is ready, after waiting for the first of them for `seconds` at most."""
        timeout = None if seconds is None else seconds * self._per_second
        return [self._tokens[descriptor] for descriptor, _ in self._poll.poll(timeout)]

    def close(self) -> None:
        if hasattr(self._poll, "close"):
            self._poll.close()
