"""Single flight: work is done once for all who ask for the same meanwhile, and one piece after another."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Generic, TypeVar

from cardbeat.errors import Unavailable
from cardbeat.later import Later

T = TypeVar("T")


class SingleFlight(Generic[T]):
    """Work by name, in a thread of its own.

    One thread, because two that compute would wait for one another at the interpreter's lock and be slower than one,
    and each thread that has drawn keeps some megabytes of memory for itself. At most `waiting` pieces wait, each for
    `wait_seconds` at most.
    """

    def __init__(self, waiting: int, wait_seconds: float) -> None:
        self._waiting = waiting
        self._wait_seconds = wait_seconds
        self._thread = ThreadPoolExecutor(1, "cards-drawing")
        # Read and written under the lock only: `ask` adds, in any thread, and the drawing thread removes.
        self._lock = threading.Lock()
        self._flights: dict[str, Later[T]] = {}

    def ask(self, name: str, admit: Callable[[], None], work: Callable[[], T]) -> tuple[Later[T], bool]:
        """What will be the result of `work`, and whether it was this call that began it.

        If it is new, `admit` is called first; what it raises is raised here. It holds the lock, without which no work
        ends: what `admit` finds not to be done is not done by anybody else. Raises `Unavailable` when too many wait, as
        does the result when it has waited too long.
        """
        with self._lock:
            if flight := self._flights.get(name):
                return flight, False
            if len(self._flights) > self._waiting:
                raise _busy()
            admit()
            give_up_at = time.monotonic() + self._wait_seconds
            flight = self._flights[name] = Later()
            self._thread.submit(flight.run, partial(self._do, name, work, give_up_at))
            return flight, True

    def stop(self) -> None:
        """Begin nothing more."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _do(self, name: str, work: Callable[[], T], give_up_at: float) -> T:
        try:
            if time.monotonic() > give_up_at:
                raise _busy()
            return work()
        finally:
            with self._lock:
                del self._flights[name]


def _busy() -> Unavailable:
    return Unavailable("busy", "Too many cards are being drawn now; try again in a moment.", 1)
