"""Whose waiting card is drawn next, and whose gives way."""

import random
import statistics

from cardbeat.cards.drawing_queue import WAITING_OF_KEY, Waiter, gives_way, turn_cost
from cardbeat.fair_queue import FairQueue

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
