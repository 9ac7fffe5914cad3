"""Results that come later, and threads that make them."""

import threading
from collections.abc import Callable
from functools import partial
from math import inf
from queue import SimpleQueue
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

    def wait(self) -> T:
        """The result, however long it takes to come."""
        settled = threading.Lock()
        settled.acquire()
        self.then(lambda _: settled.release())
        settled.acquire()
        return self.result()


class Workers:
    """At most `limit` threads, started as they are needed; each takes the next job when it is free.

    They are daemons: a job that hangs must not keep the program from ending.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        # Written under the lock only: how many threads there are, and how many jobs are queued or being done.
        self._lock = threading.Lock()
        self._started = 0
        self._unfinished = 0

    def submit(self, work: Callable[[], T]) -> Later[T]:
        """What will have come of `work`."""
        done: Later[T] = Later()
        self._jobs.put(partial(done.run, work))
        with self._lock:
            self._unfinished += 1
            needs_thread = self._started < min(self._unfinished, self._limit)
            self._started += needs_thread
        if needs_thread:
            self._start()
        return done

    def _start(self) -> None:
        try:
            threading.Thread(target=self._work, name="worker", daemon=True).start()
        except RuntimeError:
            # The system grants no more threads: those there are take the job, and if there is none the caller does.
            with self._lock:
                self._started -= 1
                if self._started:
                    return
            self._work(jobs=1)

    def stop(self) -> None:
        """Let every thread end once its job and those already queued are done."""
        for _ in range(self._started):
            self._jobs.put(None)

    def _work(self, jobs: float = inf) -> None:
        """Do so many jobs, waiting for each, or all that come until the end."""
        while jobs > 0 and (job := self._jobs.get()) is not None:
            job()
            jobs -= 1
            with self._lock:
                self._unfinished -= 1


def _raise(error: BaseException) -> NoReturn:
    raise error
