"""Cards that wait to be drawn: which key's card is next, and which card is refused when too many wait."""

import sys
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from cardbeat.concurrency.later import Job, Workers
from cardbeat.errors import TooMany, Unavailable
from cardbeat.keys.key import Key
from cardbeat.keys.rate import RateLimit

T = TypeVar("T")

WAITING_OF_KEY = 8  # cards that may wait for one key; each holds up to 30 KB
WAITING_IN_ALL = 512  # cards that may wait for all keys together


@dataclass(eq=False, slots=True)
class Waiter:
    """A card that waits: the identifier of its key, the network of its client, and its job."""

    key_id: str
    client: str
    drawn: Job[Any] | None = None


class DrawingQueue:
    """Draws one card at a time. The next one is of the key whose waiting cards cost least so far, by `turn_cost`.

    Only one thread draws. Two would wait for each other at the interpreter's lock and be slower than one, and each
    thread that has drawn keeps some megabytes of memory.

    No card waits in vain: there is no time limit, only a limit on how many wait. Past `WAITING_OF_KEY` the next card of
    a key is refused. Past `waiting_in_all` a card of the key with most waiting is refused, see `gives_way`. `renders`
    limits how many a key may add in a minute.
    """

    def __init__(self, renders: RateLimit, waiting_in_all: int = WAITING_IN_ALL) -> None:
        self._renders = renders
        self._waiting_in_all = waiting_in_all
        # Without a limit of its own: cancelled jobs stay in its queue.
        self._workers = Workers(1, waiting_each=sys.maxsize, cost=turn_cost)
        # Guards all below. Reentrant: if no thread can be started, `submit` does the work itself.
        self._lock = threading.RLock()
        self._waiting: dict[Waiter, None] = {}  # in the order of arrival
        self._is_stopped = False

    def submit(self, key: Key, client: str, work: Callable[[], T]) -> Job[T]:
        """The result of `work`, which a thread will do for this key and the client of this network.

        Raises `TooMany` past the key's limit, and `Unavailable` if the card may not wait. The result raises
        `Unavailable` when the card has given way to another one, or at a stop.
        """
        waiter = Waiter(key.id, client)
        with self._lock:
            out = self._makes_way_for(waiter)
            self._take_render(key)
            if out is not None:
                del self._waiting[out]
            self._waiting[waiter] = None
            drawn = waiter.drawn = self._workers.submit(waiter.key_id, partial(self._do, waiter, work))
        if out is not None and out.drawn is not None:
            out.drawn.cancel(_busy())
        return drawn

    def stop(self) -> None:
        """Begin nothing more."""
        self._is_stopped = True
        self._workers.stop()

    def _makes_way_for(self, newest: Waiter) -> Waiter | None:
        """The card that must give way to this one, if there are too many. Raises `Unavailable` if this one must."""
        if sum(waiter.key_id == newest.key_id for waiter in self._waiting) >= WAITING_OF_KEY:
            raise _busy()
        if len(self._waiting) < self._waiting_in_all:
            return None
        waiters = [*self._waiting, newest]
        out = waiters[gives_way(waiters)]
        if out is newest:
            raise _busy()
        return out

    def _take_render(self, key: Key) -> None:
        """Count one render of the key. Raises `TooMany` past its limit."""
        per_minute = key.limits.renders_per_minute
        if per_minute is not None and (wait_seconds := self._renders.take(key.id, per_minute)):
            raise TooMany(f"This key may draw {per_minute} new cards a minute; try again later.", wait_seconds)

    def _do(self, waiter: Waiter, work: Callable[[], T]) -> T:
        with self._lock:
            has_given_way = waiter not in self._waiting
            self._waiting.pop(waiter, None)
        if has_given_way or self._is_stopped:
            raise _busy()
        return work()


def turn_cost(seconds: float) -> float:
    """The cost of a card to its key: the square of its seconds.

    With the seconds themselves all keys would have the same share of the time: a key with ordinary cards would wait
    while many others have slow ones drawn. With the square, a key whose cards take ten times as long gets a hundredth
    of the cards, and a tenth of the time.
    """
    return seconds * seconds


def gives_way(waiters: Sequence[Waiter]) -> int:
    """The place, in the order of arrival, of the card to refuse.

    It is one of the key with most waiting cards; among those, one of the client with most; among those, the newest. So
    neither many cards of one key nor many keys of one client keep others out, even if all clients have one address.
    """
    keys = Counter(waiter.key_id for waiter in waiters)
    clients = Counter(waiter.client for waiter in waiters)

    def weight(place: int) -> tuple[int, int, int]:
        return keys[waiters[place].key_id], clients[waiters[place].client], place

    return max(range(len(waiters)), key=weight)


def _busy() -> Unavailable:
    return Unavailable("busy", "Too many cards wait to be drawn; try again in a moment.", 1)
