"""The loop: one thread owns the sockets of all clients, so connections need no locks.

Theory of operation: the way of a request from the socket to its answer.

1. `loop.Loop` waits until sockets are ready, then calls what was registered for each. One such pass is an iteration.
   If many are ready, their calls wait in `turns.Turns`, and the loop makes a few in each iteration: one for each
   network in turn. So all clients of one network together delay another network's client by one call.
2. `server.HttpServer` registers the listening socket and makes a `connection.ClientConnection` for each client that it
   accepts. After iterations it closes connections whose time is up (every 0.25 s), and passes the answers that were
   given to the access log and the metrics.
3. A `ClientConnection` is always in one `Phase` (below). The phase says which events of the socket it waits for, what
   it does at such an event, and what it does when its time is up. Its `reader.Reader` cuts the received bytes into
   requests.
4. `exchange.Exchange` finds the `router.Route` of a request. The handler of a route that is `in_loop` runs in the
   loop's thread; the others run in `later.Workers`, which are a few threads.
5. A handler returns a `message.Response`, which is sent at once, or a `later.Later`, whose result another thread sets:
   a worker, the database's writer, or a thread that draws cards. That thread calls `Loop.call_soon`, the only way into
   the loop from outside. The loop then takes the result, and runs the functions that were added by `map`.
6. If the client's next request came with the last one, it waits in `Turns` too. So does each request that a trusted
   proxy has passed on, once its head has told whose it is.

What the loop calls must not wait for a client, the disk, another thread or the network, because all clients would wait
with it. It does wait in these cases:

- It opens the file of a stored card, and reads it if the kernel has it in memory.
- It reads a file of the pages from the package at the first request for that file, and makes the OpenAPI description
  if it is asked for in the first second.
- It takes locks that other threads hold for some microseconds, such as those of the queues of workers and of writes.
- It runs the job of a worker itself if there is no worker and the system refuses to start a thread.

The interpreter runs one thread at a time, so the loop may have to wait for a computing thread after each system call.
To avoid that, threads that compute begin nothing new while the loop has work: `precedence` tells them.

`now` is read once in an iteration and compared with deadlines, which are in seconds, so some milliseconds don't matter.
"""

import contextlib
import selectors
import socket
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any, Final, Generic, TypeVar

from cardbeat.concurrency.later import Precedence
from cardbeat.concurrency.turns import Turns
from cardbeat.host import system

READ: Final = 1
WRITE: Final = 4
AT_ONCE: Final = 32
SECONDS_AT_ONCE: Final = 0.001
"""Most calls for sockets in one iteration, and how long they may take: then a client that has just asked is seen."""
READY_AT_ONCE: Final = 512
"""Sockets that epoll names in one iteration. If more are ready, it names the others first in the next ones."""
_DATE: Final = "%a, %d %b %Y %H:%M:%S GMT"  # no part of this program sets a locale, so the names are English

Call = Callable[[], object]
Turn = tuple[Call, str]
"""A call and its network, which is empty for a call that waits for no turn."""

C = TypeVar("C")


class Loop:
    """Waits for sockets and for calls from other threads, and runs what is to be called.

    `now` is the monotonic time at which this iteration began, in seconds; `date` is the value of its `Date` headers
    (RFC 9110, 5.6.7). A byte sent through `waker` begins an iteration. Other threads may use `call_soon`, `wake` and
    `waker` only.
    """

    def __init__(self, elapsed: Callable[[], float] = time.monotonic) -> None:
        """`elapsed` is a clock that only goes forward."""
        self.elapsed = elapsed
        self._poller = make_poller()
        # Any thread appends, the loop's thread pops; both are atomic.
        self._calls: deque[Turn] = deque()
        self._turns = Turns[Call]()
        # Any thread sets it, the loop's thread unsets it. Two threads at once send two bytes, which does no harm.
        self._is_woken = False
        self._wakes, self.waker = socket.socketpair()
        self.waker.setblocking(False)
        self.watch(self._wakes, READ, self._take_calls)
        self.precedence = Precedence()
        self._second = 0
        self.date = ""
        self.now = elapsed()

    @property
    def is_behind(self) -> bool:
        """Whether calls wait for their turn."""
        return bool(self._turns.waiting)

    def watch(self, watched: socket.socket, events: int, call: Call, network: str = "") -> None:
        """Call `call` whenever the socket is ready for `events`; 0 removes it.

        Calls with a network may have to wait for their turn; those without are made first.
        """
        self._poller.watch(watched.fileno(), events, (call, network))

    def call_soon(self, call: Call, network: str = "") -> None:
        """Call `call` in the loop's thread, in its network's turn as in `watch`. Safe in any thread."""
        self._calls.append((call, network))
        self.wake()

    def call_in_turn(self, call: Call, network: str) -> None:
        """Call `call` when it is its network's turn. Only once if it waits already."""
        self._turns.add(call, network)

    def wake(self) -> None:
        """Begin an iteration at once. Safe in any thread and in a signal handler."""
        if not self._is_woken:
            self._is_woken = True
            self.precedence.has_work = True
            # An error means that the pipe is full, so the loop is awake, or closed, so the loop has ended.
            with contextlib.suppress(OSError):
                self.waker.send(b"\0")

    def run_once(self, seconds: float | None) -> None:
        """Run one iteration: wait at most `seconds` (None: without limit) until something is ready, and call for it."""
        turns = self._turns
        if not (self._is_woken or turns.waiting):
            self.precedence.has_work = False
        ready = self._poller.ready(0 if turns.waiting else seconds)
        self.precedence.has_work = True
        self.now = self.elapsed()
        second = int(time.time())
        if second != self._second:
            self._second, self.date = second, time.strftime(_DATE, time.gmtime(second))
        self._call(ready)
        left, ends_at = AT_ONCE, self.elapsed() + SECONDS_AT_ONCE
        while turns.waiting and left:
            turns.take()()
            if self._calls:
                # Answers are ready. Their clients wait no longer than those whose requests come.
                self._call([self._calls.popleft() for _ in range(len(self._calls))])
            left = left - 1 if self.elapsed() < ends_at else 0

    def close(self) -> None:
        self._poller.close()
        self.waker.close()
        self._wakes.close()

    def _take_calls(self) -> None:
        self._wakes.recv(1024)
        # Unset before the first is taken: a call that is added from here on wakes the next iteration.
        self._is_woken = False
        # Only those that are there now: each may add another, and the sockets come first then.
        self._call([self._calls.popleft() for _ in range(len(self._calls))])

    def _call(self, calls: Sequence[Turn]) -> None:
        """Make these calls at once if they are few and none wait; else only those without a network."""
        are_few = len(calls) <= AT_ONCE and not self._turns.waiting
        for call, network in calls:
            if are_few or not network:
                call()
            else:
                self._turns.add(call, network)


@dataclass(slots=True, eq=False, repr=False)
class Phase(Generic[C]):
    """The connections that wait for the same thing, each for at most `seconds`.

    `ready` is called when one of the `events` has come, `expired` when the time is up. With `events` None a connection
    keeps the events of its phase before. All members wait equally long, so their deadlines are in ascending order.
    """

    seconds: float
    ready: Callable[[C], None]
    expired: Callable[[C], None]
    events: int | None = READ
    deadlines: OrderedDict[C, float] = field(default_factory=OrderedDict)
    """When the time of each member is up, earliest first: a new member goes to the end."""

    def overdue(self, now: float = inf) -> Iterator[C]:
        """Yield the members whose time is up, longest ago first. Each must leave before the next is asked for."""
        while self.deadlines:
            connection, deadline = next(iter(self.deadlines.items()))
            if deadline > now:
                return
            yield connection


class EpollPoller:
    """Linux's epoll, used directly: `selectors` on top of it would double the time of a call."""

    def __init__(self, epoll: Any) -> None:
        self._epoll = epoll
        self._calls: dict[int, Turn] = {}

    def watch(self, descriptor: int, events: int, turn: Turn) -> None:
        """Set what to call when `descriptor` is ready for `events`: `READ`, `WRITE` or both; 0 removes it."""
        if not events:
            if self._calls.pop(descriptor, None):
                self._epoll.unregister(descriptor)
        elif descriptor in self._calls:
            self._epoll.modify(descriptor, events)
        else:
            self._epoll.register(descriptor, events)
            self._calls[descriptor] = turn

    def ready(self, seconds: float | None) -> list[Turn]:
        """The calls of all descriptors that are ready, after waiting at most `seconds` for the first of them."""
        return [self._calls[descriptor] for descriptor, _ in self._epoll.poll(seconds, READY_AT_ONCE)]

    def close(self) -> None:
        self._epoll.close()


class SelectorPoller:
    """The best that `selectors` finds, for all other systems."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()

    def watch(self, descriptor: int, events: int, turn: Turn) -> None:
        wanted = (selectors.EVENT_READ if events & READ else 0) | (selectors.EVENT_WRITE if events & WRITE else 0)
        known = descriptor in self._selector.get_map()
        if not wanted:
            if known:
                self._selector.unregister(descriptor)
        elif known:
            self._selector.modify(descriptor, wanted, turn)
        else:
            self._selector.register(descriptor, wanted, turn)

    def ready(self, seconds: float | None) -> list[Turn]:
        return [key.data for key, _ in self._selector.select(seconds)]

    def close(self) -> None:
        self._selector.close()


Poller = EpollPoller | SelectorPoller
"""Waits for many descriptors at once. Each has a call to make when it is ready."""


def make_poller() -> Poller:
    epoll = system.epoll()
    return SelectorPoller() if epoll is None else EpollPoller(epoll)
