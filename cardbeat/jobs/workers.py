"""Threads that do jobs, which may block. The jobs of clients are served round robin."""

import logging
import threading
from collections.abc import Callable

from cardbeat.jobs.background import start_thread
from cardbeat.jobs.fair_queue import FairQueue

log = logging.getLogger(__name__)

Job = Callable[[], object]


class Workers:
    """Some threads, and a fair queue of jobs by client.

    Of one client at most `running_each` jobs run at once, so that the other threads stay free.
    The threads are daemons: a job that hangs does not keep the program from ending.
    """

    def __init__(self, name: str, threads: int, running_each: int) -> None:
        """Start the threads. Raises `StartupError` where the system grants none."""
        # All below is read and written under this condition's lock only.
        self._changed = threading.Condition(threading.Lock())
        self._queue: FairQueue[Job] = FairQueue(running_each)
        self._is_stopping = False
        for _ in range(threads):
            start_thread(
                threading.Thread(target=self._work, name=name, daemon=True)
            )

    def submit(self, client: str, job: Job, key: str = "") -> None:
        """Have a job done for a client. Its jobs are served round robin by key."""
        with self._changed:
            self._queue.put(client, job, key)
            self._changed.notify()

    def stop(self) -> None:
        """Let each thread end when all jobs are done."""
        with self._changed:
            self._is_stopping = True
            self._changed.notify_all()

    def _work(self) -> None:
        while (taken := self._next()) is not None:
            client, job = taken
            try:
                job()
            except Exception:
                log.exception("a job failed")
            # Freed before the wait for the next job: it may hold a large answer.
            del taken, job
            with self._changed:
                self._queue.done(client)
                self._changed.notify()

    def _next(self) -> tuple[str, Job] | None:
        """Wait for the next job; None at the end."""
        with self._changed:
            while (taken := self._queue.take()) is None:
                if self._is_stopping and not self._queue.count:
                    self._changed.notify_all()
                    return None
                self._changed.wait()
            return taken
