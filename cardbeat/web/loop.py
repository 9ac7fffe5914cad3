"""The loop: one thread owns the sockets of all clients, so connections need no locks.

Theory of operation: the way of a request from the socket to its answer.

1. `loop.Loop` waits until sockets are ready, then calls what was registered for each, and then what
   other threads asked for by `call_soon`. One such pass is an iteration.
2. `server.HttpServer` accepts clients, and makes a `connection.ClientConnection` for each. After an
   iteration it passes the answers that were given to the log and the metrics; every 0.25 s it
   closes connections whose time is up.
3. A `ClientConnection` receives bytes. Its `reader.Reader` cuts requests out of them. A request
   whose head has come waits for its client's turn, usually until the end of this iteration.
4. `router.Router` finds the route. The handler of a route that is `in_loop` runs here: stored
   cards, pings, pages. Every other request waits in `jobs.Workers`, a queue that is fair
   by client, for one of 4 threads, which may block.
   A handler in the loop that finds it must wait returns the function that such a thread calls.
5. A handler returns a `Response`. The thread hands it to the loop by `call_soon`, the only way into
   the loop from outside. Pings and new cards return a future instead, so they hold no thread.
6. The connection sends what the kernel takes, and the rest when the client has read some.

What the loop calls must not wait for a client, the database, another thread or the network: all
clients would wait with it. It does wait for the disk in two cases: it reads a stored card that is
not in memory, and a file of the pages at its first request.
"""

import contextlib
import selectors
import socket
import time
from collections import deque
from typing import Final

from cardbeat.clock import Clock
from cardbeat.jobs import Job

READ: Final = selectors.EVENT_READ
WRITE: Final = selectors.EVENT_WRITE


class Loop:
    """Waits for sockets and for calls from other threads, and runs what is to be called.

    `now` is the monotonic time at which this iteration began, in seconds. A byte sent through
    `waker` begins an iteration. Other threads may use `call_soon`, `wake` and `waker` only.
    """

    def __init__(self, elapsed: Clock = time.monotonic) -> None:
        """`elapsed` is a clock that only goes forward."""
        self.elapsed = elapsed
        self._selector = selectors.DefaultSelector()
        # Any thread appends, the loop's thread pops; both are atomic.
        self._calls: deque[Job] = deque()
        # Any thread sets it, the loop's thread unsets it.
        self._is_woken = False
        self._wakes, self.waker = socket.socketpair()
        self.waker.setblocking(False)
        self._selector.register(self._wakes, READ, self._take_wakes)
        self.now = elapsed()

    def watch(
        self, watched: socket.socket, before: int, events: int, call: Job
    ) -> None:
        """Call `call` whenever the socket is ready for `events`, 0 for none.

        `before` are the events that it was watched for until now.
        """
        if not before:
            self._selector.register(watched, events, call)
        elif events:
            self._selector.modify(watched, events, call)
        else:
            self._selector.unregister(watched)

    def call_next(self, call: Job) -> None:
        """Call `call` after the sockets of this iteration; from such a call, of the next one.

        For the loop's thread alone.
        """
        self._calls.append(call)

    def call_soon(self, call: Job) -> None:
        """Call `call` in the loop's thread. Safe in any thread."""
        self._calls.append(call)
        self.wake()

    def wake(self) -> None:
        """Begin an iteration at once. Safe in any thread and in a signal handler."""
        if not self._is_woken:
            self._is_woken = True
            # An error means that the pipe is full, so the loop is awake, or closed: it has ended.
            with contextlib.suppress(OSError):
                self.waker.send(b"\0")

    def run_once(self, seconds: float) -> None:
        """Run one iteration: wait at most `seconds`, and make the calls."""
        ready = self._selector.select(0 if self._calls else seconds)
        self.now = self.elapsed()
        for key, _ in ready:
            key.data()
        # Only those that are there now: each may add another, and the sockets come first then.
        for _ in range(len(self._calls)):
            self._calls.popleft()()

    def close(self) -> None:
        self._selector.close()
        self.waker.close()
        self._wakes.close()

    def _take_wakes(self) -> None:
        # First the bytes, then the flag: a wake in between would be swallowed otherwise, and every
        # later one would see the flag and send nothing.
        self._wakes.recv(1024)
        self._is_woken = False
