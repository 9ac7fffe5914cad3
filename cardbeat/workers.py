"""Threads that do jobs in fair turns."""

import threading
import time
from collections.abc import Callable
from typing import Any, Final, TypeVar

from cardbeat.errors import Unavailable
from cardbeat.fair_queue import FairQueue
from cardbeat.later import Later

T = TypeVar("T")

WAITING_EACH: Final = 100
"""Jobs that may wait for one name."""
RUNNING_EACH: Final = 1
"""Jobs of one name that run at once: where there are two threads, the other one is left to all others."""


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
        # All below is read and written under this condition's lock only.
        self._changed = threading.Condition(threading.Lock())
        self._queue: FairQueue[Job[Any]] = FairQueue(waiting_each, running_each)
        self._started = 0
        self._idle = 0
        """Threads that wait for a job and were not woken for one."""
        self._is_stopping = False

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

    def is_full(self, name: str) -> bool:
        """Whether so many jobs wait for this name that `submit` would raise."""
        with self._changed:
            return self._queue.is_full(name)

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
                taken = None if self._started else self._queue.take()
            if taken is not None:
                self._do(*taken)

    def _work(self) -> None:
        while (taken := self._next()) is not None:
            self._do(*taken)
            # Not kept until the next has come: it may hold a large answer.
            del taken

    def _next(self) -> tuple[str, Job[Any]] | None:
        """The job whose turn it is, once there is one; None at the end."""
        with self._changed:
            while (taken := self._queue.take()) is None:
                if self._is_stopping and not self._queue.waiting:
                    self._wake_all()
                    return None
                self._idle += 1
                self._changed.wait()
            return taken

    def _do(self, name: str, job: Job[Any]) -> None:
        began = time.monotonic()
        job.do()
        cost = self._cost(time.monotonic() - began)
        with self._changed:
            self._queue.done(name, cost)

    def _wake_all(self) -> None:
        self._idle = 0
        self._changed.notify_all()
