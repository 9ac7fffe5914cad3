"""Cards that wait to be drawn: which key's card is next, and which card is refused when too many wait."""

import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from cardbeat.clock import Clock
from cardbeat.concurrency.later import Job, Workers
from cardbeat.errors import TooMany, Unavailable
from cardbeat.keys.key import Key
from cardbeat.keys.rate import RateLimit

T = TypeVar("T")

WAITING_OF_KEY = 64  # cards that may wait for one key; each holds up to 30 KB
WAITING_IN_ALL = 512  # cards that may wait for all keys together
WAIT_SECONDS = 10  # how long one may wait


@dataclass(eq=False, slots=True)
class Waiter:
    """A card that waits: the identifier of its key, the network of its client, until when it may wait, its job."""

    key_id: str
    client: str
    until: float = 0.0
    drawn: Job[Any] | None = None

    def draw(self) -> None:
        """Do the job in the first of its turns. The later ones, which may wait for minutes, hold no PNG."""
        drawn, self.drawn = self.drawn, None
        if drawn is not None:
            drawn.do()


class Waiting:
    """The cards that wait, in the order of arrival, and how many of each key and client.

    Changed under the lock of `DrawingQueue`. `is_outdone` needs none: it reads each counter in one atomic step.
    """

    def __init__(self) -> None:
        self.cards: dict[Waiter, None] = {}
        self._of_key: Counter[str] = Counter()
        self._of_client: Counter[str] = Counter()
        self._of_both: dict[str, Counter[str]] = {}  # by key, then by client

    def add(self, waiter: Waiter) -> None:
        self.cards[waiter] = None
        for counter, name in self._counters(waiter):
            counter[name] += 1

    def remove(self, waiter: Waiter) -> bool:
        """Return whether it was still there."""
        if waiter not in self.cards:
            return False
        del self.cards[waiter]
        for counter, name in self._counters(waiter):
            counter[name] -= 1
            if not counter[name]:
                del counter[name]
        if waiter.key_id not in self._of_key:
            del self._of_both[waiter.key_id]
        return True

    def of_client(self, client: str) -> int:
        return self._of_client[client]

    def rivals(self, newest: Waiter, in_all: int) -> list[Waiter]:
        """The cards of which one must give way to this one, or this one to them; none while there is room."""
        if self._of_key[newest.key_id] >= WAITING_OF_KEY:
            return [waiter for waiter in self.cards if waiter.key_id == newest.key_id]
        return [*self.cards] if len(self.cards) >= in_all else []

    def is_outdone(self, newest: Waiter, in_all: int) -> bool:
        """Whether there is no room, and none has more waiting than the key and the client of this card."""
        of_key, of_client = self._of_key[newest.key_id] + 1, self._of_client[newest.client] + 1
        if of_key > WAITING_OF_KEY:
            clients = self._of_both.get(newest.key_id, Counter())
            return _is_most(clients[newest.client] + 1, clients)
        if len(self.cards) < in_all:
            return False
        if not all(_is_most(max(of_key, of_client) - 1, counter) for counter in (self._of_key, self._of_client)):
            return False
        if of_client > of_key:
            keys = [key for key, clients in list(self._of_both.items()) if newest.client in clients]
            return all(of_key >= self._of_key[key] for key in keys)
        return all(of_client >= self._of_client[client] for client in list(self._of_both.get(newest.key_id, ())))

    def _counters(self, waiter: Waiter) -> list[tuple[Counter[str], str]]:
        of_both = self._of_both.setdefault(waiter.key_id, Counter())
        return [(self._of_key, waiter.key_id), (self._of_client, waiter.client), (of_both, waiter.client)]


def _is_most(count: int, counter: Counter[str]) -> bool:
    # `list` copies in one atomic step: another thread may change the counter.
    return count >= max(list(counter.values()), default=0)


class DrawingQueue:
    """Draws one card at a time. The next one is of the key and the client's network whose cards cost least so far, by
    `turn_cost`: neither many keys of one network nor many networks with one key get more than another client.

    Only one process draws, and it keeps some megabytes of memory.

    A card that has waited for `WAIT_SECONDS` is refused. Past `WAITING_OF_KEY` a card of the client that has most
    waiting for this key is refused. Past `waiting_in_all` a card of the key or client with most waiting is refused, see
    `gives_way`. `renders` limits how many a key may add in a minute. A cards key is public: clients of one key share
    what it may have.
    """

    def __init__(
        self, renders: RateLimit, waiting_in_all: int = WAITING_IN_ALL, monotonic: Clock = time.monotonic
    ) -> None:
        self._renders = renders
        self._waiting_in_all = waiting_in_all
        self._monotonic = monotonic
        # Without a limit of its own: cancelled jobs stay in its queue.
        self._workers = Workers(1, waiting_each=sys.maxsize, cost=turn_cost)
        # Guards all below. Reentrant: if no thread can be started, `submit` does the work itself.
        self._lock = threading.RLock()
        self._waiting = Waiting()
        self._is_stopped = False

    def judge(self, key: Key, client: str) -> None:
        """Raise as `submit` does, where the counters alone tell it; to be called before any work for the card.

        Many refusals do not delay the cards that are drawn: it takes no lock that these need.
        """
        if self._waiting.is_outdone(Waiter(key.id, client), self._waiting_in_all):
            raise _busy()
        _count_render(self._renders.wait_seconds, key, client)

    def submit(self, key: Key, client: str, work: Callable[[], T]) -> Job[T]:
        """The result of `work`, which a thread will do for this key and the client of this network.

        Raises `TooMany` past the key's limit, and `Unavailable` if the card may not wait. The result raises
        `Unavailable` when the card has given way to another one, or at a stop.
        """
        self._give_up_late()
        waiter = Waiter(key.id, client, self._monotonic() + WAIT_SECONDS)
        with self._lock:
            out = self._makes_way_for(waiter)
            _count_render(self._renders.take, key, client)
            if out is not None:
                self._waiting.remove(out)
            self._waiting.add(waiter)
            drawn = waiter.drawn = Job(partial(self._do, waiter, work))
            self._workers.submit(waiter.draw, key.id, client)
        if out is not None:
            _give_up(out)
        return drawn

    def join(self, key: Key, client: str, drawn: Job[T]) -> None:
        """Have a card that waits drawn in the turn of this client too, if that comes first.

        It counts for the client that has fewer waiting: the others' next cards don't make it give way.
        """
        with self._lock:
            waiter = next((waiter for waiter in self._waiting.cards if waiter.drawn is drawn), None)
            if waiter and self._waiting.of_client(client) + 1 < self._waiting.of_client(waiter.client):
                self._waiting.remove(waiter)
                waiter.client, waiter.until = client, self._monotonic() + WAIT_SECONDS
                self._waiting.add(waiter)
        if waiter:
            self._workers.submit(waiter.draw, key.id, client)

    def stop(self) -> None:
        """Begin nothing more."""
        self._is_stopped = True
        self._workers.stop()

    def _makes_way_for(self, newest: Waiter) -> Waiter | None:
        """The card that must give way to this one, if there are too many. Raises `Unavailable` if this one must."""
        rivals = self._waiting.rivals(newest, self._waiting_in_all)
        if not rivals:
            return None
        out = [*rivals, newest][gives_way([*rivals, newest])]
        if out is newest:
            raise _busy()
        return out

    def _give_up_late(self) -> None:
        """Refuse the cards that have waited for too long. While one waits, this is called at least once a card."""
        now, late = self._monotonic(), []
        with self._lock:
            while (first := next(iter(self._waiting.cards), None)) is not None and first.until <= now:
                self._waiting.remove(first)
                late.append(first)
        for waiter in late:
            _give_up(waiter)

    def _do(self, waiter: Waiter, work: Callable[[], T]) -> T:
        self._give_up_late()
        with self._lock:
            has_waited = self._waiting.remove(waiter)
        if self._is_stopped or not has_waited:
            raise _busy()
        return work()


def _count_render(count: Callable[[str, int, str], float], key: Key, client: str) -> None:
    """Take one render of the key, or ask whether there is one. Raises `TooMany` past its limit."""
    per_minute = key.limits.renders_per_minute
    if per_minute is not None and (wait_seconds := count(key.id, per_minute, client)):
        raise TooMany(f"This key may draw {per_minute} new cards a minute; try again later.", wait_seconds)


def turn_cost(seconds: float) -> float:
    """The cost of a card to its key: the square of its seconds.

    With the seconds themselves all keys would have the same share of the time: a key with ordinary cards would wait
    while many others have slow ones drawn. With the square, a key whose cards take ten times as long gets a hundredth
    of the cards, and a tenth of the time.
    """
    return seconds * seconds


def gives_way(waiters: Sequence[Waiter]) -> int:
    """The place, in the order of arrival, of the card to refuse.

    It is one of the key or the client that has most waiting; among those of that client, one of the key with most; then
    one of the client with most; then the newest. So neither many cards of one key nor many keys of one client keep
    others out, even if all clients have one address.
    """
    keys = Counter(waiter.key_id for waiter in waiters)
    clients = Counter(waiter.client for waiter in waiters)

    def weight(place: int) -> tuple[int, int, int, int]:
        key, client = keys[waiters[place].key_id], clients[waiters[place].client]
        return max(key, client), key, client, place

    return max(range(len(waiters)), key=weight)


def _give_up(waiter: Waiter) -> None:
    if (drawn := waiter.drawn) is not None:
        drawn.cancel(_busy())


def _busy() -> Unavailable:
    return Unavailable("busy", "Too many cards wait to be drawn; try again in a moment.", 1)
