"""A result that comes later: from the database's writer, or from the thread that draws."""

import threading
from collections.abc import Callable
from functools import partial
from typing import Generic, NoReturn, TypeVar

T = TypeVar("T")
U = TypeVar("U")


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
        self._callbacks: list[Callable[[Later[T]], None]] = []

    def settle(self, outcome: Callable[[], T]) -> None:
        """Give what `result` returns or raises."""
        with self._lock:
            self._outcome = outcome
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback(self)

    def run(self, work: Callable[[], T]) -> None:
        """Do the work now, in this thread, and settle with what comes of it."""
        try:
            result = work()
        except Exception as error:
            self.fail(error)
        else:
            self.settle(lambda: result)

    def fail(self, error: Exception) -> None:
        self.settle(partial(_raise, error))

    def then(self, callback: Callable[["Later[T]"], None]) -> None:
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

    def result(self) -> T:
        """The result, once it is settled: returned or raised."""
        if self._outcome is None:
            raise RuntimeError("not settled yet")
        return self._outcome()

    def wait(self) -> T:
        """The result, however long it takes to come."""
        settled = threading.Lock()
        settled.acquire()
        self.then(lambda _: settled.release())
        settled.acquire()
        return self.result()


def _raise(error: Exception) -> NoReturn:
    raise error
