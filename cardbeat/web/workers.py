"""Threads for the answers that wait."""

import threading
from collections.abc import Callable
from queue import SimpleQueue


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

    def submit(self, job: Callable[[], None]) -> None:
        with self._lock:
            self._unfinished += 1
            missing = self._started < min(self._unfinished, self._limit)
            self._started += missing
        self._jobs.put(job)
        if missing:
            threading.Thread(target=self._work, name=f"worker-{self._started}", daemon=True).start()

    def stop(self) -> None:
        """Let every thread end once its job and those already queued are done."""
        for _ in range(self._started):
            self._jobs.put(None)

    def _work(self) -> None:
        while job := self._jobs.get():
            job()
            with self._lock:
                self._unfinished -= 1
