"""Results that another thread brings (`Later`), and the threads that do jobs for many names fairly (`Workers`)."""

import threading
import time
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from functools import partial
from operator import attrgetter
from typing import Any, Final, Generic, NoReturn, TypeVar

from cardbeat.concurrency.fair_queue import FairQueue
from cardbeat.concurrency.threads import DaemonThread
from cardbeat.errors import MaybeDone, Unavailable

T = TypeVar("T")
U = TypeVar("U")

WAITING_EACH: Final = 100
"""Most jobs that wait for one name."""
RUNNING_EACH: Final = 1
"""Most jobs of one name that run at once: with two threads, one stays free for all other names."""
AT_A_STRETCH_SECONDS: Final = 0.0005
"""Work time after which a worker thread pauses. Pauses after each short job would cost more than they save."""
LOOK_SECONDS: Final = 0.0005
"""During a pause, the interval at which it looks whether it may go on."""
GIVES_WAY_TIMES: Final = 3.0
"""Longest pause, in multiples of the work time before it: a worker gets at least 25 % of the time."""
served: ContextVar[tuple[str, ...]] = ContextVar("served", default=())
"""For whom this thread works: who pays for its writes, as `FairQueue.put` has them; none if for the service."""


class Later(Generic[T]):
    """A result that is settled once, by any thread. Those that wait for it are called back.

    A callback runs in the thread that settles, or at once if the result is there already. It must be quick and raise
    nothing. A function given to `map` runs in the thread that calls `result`, so that settling stays quick.
    """

    __slots__ = ("_callbacks", "_lock", "_outcome")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # Both are written under the lock only. Callbacks wait by the object that they get; None is this one.
        self._outcome: Callable[[], T] | None = None
        self._callbacks: dict[Later[Any] | None, list[Callable[[Any], object]]] = {}

    def settle(self, outcome: Callable[[], T]) -> None:
        """Let `result` call `outcome`, and call back."""
        with self._lock:
            self._outcome = outcome
            callbacks, self._callbacks = self._callbacks, {}
        for told, waiting in callbacks.items():
            for callback in waiting:
                callback(told or self)

    def succeed(self, result: T) -> None:
        self.settle(lambda: result)

    def fail(self, error: BaseException) -> None:
        self.settle(partial(_raise, error))

    def then(self, callback: Callable[[Any], object], told: "Later[Any] | None" = None) -> None:
        """Call back once it is settled, with this object or the one that is given."""
        with self._lock:
            if self._outcome is None:
                self._callbacks.setdefault(told, []).append(callback)
                return
        callback(told or self)

    def forget(self, told: "Later[Any]") -> None:
        """Drop what was to be called back with this object, and is not yet."""
        with self._lock:
            self._callbacks.pop(told, None)

    def map(self, change: Callable[[T], U]) -> "Later[U]":
        """The result as `change` returns it. Its `result` raises what this one or `change` raises."""
        return Mapped(self, change)

    def result(self) -> T:
        """Return the result, or raise the error. To be called after it is settled."""
        if self._outcome is None:
            raise RuntimeError("not settled yet")
        return self._outcome()

    @property
    def is_settled(self) -> bool:
        return self._outcome is not None

    def wait(self) -> T:
        """Wait until it is settled, without a limit, and return the result or raise the error."""
        if not self.is_settled:
            settled = threading.Lock()
            settled.acquire()
            self.then(lambda _: settled.release())
            settled.acquire()
        return self.result()


class Mapped(Later[T], Generic[T, U]):
    """As `map` returns it. It is settled as soon as its source is, which calls back for it."""

    __slots__ = ("_change", "_source")

    def __init__(self, source: Later[U], change: Callable[[U], T]) -> None:
        self._source = source
        self._change = change

    def then(self, callback: Callable[[Any], object], told: Later[Any] | None = None) -> None:
        self._source.then(callback, told or self)

    def forget(self, told: Later[Any]) -> None:
        self._source.forget(told)

    def result(self) -> T:
        return self._change(self._source.result())

    @property
    def is_settled(self) -> bool:
        return self._source.is_settled


class Repeatable(Mapped[T, U]):
    """For what may be done twice: raises another 503 in place of `MaybeDone`, so that clients repeat it."""

    __slots__ = ()

    def result(self) -> T:
        try:
            return super().result()
        except MaybeDone:
            raise Unavailable("database_unavailable") from None


class Droppable(Mapped[T, U]):
    """May be dropped: then nothing is called back, nor keeps `change` and what that holds."""

    __slots__ = ()

    def drop(self) -> None:
        self._source.forget(self)


class Job(Later[T]):
    """The result of some work, which returns the result itself or a `Later` of it."""

    __slots__ = ("_awaited", "_work")

    def __init__(self, work: Callable[[], T | Later[T]]) -> None:
        super().__init__()
        # Taken once, under the lock, by `do` or by `cancel`.
        self._work: Callable[[], T | Later[T]] | None = work
        self._awaited: Droppable[T, Any] | None = None  # what the work returned

    @property
    def may_be_cancelled(self) -> bool:
        """Whether no thread does the work, and it has not begun or waits for a result that may be dropped."""
        return self._work is not None or self._awaited is not None

    def do(self) -> None:
        """Do the work, unless it was cancelled. Does not wait for a `Later` that the work returns."""
        work = self._take()
        if work is None:
            return
        try:
            result = work()
        except Exception as error:
            self.fail(error)
        else:
            self._awaited = result if isinstance(result, Droppable) else None
            if isinstance(result, Later):
                result.then(lambda settled: self.settle(settled.result))
            else:
                self.succeed(result)

    def cancel(self, error: Exception) -> bool:
        """Drop the work, or what it waits for, and fail with this error. Else False: see `may_be_cancelled`."""
        if self._take() is None:
            awaited, self._awaited = self._awaited, None
            if awaited is None:
                return False
            awaited.drop()
        self.fail(error)
        return True

    def _take(self) -> Callable[[], T | Later[T]] | None:
        with self._lock:
            work, self._work = self._work, None
        return work


class Precedence:
    """A mark that a thread sets while it has work, so that worker threads pause for it.

    The interpreter runs one thread at a time, and switches every 0.5 ms (`server.SWITCH_SECONDS`). A thread that serves
    all clients in short steps would wait that long for each step while another one computes.
    """

    __slots__ = ("has_work",)

    def __init__(self) -> None:
        self.has_work = False
        """Set by the thread before and after it waits, and by the threads that wake it. No lock: it is set often."""


_has_work = attrgetter("has_work")


class Workers:
    """At most `limit` threads, started when they are needed.

    Each job has a name: that of the key or client it is done for. Names are served round robin, weighed by the time
    that their jobs took. A job may wait for a read from the disk, but not for a write: it returns that as a `Later`.

    The threads are daemons: a job that hangs does not keep the program from ending.
    """

    def __init__(
        self,
        limit: int,
        waiting_each: int = WAITING_EACH,
        running_each: int = RUNNING_EACH,
        cost: Callable[[float], float] = float,
        first: Iterable[Precedence] = (),
    ) -> None:
        """`cost` returns the cost of a job from the seconds that it took. The threads pause for those of `first`."""
        self._limit = limit
        self._cost = cost
        self._first = tuple(first)
        # All below is read and written under this condition's lock only.
        self._changed = threading.Condition(threading.Lock())
        self._queue: FairQueue[Job[Any]] = FairQueue(waiting_each)
        self._running_each = running_each
        self._started = 0
        self._idle = 0
        """Threads that wait for a job and have not been woken for one."""
        self._is_stopping = False

    def submit(self, work: Callable[[], T | Later[T]], *payers: str) -> Job[T]:
        """Have `work` done for these payers (`FairQueue.put`). Raises `Unavailable` if too many of their jobs wait."""
        job = Job(work)
        with self._changed:
            if not self._queue.put(" ".join(payers), job, payers):
                raise Unavailable("busy", retry_after_seconds=1)
            is_one_missing = not self._idle and self._started < self._limit
            if is_one_missing:
                self._started += 1
            elif self._idle:
                self._idle -= 1
                self._changed.notify()
        if is_one_missing:
            self._start()
        return job

    def stop(self) -> None:
        """Let each thread end when all jobs are done."""
        with self._changed:
            self._is_stopping = True
            self._wake_all()

    def _start(self) -> None:
        try:
            DaemonThread(self._work, "worker").start()
        except RuntimeError:
            # The system grants no more threads: a running one takes the job, or the caller if none runs.
            with self._changed:
                self._started -= 1
                taken = None if self._started else self._queue.take(self._running_each)
            if taken is not None:
                name, job = taken
                job.do()
                with self._changed:
                    self._queue.done(name, 0.0)

    def _work(self) -> None:
        worked = 0.0
        taken = self._next()
        while taken is not None:
            name, job = taken
            began = time.monotonic()
            job.do()
            # Freed before the wait for the next job: it may hold a large answer.
            del taken, job
            took = time.monotonic() - began
            worked += took
            if worked >= AT_A_STRETCH_SECONDS:
                # Before the job counts as done, so that no other thread begins the next job of this name.
                self._give_way(GIVES_WAY_TIMES * worked)
                worked = 0.0
            taken = self._next(name, self._cost(took))

    def _give_way(self, seconds: float) -> None:
        """Pause while one of `first` has work, at most for these seconds."""
        ends_at = time.monotonic() + seconds
        while any(map(_has_work, self._first)) and (left := ends_at - time.monotonic()) > 0:
            time.sleep(min(LOOK_SECONDS, left))

    def _next(self, done: str | None = None, cost: float = 0.0) -> tuple[str, Job[Any]] | None:
        """Wait for the next job; None at the end. First note that a job for `done` has ended, and its cost."""
        with self._changed:
            if done is not None:
                self._queue.done(done, cost)
            while (taken := self._queue.take(self._running_each)) is None:
                if self._is_stopping and not self._queue.waiting:
                    self._wake_all()
                    return None
                self._idle += 1
                self._changed.wait()
            return taken

    def _wake_all(self) -> None:
        self._idle = 0
        self._changed.notify_all()


def _raise(error: BaseException) -> NoReturn:
    raise error
