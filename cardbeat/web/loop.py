"""The loop: one thread that owns all sockets, so that nothing a connection does needs a lock.

Theory of operation. A turn of the loop waits for the sockets that are ready, and calls what was registered for each:
the listener's accepts clients, a connection's reads or writes. None of these calls may wait, be it for a client, a
disk, a lock or the network, since all other clients wait with it. A request whose answer takes such work is handed to
another thread, a worker or the database's writer, and that thread gives the answer back by `call_soon`: the one way
into the loop from outside. After a turn the server looks at the deadlines of all connections.

`now` is read once a turn. What it is compared with, deadlines in seconds, tolerates the milliseconds of a turn.
"""

import contextlib
import socket
import time
from collections import deque
from collections.abc import Callable
from email.utils import formatdate

from cardbeat.web.poller import READ, make_poller

Call = Callable[[], None]


class Loop:
    """Waits for sockets, and for what other threads want done, and calls back.

    `now` is the monotonic time of the present turn, `date` the value of its `Date` headers (RFC 9110, 5.6.7). A byte
    sent through `waker` begins a turn.
    """

    def __init__(self) -> None:
        self._poller = make_poller()
        # Other threads append, the loop's thread pops: both are atomic.
        self._calls: deque[Call] = deque()
        self._is_woken = False
        self._wakes, self.waker = socket.socketpair()
        self.waker.setblocking(False)
        self.watch(self._wakes, READ, self._run_calls)
        self._second = 0
        self.date = ""
        self.now = time.monotonic()

    def watch(self, watched: socket.socket, events: int, call: Call) -> None:
        """Call back whenever the socket is ready for these events; no events forget it."""
        self._poller.watch(watched.fileno(), events, call)

    def call_soon(self, call: Call) -> None:
        """Have something called in the loop's thread. Safe in any thread."""
        self._calls.append(call)
        self.wake()

    def wake(self) -> None:
        """Begin a turn at once. Safe in any thread and in a signal handler."""
        if not self._is_woken:
            self._is_woken = True
            # Full or closed: then the loop is awake, or has ended.
            with contextlib.suppress(OSError):
                self.waker.send(b"\0")

    def turn(self, seconds: float | None) -> None:
        """Wait for something to be ready, for so long at most, and do what is to be done about it."""
        calls = self._poller.ready(seconds)
        self.now = time.monotonic()
        second = int(time.time())
        if second != self._second:
            self._second, self.date = second, formatdate(second, usegmt=True)
        for call in calls:
            call()

    def close(self) -> None:
        self._poller.close()
        self.waker.close()
        self._wakes.close()

    def _run_calls(self) -> None:
        self._wakes.recv(1024)
        # Before the first is taken: whoever adds one from here on wakes the next turn.
        self._is_woken = False
        while self._calls:
            self._calls.popleft()()
