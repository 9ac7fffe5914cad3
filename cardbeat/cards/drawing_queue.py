"""Cards that wait to be drawn: in turns by key, and who gives way when there are too many."""

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from cardbeat.errors import Unavailable
from cardbeat.later import Later
from cardbeat.workers import Workers

T = TypeVar("T")

WAITING_OF_KEY = 8
WAITING_IN_ALL = 512
"""So many cards may wait for one key, and for all together; each holds up to 30 KB."""


class Waiter(NamedTuple):
    """Whose card waits: the identifier of its key, and the network of the client who asks for it."""

    key_id: str
    client: str


class DrawingQueue:
    """Does one piece of work at a time, in turns by key, as `turn_cost` weighs them.

    One thread draws, because two that compute would wait for one another at the interpreter's lock and be slower than
    one, and each thread that has drawn keeps some megabytes of memory for itself.

    Nothing waits in vain: no card's time runs out, because it would do so for those who wait for others. What is
    bounded is how many wait: past `WAITING_OF_KEY` a key's next card is refused, past `WAITING_IN_ALL` one of whoever
    has most waiting gives way to the newest.
    """

    def __init__(self) -> None:
        self._workers = Workers(1, waiting_each=WAITING_OF_KEY, cost=turn_cost)
        # Guards all below. It may be taken again by the same thread: without threads, `submit` does the work itself.
        self._lock = threading.RLock()
        self._waiting: dict[Later[Any], tuple[Waiter, Callable[[], Any]]] = {}
        """What waits for its turn, in the order in which it came."""
        self._is_stopped = False

    def submit(self, waiter: Waiter, admit: Callable[[], None], work: Callable[[], T]) -> Later[T]:
        """What will have come of `work`. If it may wait, `admit` is called first; what that raises is raised here.

        Raises `Unavailable` if it may not wait, as does the result when it has given way to another or at a stop.
        """
        drawn: Later[T] = Later()
        with self._lock:
            if self._workers.is_full(waiter.key_id):
                raise _busy()
            out = self._one_too_many(drawn, waiter)
            if out is drawn:
                raise _busy()
            admit()
            if out is not None:
                del self._waiting[out]
            self._waiting[drawn] = waiter, work
            self._workers.submit(waiter.key_id, lambda: self._do(drawn))
        if out is not None:
            out.fail(_busy())
        return drawn

    def stop(self) -> None:
        """Begin nothing more."""
        self._is_stopped = True
        self._workers.stop()

    def _one_too_many(self, newest: Later[Any], waiter: Waiter) -> Later[Any] | None:
        """What gives way if one more is to wait: perhaps that one itself."""
        if len(self._waiting) < WAITING_IN_ALL:
            return None
        waiters = [*(waiting for waiting, _ in self._waiting.values()), waiter]
        return [*self._waiting, newest][gives_way(waiters)]

    def _do(self, drawn: Later[Any]) -> None:
        with self._lock:
            _, work = self._waiting.pop(drawn, (None, None))
        # It has none if it has given way.
        if work and self._is_stopped:
            drawn.fail(_busy())
        elif work:
            drawn.run(work)


def turn_cost(seconds: float) -> float:
    """What a card costs the key that it was drawn for.

    With the seconds themselves all keys would have the same share of the time, so that one with ordinary cards would
    wait while many others have dear ones drawn. With their square a key whose cards take ten times as long has a
    hundredth of the turns, a tenth of the time.
    """
    return seconds * seconds


def gives_way(waiters: Sequence[Waiter]) -> int:
    """The place, in the order in which they came, of the one that gives way.

    It is one of the key that has most waiting, among those one of the client that has most, among those the newest. So
    neither many cards of one key nor many keys of one client keep others out, even where all clients have the same
    address.
    """
    keys = Counter(waiter.key_id for waiter in waiters)
    clients = Counter(waiter.client for waiter in waiters)

    def weight(place: int) -> tuple[int, int, int]:
        return keys[waiters[place].key_id], clients[waiters[place].client], place

    return max(range(len(waiters)), key=weight)


def _busy() -> Unavailable:
    return Unavailable("busy", "Too many cards wait to be drawn; try again in a moment.", 1)
