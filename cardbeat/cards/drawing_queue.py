"""Cards that wait to be drawn: in turns by key, and who gives way when there are too many."""

import sys
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from cardbeat.errors import TooMany, Unavailable
from cardbeat.keys.key import Key
from cardbeat.keys.rate import RateLimit
from cardbeat.later import Job, Later, Workers

T = TypeVar("T")

WAITING_OF_KEY = 8
WAITING_IN_ALL = 512
"""So many cards may wait for one key, and for all together; each holds up to 30 KB."""


@dataclass(eq=False, slots=True)
class Waiter:
    """A card that waits: the identifier of its key, the network of the client who asks for it, and what is drawn."""

    key_id: str
    client: str
    drawn: Job[Any] | None = None


class DrawingQueue:
    """Does one piece of work at a time, in turns by key, as `turn_cost` weighs them.

    One thread draws, because two that compute would wait for one another at the interpreter's lock and be slower than
    one, and each thread that has drawn keeps some megabytes of memory for itself.

    Nothing waits in vain: no card's time runs out, because it would do so for those who wait for others. What is
    bounded is how many wait: past `WAITING_OF_KEY` a key's next card is refused, past `WAITING_IN_ALL` one of whoever
    has most waiting gives way to the newest. `renders` bounds how many begin to wait in a minute.
    """

    def __init__(self, renders: RateLimit) -> None:
        self._renders = renders
        # It sets no limit of its own: among its jobs are some that have given way.
        self._workers = Workers(1, waiting_each=sys.maxsize, cost=turn_cost)
        # Guards all below. It may be taken again by the same thread: without threads, `submit` does the work itself.
        self._lock = threading.RLock()
        self._waiting: dict[Waiter, None] = {}
        """In the order in which they came."""
        self._is_stopped = False

    def submit(self, key: Key, client: str, work: Callable[[], T]) -> Later[T]:
        """What will have come of `work`, done for this key and the client of this network.

        Raises `Unavailable` if it may not wait, as does the result when it has given way to another or at a stop; and
        `TooMany` past the key's limit.
        """
        waiter = Waiter(key.id, client)
        with self._lock:
            out = self._one_too_many(waiter)
            if out is waiter:
                raise _busy()
            self._take_render(key)
            if out is not None:
                del self._waiting[out]
            self._waiting[waiter] = None
            drawn = waiter.drawn = self._workers.submit(key.id, partial(self._do, waiter, work))
        if out is not None and out.drawn is not None:
            out.drawn.cancel(_busy())
        return drawn

    def stop(self) -> None:
        """Begin nothing more."""
        self._is_stopped = True
        self._workers.stop()

    def _one_too_many(self, newest: Waiter) -> Waiter | None:
        """What gives way if one more is to wait: perhaps that one itself."""
        if sum(waiter.key_id == newest.key_id for waiter in self._waiting) >= WAITING_OF_KEY:
            return newest
        if len(self._waiting) < WAITING_IN_ALL:
            return None
        waiters = [*self._waiting, newest]
        return waiters[gives_way(waiters)]

    def _take_render(self, key: Key) -> None:
        per_minute = key.limits.renders_per_minute
        wait_seconds = 0 if per_minute is None else self._renders.take(key.id, per_minute)
        if wait_seconds:
            raise TooMany(f"This key may draw {per_minute} new cards a minute; try again later.", wait_seconds)

    def _do(self, waiter: Waiter, work: Callable[[], T]) -> T:
        with self._lock:
            has_given_way = waiter not in self._waiting
            self._waiting.pop(waiter, None)
        if has_given_way or self._is_stopped:
            raise _busy()
        return work()


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
