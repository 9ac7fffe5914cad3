"""How other threads reach the one that waits for sockets."""

import contextlib
import socket
from collections import deque
from collections.abc import Callable, Iterator

Call = Callable[[], None]


class Mailbox:
    """Calls left by any thread for the one that selects on `receiver`."""

    def __init__(self) -> None:
        self.receiver, self._sender = socket.socketpair()
        self._sender.setblocking(False)
        self._calls: deque[Call] = deque()
        self._awake = False

    def leave(self, call: Call) -> None:
        self._calls.append(call)
        self.wake()

    def wake(self) -> None:
        """Make `receiver` readable. Safe in a signal handler."""
        if not self._awake:
            self._awake = True
            with contextlib.suppress(OSError):
                self._sender.send(b"\0")

    def take(self) -> Iterator[Call]:
        """The calls left so far; only once `receiver` is readable."""
        self.receiver.recv(1024)
        self._awake = False
        while self._calls:
            yield self._calls.popleft()

    def close(self) -> None:
        self._sender.close()
        self.receiver.close()
