"""Simulated time, and threads that run one at a time: whatever waits is resumed when its time has come."""

import itertools
import random
from collections.abc import Callable
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

from greenlet import GreenletExit, getcurrent

if TYPE_CHECKING:
    from tests.simulation.threads import Thread

RESUME_SECONDS = 50e-6
"""A thread that is woken goes on within this time, so that the order of those woken together is up to the seed."""


class Killed(GreenletExit):
    """The thread's process is dead."""


class Process:
    """What a crash ends and a suspension stops: threads, and what they have open."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_dead = False
        self.frozen: list[tuple[Wait, bool]] | None = None
        """What is to be resumed after a suspension; None while it runs."""
        self.threads: dict[Thread, None] = {}
        self.connections: list[Any] = []
        self.descriptors: set[int] = set()
        self.requests: dict[int, Callable[[], None]] = {}
        """Called at its death, for each request that has no answer yet."""
        self.own: dict[str, Any] = {}
        """What the product holds once for each process."""


class Scheduler:
    """All that happens, in order of simulated time; `now` is in seconds."""

    def __init__(self, luck: random.Random, preemption: float = 0.0) -> None:
        self.now = 0.0
        self.slept = 0.0
        """How long the machine was asleep, when its monotonic clock stood still."""
        self.luck = luck
        self.preemption = preemption
        self.current: Thread | None = None
        self.failure: BaseException | None = None
        self.hub = getcurrent()
        self._events: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._numbers = itertools.count()

    def after(self, seconds: float, call: Callable[..., None], *arguments: Any) -> None:
        heappush(self._events, (self.now + seconds, next(self._numbers), call, arguments))

    def run(self, until: float) -> None:
        """Let everything happen up to then; raises what failed."""
        events = self._events
        while events and events[0][0] <= until:
            when, _, call, arguments = heappop(events)
            self.now = max(self.now, when)
            call(*arguments)
            if self.failure is not None:
                raise self.failure
        self.now = until

    def kill(self, process: Process) -> None:
        """End a process wherever its threads are. Not to be called from one of them."""
        process.is_dead = True
        for thread in list(process.threads):
            self._enter(thread, thread.greenlet.throw, Killed)
        process.threads.clear()
        requests, process.requests = process.requests, {}
        for lost in requests.values():
            lost()

    def suspend(self, process: Process) -> None:
        if process.frozen is None:
            process.frozen = []

    def resume(self, process: Process) -> None:
        frozen, process.frozen = process.frozen or [], None
        for wait, is_woken in frozen:
            self.after(self.luck.random() * RESUME_SECONDS, self._go_on, wait, is_woken)

    def park(self, wait: "Wait", seconds: float | None = None) -> bool:
        """Wait, for a time at most, whether for `wake` or for that time; True where it was woken."""
        if seconds is not None:
            self._set_alarm(wait, self.now - self.slept + seconds)
        self.hub.switch()
        if wait.thread.process.is_dead:
            raise Killed
        return wait.is_woken

    def wake(self, wait: "Wait") -> None:
        self.after(self.luck.random() * RESUME_SECONDS, self._go_on, wait, True)

    def sleep(self, seconds: float) -> None:
        thread = self.own_thread()
        if thread.process.is_dead:
            raise Killed
        self.park(Wait(thread), seconds if seconds > 0 else 0.0)

    def own_thread(self) -> "Thread":
        if self.current is None:
            raise RuntimeError("only a simulated thread may wait")
        return self.current

    def check_alive(self) -> None:
        if self.current is not None and self.current.process.is_dead:
            raise Killed

    def give_way(self) -> None:
        """Let another thread go first, now and then."""
        current = self.current
        if current is None:
            return
        if current.process.is_dead:
            raise Killed
        if self.preemption and self.luck.random() < self.preemption:
            self.park(Wait(current), self.luck.random() * RESUME_SECONDS)

    def start(self, thread: "Thread") -> None:
        wait = Wait(thread)
        self.after(self.luck.random() * RESUME_SECONDS, self._go_on, wait, True)

    def _set_alarm(self, wait: "Wait", deadline: float) -> None:
        # A little late, as real ones are, and never early by a rounding error.
        alarm = (deadline + self.slept + 2e-6, next(self._numbers), self._expire, (wait, deadline))
        heappush(self._events, alarm)

    def _expire(self, wait: "Wait", deadline: float) -> None:
        if wait.is_over:
            return
        # The machine's monotonic clock stood still meanwhile.
        if self.now - self.slept < deadline:
            self._set_alarm(wait, deadline)
        else:
            self._go_on(wait, False)

    def _go_on(self, wait: "Wait", is_woken: bool) -> None:
        thread = wait.thread
        process = thread.process
        if wait.is_over or process.is_dead:
            return
        if process.frozen is not None:
            process.frozen.append((wait, is_woken))
            return
        wait.is_over, wait.is_woken = True, is_woken
        self._enter(thread, thread.greenlet.switch)

    def _enter(self, thread: "Thread", switch: Callable[..., Any], *arguments: Any) -> None:
        before, self.current = self.current, thread
        try:
            switch(*arguments)
        finally:
            self.current = before


class Wait:
    """One wait of a thread: it ends once, by being woken or by its time."""

    __slots__ = ("is_over", "is_woken", "thread")

    def __init__(self, thread: "Thread") -> None:
        self.thread = thread
        self.is_over = False
        self.is_woken = False


SCHEDULER: Scheduler
"""That of the world that runs."""


def use(scheduler: Scheduler) -> None:
    global SCHEDULER  # noqa: PLW0603 - the product makes its locks and threads without naming one
    SCHEDULER = scheduler
