"""The loop: one thread that owns all sockets, so that nothing a connection does needs a lock.

Theory of operation, from the socket to the answer and back:

- `loop.Loop` waits until sockets are ready, and calls what was registered for each. One such round is an iteration.
- `server.Server` registers the listening socket, and makes a `connection.Connection` of each client it accepts. After
  an iteration it looks at the deadlines of all connections and hands the answers given to the access log and metrics.
- A `Connection` is always in one phase (`Phase`, below): which events of its socket it waits for, what it does when
  one comes, and when its time is up. It gives the bytes it receives to its `reader.Reader`, which cuts requests out.
- `router.Exchange` gives a whole request to its `router.Route`. The handler of a route that is `in_loop` is called here
  and now; every other runs in one of the `later.Workers`, a limited number of threads.
- A handler returns a `message.Response`, which the connection sends at once, or a `later.Later`, settled by the thread
  that does the work: a worker, the database's writer, a thread that draws cards. That thread brings it back by
  `call_soon`, the one way into the loop from outside. The result is taken, and what `map` adds runs, in the loop.

Nothing that the loop calls may wait, be it for a client, the disk, a lock or the network, since all other clients wait
with it. Two small exceptions: a stored card's file is opened and looked at here, and read where the kernel has it in
memory; a file of the pages is read from the package when it is first asked for.

The interpreter runs one thread at a time. So while the loop has work to do, the threads that compute begin nothing new,
as its `precedence` tells them: else it would wait for them after each call into the kernel.

`now` is read once in an iteration. It is compared with deadlines in seconds, where its milliseconds do not matter.
"""

import contextlib
import selectors
import socket
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from email.utils import formatdate
from math import inf
from typing import Any, Final, Generic, Protocol, TypeVar

from cardbeat import system
from cardbeat.precedence import Precedence

READ: Final = 1
WRITE: Final = 4

C = TypeVar("C")
Call = Callable[[], None]


class Loop:
    """Waits for sockets, and for what other threads want done, and calls back.

    `now` is the monotonic time at which the present iteration began, `date` the value of its `Date` headers (RFC 9110,
    5.6.7). A byte sent through `waker` begins an iteration. All but `call_soon`, `wake` and `waker` is for one thread.
    """

    def __init__(self) -> None:
        self._poller = make_poller()
        # Any thread appends, the loop's pops: both are atomic.
        self._calls: deque[tuple[Callable[..., None], tuple[Any, ...]]] = deque()
        # Any thread sets it, the loop's unsets it. Two that set it at once send two bytes, which does no harm.
        self._is_woken = False
        self._wakes, self.waker = socket.socketpair()
        self.waker.setblocking(False)
        self.watch(self._wakes, READ, self._run_calls)
        self.precedence = Precedence()
        self._second = 0
        self.date = ""
        self.now = time.monotonic()

    def watch(self, watched: socket.socket, events: int, call: Call) -> None:
        """Call back whenever the socket is ready for these events; no events forget it."""
        self._poller.watch(watched.fileno(), events, call)

    def call_soon(self, call: Callable[..., None], *values: Any) -> None:
        """Have something called with these values in the loop's thread. Safe in any thread."""
        self._calls.append((call, values))
        self.wake()

    def wake(self) -> None:
        """Begin an iteration at once. Safe in any thread and in a signal handler."""
        if not self._is_woken:
            self._is_woken = True
            self.precedence.has_work = True
            # Full or closed: then the loop is awake, or has ended.
            with contextlib.suppress(OSError):
                self.waker.send(b"\0")

    def run_once(self, seconds: float | None) -> None:
        """One iteration: wait until something is ready, for ever with None, and call what was registered for it."""
        if not self._is_woken:
            self.precedence.has_work = False
        calls = self._poller.ready(seconds)
        self.precedence.has_work = True
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
        # Before the first is taken: whoever adds one from here on wakes the next iteration.
        self._is_woken = False
        # Only those that are there: each may bring about another, and the sockets have their turn in between.
        for _ in range(len(self._calls)):
            call, values = self._calls.popleft()
            call(*values)


class Phase(Generic[C]):
    """The connections that wait for the same thing.

    All members may wait equally long, so they stand in the order in which their time runs out. `ready` is what to do
    once one of the `events` has come, `expired` once the time is up; with `events` None a member goes on being woken
    for what it was woken for before.
    """

    __slots__ = ("deadlines", "events", "expired", "ready", "seconds")

    def __init__(
        self, seconds: float, ready: Callable[[C], None], expired: Callable[[C], None], events: int | None = READ
    ) -> None:
        self.seconds = seconds
        self.ready = ready
        self.expired = expired
        self.events = events
        self.deadlines: OrderedDict[C, float] = OrderedDict()
        """When the time of each member is up, earliest first: whoever is added goes to the end."""

    def overdue(self, now: float = inf) -> Iterator[C]:
        """The members whose time is up, longest ago first; each must leave before the next is asked for."""
        while self.deadlines:
            connection, deadline = next(iter(self.deadlines.items()))
            if deadline > now:
                return
            yield connection


class Poller(Protocol):
    """Waits for many descriptors at once, each with what is to be called when it is ready."""

    def watch(self, descriptor: int, events: int, call: Call) -> None:
        """Note what to call when `descriptor` is ready for `events`, `READ`, `WRITE` or both; 0 forgets it."""

    def ready(self, seconds: float | None) -> list[Call]:
        """The calls of all that is ready, after waiting for the first of them for `seconds` at most."""

    def close(self) -> None: ...


class EpollPoller:
    """Linux's epoll, used directly: going through `selectors` would cost as much again as the kernel's answer."""

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
    """What `selectors` finds on any other system."""

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
