"""Results that come later."""

import contextlib
import heapq
import threading
import time
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Generic, NoReturn, TypeVar

T = TypeVar("T")
U = TypeVar("U")


class Later(Generic[T]):
    """Settled once, by any thread; whoever waits for it is called back.

    A callback runs in the thread that settles, or at once where the result is there already. It must be quick and
    raise nothing. What `map` adds runs in the thread that takes the result, so the one that settles goes on at once.
    """

    __slots__ = ("_callbacks", "_lock", "_outcome")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # Both are written under the lock only.
        self._outcome: Callable[[], T] | None = None
        self._callbacks: list[Callable[[Later[T]], None]] = []

    def settle(self, outcome: Callable[[], T]) -> None:
        """Give what `result` returns or raises."""
        with self._lock:
            self._outcome = outcome
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback(self)

    def succeed(self, result: T) -> None:
        self.settle(lambda: result)

    def run(self, work: Callable[[], T]) -> None:
        """Do the work now, in this thread, and settle with what comes of it."""
        try:
            result = work()
        except Exception as error:
            self.fail(error)
        else:
            self.succeed(result)

    def follow(self, other: "Later[T]") -> None:
        """Settle as another does."""
        other.then(lambda settled: self.settle(settled.result))

    def fail(self, error: BaseException) -> None:
        self.settle(partial(_raise, error))

    def then(self, callback: Callable[["Later[T]"], None]) -> None:
        """Call back, with this object, once it is settled."""
        with self._lock:
            if self._outcome is None:
                self._callbacks.append(callback)
                return
        callback(self)

    def map(self, change: Callable[[T], U]) -> "Later[U]":
        """What `change` makes of the result; what either raises is raised by its `result`."""
        changed: Later[U] = Later()
        self.then(lambda settled: changed.settle(lambda: change(settled.result())))
        return changed

    def result(self) -> T:
        """The result, once it is settled: returned or raised."""
        if self._outcome is None:
            raise RuntimeError("not settled yet")
        return self._outcome()

    @property
    def is_settled(self) -> bool:
        return self._outcome is not None

    def wait(self) -> T:
        """The result, however long it takes to come."""
        if not self.is_settled:
            settled = threading.Lock()
            settled.acquire()
            self.then(lambda _: settled.release())
            settled.acquire()
        return self.result()


class Job(Later[T]):
    """What will have come of some work, which returns it or a `Later` of it."""

    __slots__ = ("_work",)

    def __init__(self, work: Callable[[], T | Later[T]]) -> None:
        super().__init__()
        # Taken once, under the lock: by the thread that does it, or by `cancel`.
        self._work: Callable[[], T | Later[T]] | None = work

    def do(self) -> None:
        """Do the work, unless it was let go of; what comes of it later is not waited for."""
        work = self._take()
        if work is None:
            return
        try:
            result = work()
        except Exception as error:
            self.fail(error)
        else:
            self.follow(result) if isinstance(result, Later) else self.succeed(result)

    def cancel(self) -> bool:
        """Let go of the work and of whoever waits for it; False where it was begun, and then it is done."""
        if self._take() is None:
            return False
        with self._lock:
            self._callbacks = []
        return True

    def _take(self) -> Callable[[], T | Later[T]] | None:
        with self._lock:
            work, self._work = self._work, None
        return work


def after(seconds: float) -> Later[None]:
    """Settled when so much time has passed, by a thread that all who wait share: its callbacks must be quick."""
    return _alarms.set(time.monotonic() + seconds)


class _Alarms:
    """Settles each `Later` at its time, in one thread, which is started when it is first needed."""

    def __init__(self) -> None:
        # All is read and written under this condition's lock only.
        self._changed = threading.Condition()
        self._alarms: list[tuple[float, int, Later[None]]] = []
        self._numbers = count()
        self._is_started = False

    def set(self, at: float) -> Later[None]:
        alarm: Later[None] = Later()
        with self._changed:
            is_kept = self._is_started or self._start()
            if is_kept:
                heapq.heappush(self._alarms, (at, next(self._numbers), alarm))
                self._changed.notify()
        if not is_kept:
            # The system grants no more threads: too early is better than never.
            alarm.succeed(None)
        return alarm

    def _start(self) -> bool:
        with contextlib.suppress(RuntimeError):
            threading.Thread(target=self._run, name="alarms", daemon=True).start()
            self._is_started = True
        return self._is_started

    def _run(self) -> None:
        while True:
            self._next().succeed(None)

    def _next(self) -> Later[None]:
        """The first alarm, once its time has come."""
        with self._changed:
            while not self._alarms or self._alarms[0][0] > time.monotonic():
                self._changed.wait(self._alarms[0][0] - time.monotonic() if self._alarms else None)
            return heapq.heappop(self._alarms)[2]


_alarms = _Alarms()


def _raise(error: BaseException) -> NoReturn:
    raise error
