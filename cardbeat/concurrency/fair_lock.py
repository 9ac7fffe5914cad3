"""A lock for threads that wait: one of each name's gets it in turn."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from cardbeat.concurrency.turns import Turns

STUCK_SECONDS = 1.0
"""After this time whoever holds the lock is not waited for."""


class FairLock:
    """A lock that one of each name's threads gets in turn."""

    def __init__(self) -> None:
        # All below is read and written under this lock only.
        self._lock = threading.Lock()
        self._waiting = Turns[threading.Event]()
        self._taken_at: float | None = None
        """When it was taken last; None while it is free."""

    @contextmanager
    def held(self, name: str, deadline: float) -> Iterator[None]:
        """Hold it. Raises `TimeoutError` if that takes until `deadline`, by `time.monotonic`."""
        mine = threading.Event()
        with self._lock:
            self._waiting.add(mine, name)
            if self._taken_at is None:
                self._pass_on()
        while not mine.wait(max(0.0, min(deadline - time.monotonic(), STUCK_SECONDS))):
            with self._lock:
                if self._taken_at is not None and time.monotonic() - self._taken_at >= STUCK_SECONDS:
                    self._pass_on()
                if not mine.is_set() and time.monotonic() >= deadline:
                    self._waiting.remove(mine, name)
                    raise TimeoutError("timed out")
        try:
            yield
        finally:
            with self._lock:
                self._pass_on()

    def _pass_on(self) -> None:
        self._taken_at = time.monotonic() if self._waiting.waiting else None
        if self._waiting.waiting:
            self._waiting.take().set()
