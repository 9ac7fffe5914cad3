"""Results that come later, and the threads that bring them about, in fair turns."""

import threading
import time
from collections.abc import Callable
from functools import partial
from operator import attrgetter
from typing import Any, Final, Generic, NoReturn, TypeVar

from cardbeat.errors import Unavailable
from cardbeat.fair_queue import FairQueue

T = TypeVar("T")
U = TypeVar("U")

WAITING_EACH: Final = 100
"""Jobs that may wait for one name."""
RUNNING_EACH: Final = 1
"""Jobs of one name that run at once: where there are two threads, the other one is left to all others."""
AT_A_STRETCH_SECONDS: Final = 0.0005
"""A thread begins job after job for so long until it gives way: to do so after each short one would cost more."""
LOOK_SECONDS: Final = 0.0005
"""How soon it goes on after it has given way."""
GIVES_WAY_TIMES: Final = 3.0
"""It gives way for at most so many times as long as it worked before: a quarter of the time is its own."""


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
        self._callbacks: list[Callable[[Later[T]], object]] = []

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

    def then(self, callback: Callable[["Later[T]"], object]) -> None:
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

    def chain(self, go_on: Callable[[T], "Later[U]"]) -> "Later[U]":
        """What comes of what `go_on` begins with the result, in the thread that settles; it must be quick."""
        chained: Later[U] = Later()

        def begin(settled: Later[T]) -> None:
            try:
                chained.follow(go_on(settled.result()))
            except Exception as error:
                chained.fail(error)

        self.then(begin)
        return chained

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

    def cancel(self, error: Exception) -> bool:
        """Let go of the work and fail with this error; False where it was begun, and then it is done."""
        if self._take() is None:
            return False
        self.fail(error)
        return True

    def _take(self) -> Callable[[], T | Later[T]] | None:
        with self._lock:
            work, self._work = self._work, None
        return work


class Precedence:
    """Of one thread, over those that give way to it: a mark that it sets while it has work.

    The interpreter runs one thread at a time, and one that computes keeps it from all others for a while. A thread that
    serves everybody in short steps would wait that long for each step. So whoever computes lets it finish first.
    """

    __slots__ = ("has_work",)

    def __init__(self) -> None:
        self.has_work = False
        """Set by the thread before and after it waits, and by whoever wakes it. A plain value, as it is set often."""


_has_work = attrgetter("has_work")


class Workers:
    """At most `limit` threads, started as they are needed.

    Each job has the name of whoever it is done for, and the names are served in turns, weighed by the time that their
    jobs took. A job should wait for nothing but a read from the disk: what it begins and has to wait for, such as a
    write, it returns as a `Later`.

    The threads are daemons: a job that hangs must not keep the program from ending.
    """

    def __init__(
        self,
        limit: int,
        waiting_each: int = WAITING_EACH,
        running_each: int = RUNNING_EACH,
        cost: Callable[[float], float] = float,
    ) -> None:
        """`cost` gives that of a job by the seconds it took."""
        self._limit = limit
        self._cost = cost
        # Written before the first job.
        self._first: tuple[Precedence, ...] = ()
        # All below is read and written under this condition's lock only.
        self._changed = threading.Condition(threading.Lock())
        self._queue: FairQueue[Job[Any]] = FairQueue(waiting_each)
        self._running_each = running_each
        self._started = 0
        self._idle = 0
        """Threads that wait for a job and were not woken for one."""
        self._is_stopping = False

    def give_way_to(self, *first: Precedence) -> None:
        """Let each thread wait, before it begins job after job, while one of these has work to do.

        To be called before the first job.
        """
        self._first += first

    def submit(self, name: str, work: Callable[[], T | Later[T]]) -> Job[T]:
        """What will have come of `work`, done for `name`. Raises `Unavailable` where too many wait for that name."""
        job = Job(work)
        with self._changed:
            if not self._queue.put(name, job):
                sentence = "Too many of your requests wait already; try again in a moment."
                raise Unavailable("busy", sentence, 1)
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
        """Let every thread end once all jobs are done."""
        with self._changed:
            self._is_stopping = True
            self._wake_all()

    def _start(self) -> None:
        try:
            threading.Thread(target=self._work, name="worker", daemon=True).start()
        except RuntimeError:
            # The system grants no more threads: those there are take the job, and if there is none the caller does.
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
            # Not kept until the next has come: it may hold a large answer.
            del taken, job
            took = time.monotonic() - began
            worked += took
            if worked >= AT_A_STRETCH_SECONDS:
                # Before it counts as done: no other thread is to go on with the next job of this name meanwhile.
                self._give_way(GIVES_WAY_TIMES * worked)
                worked = 0.0
            taken = self._next(name, self._cost(took))

    def _give_way(self, seconds: float) -> None:
        """Begin nothing until whoever goes first has nothing to do, for so long at the most."""
        ends_at = time.monotonic() + seconds
        while any(map(_has_work, self._first)) and (left := ends_at - time.monotonic()) > 0:
            time.sleep(min(LOOK_SECONDS, left))

    def _next(self, done: str | None = None, cost: float = 0.0) -> tuple[str, Job[Any]] | None:
        """The job whose turn it is, once there is one; None at the end. One for `done` is finished and cost so much."""
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
