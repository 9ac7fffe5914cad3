"""Simulated time, and threads that run one at a time: whatever waits is a greenlet, resumed when its time has come.

The classes named as those of `threading` are put in their place. A thread goes on without interruption until it waits,
or until it takes a lock, where now and then another one is let go first.
"""

import heapq
import itertools
import random
from collections import deque
from collections.abc import Callable
from typing import Any

from greenlet import GreenletExit, getcurrent, greenlet

RESUME_SECONDS = 50e-6
"""A thread that is woken goes on within this time, so that the order of those woken together is up to the seed."""


class Killed(GreenletExit):
    """The thread's process is dead."""


class Process:
    """What a crash ends and a suspension stops: threads, and what they have open."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_dead = False
        self.frozen: list[tuple[_Wait, bool]] | None = None
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
        self.switches = 0
        self._hub = getcurrent()
        self._events: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._numbers = itertools.count()

    def at(self, when: float, call: Callable[..., None], *arguments: Any) -> None:
        heapq.heappush(self._events, (when, next(self._numbers), call, arguments))

    def after(self, seconds: float, call: Callable[..., None], *arguments: Any) -> None:
        self.at(self.now + seconds, call, *arguments)

    def run(self, until: float) -> None:
        """Let everything happen up to then; raises what failed."""
        events = self._events
        while events and events[0][0] <= until:
            when, _, call, arguments = heapq.heappop(events)
            self.now = max(self.now, when)
            call(*arguments)
            if self.failure is not None:
                raise self.failure
        self.now = until

    def spawn(self, process: Process, work: Callable[[], None], name: str) -> "Thread":
        thread = Thread(target=work, name=name)
        thread.begin(process)
        return thread

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

    def park(self, wait: "_Wait", seconds: float | None = None) -> bool:
        """Wait, for a time at most, whether for `wake` or for that time; True where it was woken."""
        if seconds is not None:
            self._set_alarm(wait, self.now - self.slept + seconds)
        self._hub.switch()
        self.check_alive()
        return wait.is_woken

    def wake(self, wait: "_Wait") -> None:
        self.after(self.luck.random() * RESUME_SECONDS, self._go_on, wait, True)

    def sleep(self, seconds: float) -> None:
        self.check_alive()
        self.park(_Wait(self.own_thread()), max(0.0, seconds))

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
            self.park(_Wait(current), self.luck.random() * RESUME_SECONDS)

    def start(self, thread: "Thread") -> None:
        wait = _Wait(thread)
        self.after(self.luck.random() * RESUME_SECONDS, self._go_on, wait, True)

    def _set_alarm(self, wait: "_Wait", deadline: float) -> None:
        # A little late, as real ones are, and never early by a rounding error.
        self.at(deadline + self.slept + 2e-6, self._expire, wait, deadline)

    def _expire(self, wait: "_Wait", deadline: float) -> None:
        if wait.is_over:
            return
        # The machine's monotonic clock stood still meanwhile.
        if self.now - self.slept < deadline:
            self._set_alarm(wait, deadline)
        else:
            self._go_on(wait, False)

    def _go_on(self, wait: "_Wait", is_woken: bool) -> None:
        process = wait.thread.process
        if wait.is_over or process.is_dead:
            return
        if process.frozen is not None:
            process.frozen.append((wait, is_woken))
            return
        wait.is_over, wait.is_woken = True, is_woken
        self.switches += 1
        self._enter(wait.thread, wait.thread.greenlet.switch)

    def _enter(self, thread: "Thread", switch: Callable[..., Any], *arguments: Any) -> None:
        before, self.current = self.current, thread
        try:
            switch(*arguments)
        finally:
            self.current = before


class _Wait:
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


class Thread:
    """As `threading.Thread`."""

    def __init__(
        self,
        group: None = None,
        target: Callable[..., None] | None = None,
        name: str | None = None,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
        *,
        daemon: bool | None = None,
    ) -> None:
        self.name = name or "thread"
        self.daemon = daemon
        self._work = lambda: target and target(*args, **(kwargs or {}))
        self._ended = Event()
        self.is_begun = False

    def start(self) -> None:
        self.begin(SCHEDULER.own_thread().process)

    def begin(self, process: Process) -> None:
        self.process = process
        self.is_begun = True
        self.greenlet = greenlet(self._run, SCHEDULER._hub)
        process.threads[self] = None
        SCHEDULER.start(self)

    def is_alive(self) -> bool:
        return self.is_begun and not self._ended.is_set()

    def join(self, timeout: float | None = None) -> None:
        self._ended.wait(timeout)

    def _run(self, *_: Any) -> None:
        try:
            self._work()
        except BaseException as error:
            if not self.process.is_dead:
                SCHEDULER.failure = SCHEDULER.failure or error
        finally:
            self.process.threads.pop(self, None)
            if not self.process.is_dead:
                self._ended.set()


class Timer(Thread):
    """As `threading.Timer`."""

    def __init__(self, interval: float, function: Callable[[], None]) -> None:
        super().__init__(target=self._wait, name="timer")
        self._interval = interval
        self._function = function
        self._cancelled = Event()

    def cancel(self) -> None:
        self._cancelled.set()

    def _wait(self) -> None:
        if not self._cancelled.wait(self._interval):
            self._function()


class Lock:
    """As `threading.Lock`."""

    __slots__ = ("_is_held", "_waiting")

    def __init__(self) -> None:
        self._is_held = False
        self._waiting: deque[_Wait] | None = None

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        SCHEDULER.give_way()
        while self._is_held:
            if not blocking:
                return False
            wait = _Wait(SCHEDULER.own_thread())
            if self._waiting is None:
                self._waiting = deque()
            self._waiting.append(wait)
            if not SCHEDULER.park(wait, None if timeout < 0 else timeout):
                return False
        self._is_held = True
        return True

    def release(self) -> None:
        self._is_held = False
        while self._waiting:
            wait = self._waiting.popleft()
            if not wait.is_over:
                SCHEDULER.wake(wait)
                return

    def locked(self) -> bool:
        return self._is_held

    def let_go(self) -> int:
        self.release()
        return 1

    def take_back(self, _count: int) -> None:
        self.acquire()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class RLock:
    """As `threading.RLock`."""

    __slots__ = ("_count", "_lock", "_owner")

    def __init__(self) -> None:
        self._lock = Lock()
        self._owner: object = None
        self._count = 0

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        own = SCHEDULER.current or SCHEDULER
        if self._owner is not own:
            if not self._lock.acquire(blocking, timeout):
                return False
            self._owner = own
        self._count += 1
        return True

    def release(self) -> None:
        self._count -= 1
        if not self._count:
            self._owner = None
            self._lock.release()

    def let_go(self) -> int:
        """Release it wholly, and tell how often it was held."""
        count, self._count, self._owner = self._count, 0, None
        self._lock.release()
        return count

    def take_back(self, count: int) -> None:
        self._lock.acquire()
        self._owner, self._count = SCHEDULER.current or SCHEDULER, count

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class Condition:
    """As `threading.Condition`."""

    def __init__(self, lock: Lock | RLock | None = None) -> None:
        self._lock = lock or RLock()
        self.acquire = self._lock.acquire
        self.release = self._lock.release
        self._waiting: deque[_Wait] = deque()

    def __enter__(self) -> bool:
        return self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def wait(self, timeout: float | None = None) -> bool:
        SCHEDULER.check_alive()
        wait = _Wait(SCHEDULER.own_thread())
        self._waiting.append(wait)
        count = self._lock.let_go()
        is_woken = SCHEDULER.park(wait, timeout)
        self._lock.take_back(count)
        return is_woken

    def wait_for(self, predicate: Callable[[], Any], timeout: float | None = None) -> Any:
        ends = None if timeout is None else SCHEDULER.now - SCHEDULER.slept + timeout
        while not (result := predicate()):
            left = None if ends is None else ends - (SCHEDULER.now - SCHEDULER.slept)
            if left is not None and left <= 0:
                break
            self.wait(left)
        return result

    def notify(self, n: int = 1) -> None:
        while n and self._waiting:
            wait = self._waiting.popleft()
            if not wait.is_over:
                SCHEDULER.wake(wait)
                n -= 1

    def notify_all(self) -> None:
        self.notify(len(self._waiting))


class Event:
    """As `threading.Event`."""

    def __init__(self) -> None:
        self._is_set = False
        self._waiting: list[_Wait] = []

    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        self._is_set = True
        waiting, self._waiting = self._waiting, []
        for wait in waiting:
            if not wait.is_over:
                SCHEDULER.wake(wait)

    def clear(self) -> None:
        self._is_set = False

    def wait(self, timeout: float | None = None) -> bool:
        SCHEDULER.give_way()
        if not self._is_set:
            wait = _Wait(SCHEDULER.own_thread())
            self._waiting.append(wait)
            SCHEDULER.park(wait, timeout)
        return self._is_set


class Semaphore:
    """As `threading.Semaphore`."""

    def __init__(self, value: int = 1) -> None:
        self._free = value
        self._waiting: deque[_Wait] = deque()

    def acquire(self) -> bool:
        SCHEDULER.give_way()
        while not self._free:
            wait = _Wait(SCHEDULER.own_thread())
            self._waiting.append(wait)
            SCHEDULER.park(wait)
        self._free -= 1
        return True

    def release(self) -> None:
        self._free += 1
        if self._waiting:
            SCHEDULER.wake(self._waiting.popleft())

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()
