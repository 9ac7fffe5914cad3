"""Simulated time, and threads that run one at a time: greenlets, with all of `threading` that they wait for.

A thread goes on without interruption until it waits, or until it takes a lock, where now and then
another one is let go first.
"""

import itertools
import random
from collections import deque
from heapq import heappop, heappush

from greenlet import GreenletExit, getcurrent, greenlet

EPOCH = 1_800_000_000
RESUME_SECONDS = 50e-6
"""A thread that is woken goes on within this time, so that the order of those woken together is up to the seed."""


class Killed(GreenletExit):
    """The thread's process is dead."""


class Process:
    """What a crash ends and a suspension stops: threads, and what they have open."""

    def __init__(self, name):
        self.name = name
        self.is_dead = False
        self.frozen = None
        """What is to be resumed after a suspension; None while it runs."""
        self.threads = {}
        self.connections = []
        self.requests = {}
        """Called at its death, for each request that has no answer yet."""
        self.stop = lambda: None
        """What the product does at SIGTERM."""


class Scheduler:
    """All that happens on the machine, in order of simulated time, and the machine's clocks; `now` is in seconds."""

    def __init__(self, luck, preemption=0.0):
        self.now = 0.0
        self.slept = 0.0
        """How long the machine was asleep, when its monotonic clock stood still."""
        self.is_asleep = False
        self.jump_seconds = 0.0
        """By how much the wall clock was set."""
        self._booted = -1000.0
        self.luck = luck
        self.preemption = preemption
        self.current = None
        self.failure = None
        self.hub = getcurrent()
        self._events = []
        self._numbers = itertools.count()

    @property
    def awake(self):
        """How long the machine was awake."""
        return self.now - self.slept

    def wall(self):
        return EPOCH + self.now + self.jump_seconds

    def monotonic(self):
        return self.awake - self._booted

    def boot(self):
        """Start the monotonic clock again."""
        self._booted = self.awake

    def after(self, seconds, call, *arguments):
        heappush(
            self._events,
            (self.now + seconds, next(self._numbers), call, arguments),
        )

    def soon(self, call, *arguments):
        self.after(self.luck.random() * RESUME_SECONDS, call, *arguments)

    def run(self, until):
        """Let everything happen up to then; raises what failed."""
        events = self._events
        while events and events[0][0] <= until:
            when, _, call, arguments = heappop(events)
            self.now = max(self.now, when)
            call(*arguments)
            if self.failure is not None:
                raise self.failure
        self.now = until

    def fail(self, error):
        """End the run with the first failure."""
        self.failure = self.failure or error

    def kill(self, process):
        """End a process wherever its threads are. Not to be called from one of them."""
        process.is_dead = True
        for thread in list(process.threads):
            self._enter(thread, thread.greenlet.throw, Killed)
        process.threads.clear()
        for lost in list(process.requests.values()):
            lost()

    def suspend(self, process):
        if process.frozen is None:
            process.frozen = []

    def resume(self, process):
        frozen = process.frozen or []
        process.frozen = None
        for wait, is_woken in frozen:
            self.soon(self._go_on, wait, is_woken)

    def park(self, wait, seconds=None):
        """Wait, for a time at most, whether for `wake` or for that time; True where it was woken."""
        if seconds is not None:
            self._set_alarm(wait, self.awake + seconds)
        self.hub.switch()
        if wait.thread.process.is_dead:
            raise Killed
        return wait.is_woken

    def wake(self, wait):
        self.soon(self._go_on, wait, True)

    def wake_next(self, waiting):
        """Whether any of these still waited."""
        while waiting:
            wait = waiting.popleft()
            if not wait.is_over:
                self.wake(wait)
                return True
        return False

    def sleep(self, seconds):
        thread = self.own_thread()
        if thread.process.is_dead:
            raise Killed
        self.park(Wait(thread), max(0.0, seconds))

    def own_thread(self):
        if self.current is None:
            raise RuntimeError("only a simulated thread may wait")
        return self.current

    def give_way(self):
        """Let another thread go first, now and then."""
        current = self.current
        if current is None:
            return
        if current.process.is_dead:
            raise Killed
        if self.preemption and self.luck.random() < self.preemption:
            self.park(Wait(current), self.luck.random() * RESUME_SECONDS)

    def start(self, thread):
        self.wake(Wait(thread))

    def _set_alarm(self, wait, deadline):
        # A little late, as real ones are, and never early by a rounding error.
        alarm = (
            deadline + self.slept + 2e-6,
            next(self._numbers),
            self._expire,
            (wait, deadline),
        )
        heappush(self._events, alarm)

    def _expire(self, wait, deadline):
        if wait.is_over:
            return
        # The machine may have slept since.
        if self.awake < deadline:
            self._set_alarm(wait, deadline)
        else:
            self._go_on(wait, False)

    def _go_on(self, wait, is_woken):
        thread = wait.thread
        process = thread.process
        if wait.is_over or process.is_dead:
            return
        if process.frozen is not None:
            process.frozen.append((wait, is_woken))
            return
        wait.is_over = True
        wait.is_woken = is_woken
        self._enter(thread, thread.greenlet.switch)

    def _enter(self, thread, switch, *arguments):
        before = self.current
        self.current = thread
        try:
            switch(*arguments)
        finally:
            self.current = before


SCHEDULER = Scheduler(random.Random())
"""That of the world that runs: the product makes its locks and threads without naming one."""


class Wait:
    """One wait of a thread: it ends once, by being woken or by its time."""

    __slots__ = ("is_over", "is_woken", "thread")

    def __init__(self, thread):
        self.thread = thread
        self.is_over = False
        self.is_woken = False


class Lock:
    """As `threading.Lock`. Nearly all that is simulated goes through here, so nothing is called that need not be."""

    __slots__ = ("_is_held", "_waiting")

    def __init__(self):
        self._is_held = False
        self._waiting = deque()

    def acquire(self, blocking=True):
        SCHEDULER.give_way()
        while self._is_held:
            if not blocking:
                return False
            wait = Wait(SCHEDULER.own_thread())
            self._waiting.append(wait)
            SCHEDULER.park(wait)
        self._is_held = True
        return True

    def release(self):
        self._is_held = False
        if self._waiting:
            SCHEDULER.wake_next(self._waiting)

    __enter__ = acquire

    def __exit__(self, *_):
        self.release()


class RLock(Lock):
    """As `threading.RLock`."""

    __slots__ = ("_count", "_owner")

    def __init__(self):
        super().__init__()
        self._owner = None
        self._count = 0

    def acquire(self, blocking=True):
        own = SCHEDULER.current or SCHEDULER
        if self._owner is not own:
            if not Lock.acquire(self, blocking):
                return False
            self._owner = own
        self._count += 1
        return True

    def release(self):
        self._count -= 1
        if not self._count:
            self._owner = None
            Lock.release(self)

    __enter__ = acquire


class Condition:
    """As `threading.Condition`, whose lock may be held once, not more often, by a thread that waits."""

    def __init__(self, lock=None):
        self._lock = lock or RLock()
        self.acquire = self._lock.acquire
        self.release = self._lock.release
        self._waiting = deque()

    def __enter__(self):
        return self.acquire()

    def __exit__(self, *_):
        self.release()

    def wait(self, timeout=None):
        SCHEDULER.give_way()
        wait = Wait(SCHEDULER.own_thread())
        self._waiting.append(wait)
        self.release()
        is_woken = SCHEDULER.park(wait, timeout)
        self.acquire()
        return is_woken

    def wait_for(self, predicate, timeout=None):
        ends = None if timeout is None else SCHEDULER.awake + timeout
        while not (result := predicate()):
            if ends is not None and ends <= SCHEDULER.awake:
                break
            self.wait(None if ends is None else ends - SCHEDULER.awake)
        return result

    def notify(self, n=1):
        while n and SCHEDULER.wake_next(self._waiting):
            n -= 1

    def notify_all(self):
        self.notify(len(self._waiting))


class Event:
    """As `threading.Event`."""

    def __init__(self):
        self._is_set = False
        self._waiting = deque()

    def is_set(self):
        return self._is_set

    def set(self):
        self._is_set = True
        while SCHEDULER.wake_next(self._waiting):
            pass

    def clear(self):
        self._is_set = False

    def wait(self, timeout=None):
        SCHEDULER.give_way()
        if not self._is_set:
            wait = Wait(SCHEDULER.own_thread())
            self._waiting.append(wait)
            SCHEDULER.park(wait, timeout)
        return self._is_set


class Thread:
    """As `threading.Thread`."""

    process: Process

    def __init__(self, target, name="thread", args=(), daemon=True):
        self.name = name
        self.daemon = daemon
        self._target = target
        self._arguments = args
        self._started = False
        self._ended = Event()

    def start(self):
        self.begin(SCHEDULER.own_thread().process)

    def begin(self, process):
        """Start it from outside its process."""
        self.process = process
        self._started = True
        self.greenlet = greenlet(self._run, SCHEDULER.hub)
        process.threads[self] = None
        SCHEDULER.start(self)

    def is_alive(self):
        return self._started and not self._ended.is_set()

    def join(self, timeout=None):
        self._ended.wait(timeout)

    def _run(self):
        try:
            self._target(*self._arguments)
        except BaseException as error:
            if not self.process.is_dead:
                SCHEDULER.fail(error)
        finally:
            self.process.threads.pop(self, None)
            if not self.process.is_dead:
                self._ended.set()


class Timer(Thread):
    """As `threading.Timer`."""

    def __init__(self, interval, function):
        super().__init__(self._wait, "timer")
        self._interval = interval
        self._function = function
        self._cancelled = Event()

    def cancel(self):
        self._cancelled.set()

    def _wait(self):
        if not self._cancelled.wait(self._interval):
            self._function()
