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
from cardbeat.keys.rate import Limit, settled
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

    def __init__(self, renders: Limit) -> None:
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

        Raises `Unavailable` if it may not wait, as does the result when it has given way to another or at a stop. The
        result raises `TooMany` past the key's limit.
        """
        waiter = Waiter(key.id, client)
        drawn: Later[T] = Later()
        with self._lock:
            if self._is_one_too_many(waiter):
                raise _busy()
            # From here on it has its place, but makes nobody give way before its render is taken.
            self._waiting[waiter] = None
            self._take_render(key).then(partial(self._go_on, waiter, work, drawn))
        return drawn

    def stop(self) -> None:
        """Begin nothing more."""
        self._is_stopped = True
        self._workers.stop()

    def _is_one_too_many(self, newest: Waiter) -> bool:
        """Whether this one gives way itself if it is to wait too."""
        if sum(waiter.key_id == newest.key_id for waiter in self._waiting) >= WAITING_OF_KEY:
            return True
        if len(self._waiting) < WAITING_IN_ALL:
            return False
        return gives_way([*self._waiting, newest]) == len(self._waiting)

    def _take_render(self, key: Key) -> Later[None]:
        """Settled once it is taken. The result raises `TooMany` past the key's limit."""
        per_minute = key.limits.renders_per_minute
        if per_minute is None:
            return settled(0).map(lambda _: None)
        return self._renders.take_later(key.id, per_minute).map(partial(_require_no_wait, per_minute))

    def _go_on(self, waiter: Waiter, work: Callable[[], T], drawn: Later[T], taken: Later[None]) -> None:
        """Let the card wait for its turn, if its render was taken."""
        try:
            taken.result()
            drawn.follow(self._put(waiter, work))
        except Exception as error:
            with self._lock:
                self._waiting.pop(waiter, None)
            drawn.fail(error)

    def _put(self, waiter: Waiter, work: Callable[[], T]) -> Job[T]:
        """Raises `Unavailable` where it gives way itself."""
        with self._lock:
            # Who still asks for its render may be refused, and then nobody is to have given way to it.
            placed = [other for other in self._waiting if other.drawn is not None or other is waiter]
            out = placed[gives_way(placed)] if len(placed) > WAITING_IN_ALL else None
            if out is waiter:
                raise _busy()
            if out is not None:
                del self._waiting[out]
            drawn = waiter.drawn = self._workers.submit(waiter.key_id, partial(self._do, waiter, work))
        if out is not None and out.drawn is not None:
            out.drawn.cancel(_busy())
        return drawn

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


def _require_no_wait(per_minute: int, wait_seconds: float) -> None:
    if wait_seconds:
        raise TooMany(f"This key may draw {per_minute} new cards a minute; try again later.", wait_seconds)


def _busy() -> Unavailable:
    return Unavailable("busy", "Too many cards wait to be drawn; try again in a moment.", 1)
