"""Whose waiting card is drawn next, and whose gives way."""

import random
import statistics
import threading

import pytest

from cardbeat.cards.drawing_queue import WAITING_OF_KEY, DrawingQueue, Waiter, gives_way, turn_cost
from cardbeat.config import FREE
from cardbeat.errors import TooMany, Unavailable
from cardbeat.fair_queue import FairQueue
from cardbeat.keys.key import CARDS, Key
from cardbeat.later import Later

DEAR_KEYS = 28


def seconds_waited(chance: random.Random, dear: float, between: float, cards: int = 300) -> list[float]:
    """How long the cards of a key took that cost 1 each, asked for one after the other, beside keys with dear ones."""
    queue: FairQueue[float] = FairQueue(WAITING_OF_KEY)
    for number in range(DEAR_KEYS):
        queue.put(f"dear {number}", 0)
    now, asks_at, waited = 0.0, 40 * dear, []
    while len(waited) < cards:
        name, asked_at = queue.take() or ("", 0.0)
        seconds = chance.uniform(0.8, 1.2) * (1 if name == "ordinary" else dear)
        now += seconds
        if name == "ordinary":
            waited.append(now - asked_at)
            asks_at = now + chance.expovariate(1 / between)
        else:
            queue.put(name, 0)
        if asks_at <= now:
            queue.put("ordinary", asks_at)
            asks_at = float("inf")
        queue.done(name, turn_cost(seconds))
    return waited


def test_ordinary_cards_are_soon_drawn_beside_many_keys_with_dear_ones() -> None:
    for between in (10, 20, 60):
        assert statistics.median(seconds_waited(random.Random(1), dear=10, between=between)) <= 8


def test_the_newest_of_the_key_with_most_waiting_gives_way() -> None:
    waiters = [Waiter("a", "x"), Waiter("b", "y"), Waiter("a", "x"), Waiter("c", "y"), Waiter("d", "y")]
    assert gives_way(waiters) == 2


def test_among_keys_with_as_many_the_newest_of_the_client_with_most_gives_way() -> None:
    waiters = [Waiter("a", "x"), Waiter("b", "y"), Waiter("c", "y"), Waiter("d", "z")]
    assert gives_way(waiters) == 2


def test_where_all_have_as_many_the_newest_of_all_gives_way() -> None:
    assert gives_way([Waiter("a", "x"), Waiter("b", "x"), Waiter("c", "x")]) == 2


class Asked:
    """A limit of renders that answers when the test does."""

    def __init__(self) -> None:
        self.taken: list[Later[float]] = []

    def take_later(self, _name: str, _per_minute: int) -> Later[float]:
        self.taken.append(Later())
        return self.taken[-1]


def key(key_id: str) -> Key:
    return Key(key_id, CARDS, "free", FREE, None, "sk_", 0)


def test_a_card_is_drawn_once_its_render_is_taken_and_what_is_refused_leaves_its_place() -> None:
    limit = Asked()
    queue = DrawingQueue(limit)
    drawn = [queue.submit(key("a"), "x", lambda number=number: number) for number in range(WAITING_OF_KEY)]  # type: ignore[misc]
    with pytest.raises(Unavailable):
        queue.submit(key("a"), "x", lambda: 9)
    assert len(limit.taken) == WAITING_OF_KEY
    limit.taken[0].succeed(3)
    limit.taken[1].fail(Unavailable("database_unavailable", "Try again."))
    for taken in limit.taken[2:]:
        taken.succeed(0)
    with pytest.raises(TooMany, match="120 new cards a minute"):
        drawn[0].wait()
    with pytest.raises(Unavailable, match="Try again"):
        drawn[1].wait()
    assert [later.wait() for later in drawn[2:]] == list(range(2, WAITING_OF_KEY))
    assert not queue._waiting


def test_nobody_gives_way_to_a_card_whose_render_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cardbeat.cards.drawing_queue.WAITING_IN_ALL", 2)
    limit, go = Asked(), threading.Event()
    queue = DrawingQueue(limit)
    begun = threading.Event()
    queue.submit(key("first"), "x", lambda: (begun.set(), go.wait(10)))
    limit.taken[0].succeed(0)
    assert begun.wait(10)
    older, newer, refused, last = (
        queue.submit(key(name), client, lambda name=name: name) for name, client in zip("aabc", "xxyz", strict=True)
    )
    for place, wait_seconds in ((1, 0), (2, 0), (3, 5)):
        limit.taken[place].succeed(wait_seconds)
    assert not older.is_settled
    assert not newer.is_settled
    limit.taken[4].succeed(0)
    with pytest.raises(TooMany):
        refused.wait()
    with pytest.raises(Unavailable):
        newer.wait()
    go.set()
    assert [older.wait(), last.wait()] == ["a", "c"]
