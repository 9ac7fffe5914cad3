"""Whose turn it is to render: each card once, and only so many at a time."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Generic, TypeVar

from cardbeat.errors import Unavailable

T = TypeVar("T")


class SingleFlight(Generic[T]):
    """Work that several callers ask for at once is done by the first of them."""

    def __init__(self) -> None:
        self._flights: dict[str, Future[T]] = {}
        self._lock = threading.Lock()

    def do(self, name: str, work: Callable[[], T]) -> tuple[T, bool]:
        """The result of `work`, and whether it was done by this call. What it raises is raised to all who wait."""
        with self._lock:
            flight = self._flights.get(name)
            first = flight is None
            if flight is None:
                flight = self._flights[name] = Future()
        if not first:
            return flight.result(), False
        try:
            flight.set_result(work())
        except BaseException as error:
            flight.set_exception(error)
        finally:
            with self._lock:
                del self._flights[name]
        return flight.result(), True


class Turns:
    """At most `at_once` callers inside, and at most `waiting` before the door, each for `wait_seconds` at most."""

    def __init__(self, at_once: int, waiting: int, wait_seconds: float) -> None:
        self._inside = threading.BoundedSemaphore(at_once)
        self._admitted = threading.BoundedSemaphore(at_once + waiting)
        self._wait_seconds = wait_seconds

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """Raises `Unavailable` when the queue is full or the wait too long."""
        if not self._admitted.acquire(blocking=False):
            raise _busy()
        try:
            if not self._inside.acquire(timeout=self._wait_seconds):
                raise _busy()
            try:
                yield
            finally:
                self._inside.release()
        finally:
            self._admitted.release()


def _busy() -> Unavailable:
    return Unavailable("busy", "Too many cards are being drawn now; try again in a moment.", 1)
