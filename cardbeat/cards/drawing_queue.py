"""Cards that wait to be drawn: how many there may be, and which one is next."""

import threading
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from cardbeat.clock import Clock
from cardbeat.errors import Unavailable
from cardbeat.jobs.fair_queue import FairQueue
from cardbeat.jobs.future import Future
from cardbeat.jobs.workers import Workers

Waiting = tuple[Future[Any], Callable[[], Any], float]
"""The future of a card, what draws it, and the time after which it is refused."""

WAITING_OF_KEY: Final = 64
WAITING_OF_CLIENT: Final = 64
WAITING_IN_ALL: Final = 512
WAIT_SECONDS: Final = 10


class DrawingQueue:
    """Draws one card at a time: round robin by client, and for one client round robin by key.

    A card that has waited for more than `WAIT_SECONDS` when its turn comes is refused. At a stop
    all are.
    """

    def __init__(self, monotonic: Clock = time.monotonic) -> None:
        self._monotonic = monotonic
        self._worker = Workers("drawing", 1, running_each=1)
        self._is_stopping = False
        # Used under the lock: the cards of each client by key, and how many wait by name.
        self._lock = threading.Lock()
        self._cards: dict[str, FairQueue[Waiting]] = {}
        self._counts = Counter[str]()

    def require_room(self, key_id: str, client: str) -> None:
        """Raise `Unavailable` if no further card of this key and client may wait."""
        limits = {key_id: WAITING_OF_KEY, client: WAITING_OF_CLIENT, "all": WAITING_IN_ALL}
        with self._lock:
            if any(self._counts[name] >= most for name, most in limits.items()):
                raise _busy()

    def put(self, key_id: str, client: str, draw: Callable[[], Any]) -> Future[Any]:
        """Have a card drawn. Its future raises `Unavailable` if it is refused."""
        drawn = Future[Any]()
        until = self._monotonic() + WAIT_SECONDS
        with self._lock:
            self._cards.setdefault(client, FairQueue()).put(key_id, (drawn, draw, until))
            self._counts.update((key_id, client, "all"))
        self._worker.submit(client, partial(self._draw_next, client))
        return drawn

    def stop(self) -> None:
        """Draw nothing more."""
        self._is_stopping = True
        self._worker.stop()

    def _draw_next(self, client: str) -> None:
        """Draw or refuse a card of the client whose turn it is."""
        with self._lock:
            cards = self._cards[client]
            taken = cards.take()
            if taken is None:
                raise LookupError("this client has more turns than cards")
            key_id, (drawn, draw, until) = taken
            if not cards.count:
                del self._cards[client]
            # This also drops the names that have none left.
            self._counts -= Counter((key_id, client, "all"))
        try:
            if self._is_stopping:
                raise Unavailable("stopping")
            if self._monotonic() > until:
                raise _busy()
            drawn.set_result(draw())
        except Exception as error:
            drawn.set_error(error)


def _busy() -> Unavailable:
    return Unavailable("busy", "Too many cards wait to be drawn; try again in a moment.", 1)
