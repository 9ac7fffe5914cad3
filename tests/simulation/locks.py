"""What threads wait for, in the place of what `threading` has: a thread that waits lets the others go on.

A thread goes on without interruption until it waits, or until it takes a lock, where now and then another one is let go
first.
"""

from collections import deque
from collections.abc import Callable
from typing import Any

from tests.simulation import scheduler
from tests.simulation.scheduler import Wait


class Lock:
    """As `threading.Lock`. Nearly all that is simulated goes through here, so nothing is called that need not be."""

    __slots__ = ("_is_held", "_waiting")

    def __init__(self) -> None:
        self._is_held = False
        self._waiting: deque[Wait] | None = None

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        scheduler.SCHEDULER.give_way()
        while self._is_held:
            if not blocking:
                return False
            wait = Wait(scheduler.SCHEDULER.own_thread())
            if self._waiting is None:
                self._waiting = deque()
            self._waiting.append(wait)
            if not scheduler.SCHEDULER.park(wait, None if timeout < 0 else timeout):
                return False
        self._is_held = True
        return True

    def release(self) -> None:
        self._is_held = False
        while self._waiting:
            wait = self._waiting.popleft()
            if not wait.is_over:
                scheduler.SCHEDULER.wake(wait)
                return

    def locked(self) -> bool:
        return self._is_held

    def let_go(self) -> int:
        self.release()
        return 1

    def take_back(self, _count: int) -> None:
        self.acquire()

    __enter__ = acquire

    def __exit__(self, *_: object) -> None:
        self._is_held = False
        if self._waiting:
            self.release()


class RLock(Lock):
    """As `threading.RLock`."""

    __slots__ = ("_count", "_owner")

    def __init__(self) -> None:
        self._is_held = False
        self._waiting = None
        self._owner: object = None
        self._count = 0

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        own = scheduler.SCHEDULER.current or scheduler.SCHEDULER
        if self._owner is not own:
            if not Lock.acquire(self, blocking, timeout):
                return False
            self._owner = own
        self._count += 1
        return True

    def release(self) -> None:
        self._count -= 1
        if not self._count:
            self._owner = None
            Lock.release(self)

    def let_go(self) -> int:
        """Release it wholly, and tell how often it was held."""
        count, self._count, self._owner = self._count, 0, None
        Lock.release(self)
        return count

    def take_back(self, count: int) -> None:
        Lock.acquire(self)
        self._owner, self._count = scheduler.SCHEDULER.current or scheduler.SCHEDULER, count

    __enter__ = acquire

    def __exit__(self, *_: object) -> None:
        self.release()


class Condition:
    """As `threading.Condition`."""

    def __init__(self, lock: Lock | RLock | None = None) -> None:
        self._lock = lock or RLock()
        self.acquire = self._lock.acquire
        self.release = self._lock.release
        self._waiting: deque[Wait] = deque()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()

    def wait(self, timeout: float | None = None) -> bool:
        scheduler.SCHEDULER.check_alive()
        wait = Wait(scheduler.SCHEDULER.own_thread())
        self._waiting.append(wait)
        count = self._lock.let_go()
        is_woken = scheduler.SCHEDULER.park(wait, timeout)
        self._lock.take_back(count)
        return is_woken

    def wait_for(self, predicate: Callable[[], Any], timeout: float | None = None) -> Any:
        ends = None if timeout is None else scheduler.SCHEDULER.now - scheduler.SCHEDULER.slept + timeout
        while not (result := predicate()):
            left = None if ends is None else ends - (scheduler.SCHEDULER.now - scheduler.SCHEDULER.slept)
            if left is not None and left <= 0:
                break
            self.wait(left)
        return result

    def notify(self, n: int = 1) -> None:
        while n and self._waiting:
            wait = self._waiting.popleft()
            if not wait.is_over:
                scheduler.SCHEDULER.wake(wait)
                n -= 1

    def notify_all(self) -> None:
        self.notify(len(self._waiting))


class Event:
    """As `threading.Event`."""

    def __init__(self) -> None:
        self._is_set = False
        self._waiting: list[Wait] = []

    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        self._is_set = True
        waiting, self._waiting = self._waiting, []
        for wait in waiting:
            if not wait.is_over:
                scheduler.SCHEDULER.wake(wait)

    def clear(self) -> None:
        self._is_set = False

    def wait(self, timeout: float | None = None) -> bool:
        scheduler.SCHEDULER.give_way()
        if not self._is_set:
            wait = Wait(scheduler.SCHEDULER.own_thread())
            self._waiting.append(wait)
            scheduler.SCHEDULER.park(wait, timeout)
        return self._is_set


class Semaphore:
    """As `threading.Semaphore`."""

    def __init__(self, value: int = 1) -> None:
        self._free = value
        self._waiting: deque[Wait] = deque()

    def acquire(self) -> bool:
        scheduler.SCHEDULER.give_way()
        while not self._free:
            wait = Wait(scheduler.SCHEDULER.own_thread())
            self._waiting.append(wait)
            scheduler.SCHEDULER.park(wait)
        self._free -= 1
        return True

    def release(self) -> None:
        self._free += 1
        if self._waiting:
            scheduler.SCHEDULER.wake(self._waiting.popleft())

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()
