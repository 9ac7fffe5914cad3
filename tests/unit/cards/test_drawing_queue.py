"""Whose waiting card is drawn next, and whose gives way."""

import random
import statistics
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from cardbeat.cards.drawing_queue import (
    WAIT_SECONDS,
    WAITING_OF_KEY,
    DrawingQueue,
    Waiter,
    Waiting,
    gives_way,
    turn_cost,
)
from cardbeat.concurrency.fair_queue import FairQueue
from cardbeat.concurrency.later import Job
from cardbeat.config import Tier
from cardbeat.errors import TooMany, Unavailable
from cardbeat.keys.key import CARDS, Key
from cardbeat.keys.rate import RateLimit
from tests.support import FakeClock

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
    waiters = [Waiter("a", "x"), Waiter("b", "y"), Waiter("a", "x"), Waiter("c", "z"), Waiter("d", "w")]
    assert gives_way(waiters) == 2


def test_many_keys_of_one_client_give_way_to_a_page_of_one_key() -> None:
    """A network with 100 keys and 5 cards for each had 30 of 48 new cards of another one refused."""
    page = [Waiter("page", "y")] * 48
    crowd = [Waiter(f"key{number % 100}", "x") for number in range(464)]
    assert gives_way([*page, *crowd]) == len(page) + 463
    assert gives_way([*crowd, *page]) == 463


def test_among_keys_with_as_many_the_newest_of_the_client_with_most_gives_way() -> None:
    waiters = [Waiter("a", "x"), Waiter("b", "y"), Waiter("c", "y"), Waiter("d", "z")]
    assert gives_way(waiters) == 2


def test_where_all_have_as_many_the_newest_of_all_gives_way() -> None:
    assert gives_way([Waiter("a", "x"), Waiter("b", "x"), Waiter("c", "x")]) == 2


def key(key_id: str, renders_per_minute: int = 120) -> Key:
    return Key(key_id, CARDS, "free", Tier(renders_per_minute=renders_per_minute), None, "sk_", 0)


FIRST = key("first", renders_per_minute=1)


class Drawn:
    """A queue in which one card of `FIRST` is being drawn until `go` is set; all others wait."""

    def __init__(self, **options: Any) -> None:
        self.go = threading.Event()
        self.queue = DrawingQueue(RateLimit(), **options)
        begun = threading.Event()
        self.queue.submit(FIRST, "w", lambda: (begun.set(), self.go.wait(10)))
        assert begun.wait(10)

    def submit(self, key: Key, client: str = "x", text: str = "") -> Job[str]:
        return self.queue.submit(key, client, lambda: text)


def test_a_key_has_so_many_cards_waiting_and_no_more() -> None:
    cards = Drawn()
    drawn = [cards.submit(key("a"), text=str(number)) for number in range(WAITING_OF_KEY)]
    with pytest.raises(Unavailable):
        cards.submit(key("a"))
    cards.go.set()
    assert [later.wait() for later in drawn] == [str(number) for number in range(WAITING_OF_KEY)]
    assert cards.submit(key("a"), text="again").wait() == "again"


def test_a_card_past_the_rate_takes_no_place_and_one_without_a_place_takes_no_render() -> None:
    cards = Drawn()
    few = key("few", renders_per_minute=1)
    drawn = cards.submit(few, text="drawn")
    for _ in range(WAITING_OF_KEY):
        with pytest.raises(TooMany, match="1 new cards a minute"):
            cards.submit(few)
    many = key("many", renders_per_minute=WAITING_OF_KEY + 1)
    waiting = [cards.submit(many) for _ in range(WAITING_OF_KEY)]
    with pytest.raises(Unavailable):
        cards.submit(many)
    cards.go.set()
    assert drawn.wait() == "drawn"
    assert [later.wait() for later in waiting] == [""] * WAITING_OF_KEY
    assert cards.submit(many, text="last").wait() == "last"


def test_no_card_gives_way_to_one_past_the_rate() -> None:
    cards = Drawn(waiting_in_all=2)
    older, newer = cards.submit(key("a"), text="a"), cards.submit(key("a"))
    with pytest.raises(TooMany):
        cards.submit(FIRST, "w")
    assert not newer.is_settled
    last = cards.submit(key("c"), "z", "c")
    with pytest.raises(Unavailable):
        newer.wait()
    with pytest.raises(Unavailable):
        cards.submit(key("c"), "z")
    cards.go.set()
    assert [older.wait(), last.wait()] == ["a", "c"]


def test_a_card_of_the_client_with_most_gives_way_to_another_client_of_the_same_key() -> None:
    cards = Drawn()
    stranger = [cards.submit(key("a"), "stranger", str(number)) for number in range(WAITING_OF_KEY)]
    owner = [cards.submit(key("a"), "owner", "own") for _ in range(WAITING_OF_KEY // 2)]
    with pytest.raises(Unavailable):
        cards.submit(key("a"), "owner")
    with pytest.raises(Unavailable):
        cards.submit(key("a"), "stranger")
    half = WAITING_OF_KEY // 2
    assert [later.is_settled for later in stranger] == [False] * half + [True] * half
    cards.go.set()
    assert [later.wait() for later in (*stranger[:half], *owner)] == [*map(str, range(half)), *["own"] * half]


def test_a_card_that_another_client_asks_for_too_does_not_give_way_to_more_of_the_first() -> None:
    """Else whoever knows the URL of a new card asks for it, then for one more, and its owner gets 503."""
    cards = Drawn()
    stranger = [cards.submit(key("a"), "stranger", str(number)) for number in range(WAITING_OF_KEY)]
    cards.queue.join(key("a"), "owner", stranger[-1])
    cards.submit(key("a"), "third")
    assert [later.is_settled for later in stranger[-3:]] == [False, True, False]
    cards.go.set()
    assert stranger[-1].wait() == str(WAITING_OF_KEY - 1)


class Turns(list[Job[Any]]):
    """Stands for the threads: the jobs that wait for their turns."""

    def submit(self, work: Callable[[], Any], *_payers: str) -> Job[Any]:
        self.append(Job(work))
        return self[-1]


def test_turns_that_still_wait_hold_no_card_that_is_drawn() -> None:
    class Png:
        pass

    queue, turns = DrawingQueue(RateLimit()), Turns()
    queue._workers = turns  # type: ignore[assignment]
    drawn = queue.submit(key("a"), "stranger", Png)
    queue.join(key("b"), "owner", drawn)
    for turn in turns:
        turn.do()
    png = weakref.ref(drawn.result())
    assert png()
    del drawn
    assert len(turns) == 2
    assert not png()


def test_whoever_has_as_many_waiting_takes_no_card_over() -> None:
    cards = Drawn(waiting_in_all=4)
    owner = [cards.submit(key("a"), "owner", str(number)) for number in range(2)]
    for _ in range(2):
        cards.submit(key("b"), "stranger")
    cards.queue.join(key("a"), "stranger", owner[0])
    cards.submit(key("c"), "third")
    cards.go.set()
    assert [later.wait() for later in owner] == ["0", "1"]


def test_a_client_with_a_new_key_waits_for_one_card_of_another_one_with_many_keys() -> None:
    cards, order = Drawn(), []
    for number in range(40):
        cards.queue.submit(key(f"many {number}"), "stranger", lambda: (time.sleep(0.002), order.append("many")))
    last = cards.queue.submit(key("one"), "owner", lambda: order.append("one"))
    cards.go.set()
    last.wait()
    assert order.index("one") <= 2


def test_a_card_that_has_waited_too_long_is_refused_while_another_one_is_drawn() -> None:
    clock = FakeClock()
    cards = Drawn(monotonic=clock)
    early = cards.submit(key("a"), text="early")
    clock.now += WAIT_SECONDS - 1
    late = cards.submit(key("b"), text="late")
    clock.now += 1
    newest = cards.submit(key("c"), text="newest")
    with pytest.raises(Unavailable, match="Too many cards wait"):
        early.wait()
    clock.now += WAIT_SECONDS - 1
    cards.go.set()
    assert newest.wait() == "newest"
    with pytest.raises(Unavailable):
        late.wait()


def test_a_card_is_judged_as_it_is_submitted_while_no_lock_is_free() -> None:
    cards = Drawn(waiting_in_all=WAITING_OF_KEY + 1)
    for number in range(WAITING_OF_KEY):
        cards.queue.judge(key("a"), "x")
        cards.submit(key("a"), text=str(number))
    cards.submit(key("b"), "y")
    judged: list[type[Exception] | None] = []

    def judge() -> None:
        for asked, client in ((key("a"), "x"), (FIRST, "w"), (key("c"), "z")):
            try:
                cards.queue.judge(asked, client)
                judged.append(None)
            except (TooMany, Unavailable) as error:
                judged.append(type(error))

    with cards.queue._lock:
        judging = threading.Thread(target=judge)
        judging.start()
        judging.join(10)
    assert judged == [Unavailable, TooMany, None]
    cards.go.set()


def test_counters_agree_with_the_cards_that_wait() -> None:
    chance = random.Random(7)
    waiting = Waiting()
    for _ in range(3000):
        newest = Waiter(chance.choice("abc"), chance.choice("xyz"))
        rivals = [*waiting.rivals(newest, 12)]
        if waiting.is_outdone(newest, 12):
            assert gives_way([*rivals, newest]) == len(rivals)
        elif not rivals:
            waiting.add(newest)
        if chance.random() < 0.4 and waiting.cards:
            waiting.remove(chance.choice([*waiting.cards]))
    for waiter in [*waiting.cards]:
        assert waiting.remove(waiter)
        assert not waiting.remove(waiter)
    assert not waiting.rivals(Waiter("a", "x"), 1)
