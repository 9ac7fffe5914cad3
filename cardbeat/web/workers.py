"""Threads for the answers that wait."""

import threading
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from typing import TypeVar

from cardbeat.later import Later

T = TypeVar("T")


class Workers:
    """At most `limit` threads, started as they are needed; each takes the next job when it is free.

    They are daemons: a job that hangs must not keep the program from ending.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._started = 0
        self._unfinished = 0
        self._lock = threading.Lock()

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
            self._do_next()

    def stop(self) -> None:
        """Let every thread end once its job and those already queued are done."""
        for _ in range(self._started):
            self._jobs.put(None)

    def _work(self) -> None:
        while self._do_next():
            pass

    def _do_next(self) -> bool:
        """Wait for a job and do it; False when this is the end."""
        job = self._jobs.get()
        if job is None:
            return False
        job()
        with self._lock:
            self._unfinished -= 1
        return True
