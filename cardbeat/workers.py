"""Threads that do jobs in fair turns."""

import threading
import time
from collections.abc import Callable
from math import inf
from queue import SimpleQueue
from typing import Any, Final, TypeVar

from cardbeat.errors import Unavailable
from cardbeat.fair_queue import FairQueue
from cardbeat.later import Later, tell_of_waits

T = TypeVar("T")

WAITING_EACH: Final = 100
"""Jobs that may wait for one name."""
RUNNING_EACH: Final = 16
"""Jobs of one name that run at once, most of them waiting for the disk."""
COMPUTING: Final = 1
"""The interpreter runs one thread at a time: a second that computes would get no more done, and the thread that serves
would have to wait for its turn among both of them."""


class Job(Later[T]):
    """What will have come of some work."""

    __slots__ = ("_work",)

    def __init__(self, work: Callable[[], T]) -> None:
        super().__init__()
        # Taken once, under the lock: by the thread that does it, or by `cancel`.
        self._work: Callable[[], T] | None = work

    def do(self) -> None:
        if work := self._take():
            self.run(work)

    def cancel(self) -> bool:
        """Let go of the work and of whoever waits for it; False where it was begun, and then it is done."""
        if self._take() is None:
            return False
        with self._lock:
            self._callbacks = []
        return True

    def _take(self) -> Callable[[], T] | None:
        with self._lock:
            work, self._work = self._work, None
        return work


class Workers:
    """At most `limit` threads, started as they are needed, of which at most `computing` do anything but wait.

    Each job has the name of whoever it is done for, and the names are served in turns, weighed by the time that their
    jobs took. A thread that waits for a `Later`, such as a write on its way to the disk, makes room for another.

    They are daemons: a job that hangs must not keep the program from ending.
    """

    def __init__(
        self,
        limit: int,
        computing: int = COMPUTING,
        waiting_each: int = WAITING_EACH,
        running_each: int = RUNNING_EACH,
        cost: Callable[[float], float] = float,
    ) -> None:
        """`cost` gives that of a job by the seconds it took."""
        self._limit = limit
        self._cost = cost
        self._most_computing = computing
        self._ready: SimpleQueue[tuple[str, Job[Any]] | None] = SimpleQueue()
        """Jobs whose turn has come; None ends a thread."""
        # All below is read and written under the lock only.
        self._lock = threading.Lock()
        self._queue: FairQueue[Job[Any]] = FairQueue(waiting_each, running_each)
        self._started = 0
        self._unfinished = 0
        """Jobs in `_ready` or with a thread."""
        self._computing = 0
        """Those of them that do not wait."""
        self._is_stopping = False

    def submit(self, name: str, work: Callable[[], T]) -> Job[T]:
        """What will have come of `work`, done for `name`. Raises `Unavailable` where too many wait for that name."""
        job = Job(work)
        with self._lock:
            if not self._queue.put(name, job):
                sentence = "Too many of your requests wait already; try again in a moment."
                raise Unavailable("busy", sentence, 1)
            missing = self._hand_out()
        self._start(missing)
        return job

    def is_full(self, name: str) -> bool:
        """Whether so many jobs wait for this name that `submit` would raise."""
        with self._lock:
            return self._queue.is_full(name)

    def stop(self) -> None:
        """Let every thread end once all jobs are done."""
        with self._lock:
            self._is_stopping = True
            self._end_if_done()

    def _hand_out(self) -> int:
        """Give out the jobs that may run now; how many threads are to be started for them."""
        while (
            self._computing < self._most_computing
            and self._unfinished < self._limit
            and (taken := self._queue.take()) is not None
        ):
            self._unfinished += 1
            self._computing += 1
            self._ready.put(taken)
        missing = max(0, self._unfinished - self._started)
        self._started += missing
        return missing

    def _start(self, count: int) -> None:
        for _ in range(count):
            try:
                threading.Thread(target=self._work, name="worker", daemon=True).start()
            except RuntimeError:
                # The system grants no more threads: those there are take the job, and if there is none the caller does.
                with self._lock:
                    self._started -= 1
                    if self._started:
                        continue
                self._work(jobs=1)

    def _work(self, jobs: float = inf) -> None:
        """Do so many jobs, waiting for each, or all that come until the end."""
        if jobs == inf:
            tell_of_waits(self._begin_wait, self._end_wait)
        while jobs > 0 and (taken := self._ready.get()) is not None:
            name, job = taken
            began = time.monotonic()
            job.do()
            # Not kept until the next has come: it may hold a large answer.
            del taken, job
            self._finish(name, time.monotonic() - began)
            jobs -= 1

    def _finish(self, name: str, seconds: float) -> None:
        with self._lock:
            self._unfinished -= 1
            self._computing -= 1
            self._queue.done(name, self._cost(seconds))
            missing = self._hand_out()
            self._end_if_done()
        self._start(missing)

    def _begin_wait(self) -> None:
        with self._lock:
            self._computing -= 1
            missing = self._hand_out()
        self._start(missing)

    def _end_wait(self) -> None:
        # It may be one too many for a moment: what is left to do behind a wait is short.
        with self._lock:
            self._computing += 1

    def _end_if_done(self) -> None:
        if self._is_stopping and not self._unfinished and not self._queue.waiting:
            for _ in range(self._started):
                self._ready.put(None)
