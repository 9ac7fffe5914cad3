"""Cards asked for at the same moment: rendered once, in turns, and never corrupted."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from cardbeat.cards.render import Drawing
from cardbeat.cards.routes import CardRoutes
from cardbeat.cards.seal import file_name, seal
from cardbeat.cards.store import Store
from cardbeat.cards.turns import SingleFlight, Turns
from cardbeat.config import FREE, UNLIMITED
from cardbeat.database import Database
from cardbeat.errors import Unavailable
from cardbeat.keys.rate import RateLimit
from cardbeat.keys.store import Keys
from cardbeat.web.message import Request
from cardbeat.web.router import Router

PNG = b"\x89PNG\r\n\x1a\n" + bytes(1000) + b"\x00\x00\x00\x00IEND\xaeB`\x82"
ASKERS = 50


class SlowRenderer:
    """Renders when it is let to, and counts."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.lock = threading.Lock()
        self.rendered = 0
        self.fails = False

    def render(self, card: object) -> Drawing:
        assert self.go.wait(10)
        with self.lock:
            self.rendered += 1
        if self.fails:
            raise ZeroDivisionError
        return Drawing(PNG, 0)


class Cards:
    def __init__(self, folder: Path, keys: Keys) -> None:
        self.renderer = SlowRenderer()
        self.store = Store(folder, 10_000_000, "v1")
        self.router = Router(CardRoutes(keys, self.store, self.renderer, RateLimit()).routes())  # type: ignore[arg-type]
        self.key = keys.issue(tier="unlimited").value

    def ask(self, n: int = 0) -> tuple[int, str | None]:
        query = f"title=t{n}&key={self.key}"
        response = self.router.handle(Request("GET", f"/og?{query}", "/og", query))
        return response.status, response.headers.get("X-Cache")

    def ask_at_once(self, numbers: list[int]) -> Counter[Any]:
        """Asks from as many threads; the renderer starts when all of them have."""
        started = threading.Barrier(len(numbers) + 1)

        def ask(n: int) -> tuple[int, str | None]:
            started.wait(10)
            return self.ask(n)

        with ThreadPoolExecutor(len(numbers)) as pool:
            answers = [pool.submit(ask, n) for n in numbers]
            started.wait(10)
            self.renderer.go.set()
            return Counter(answer.result(30) for answer in answers)


@pytest.fixture
def cards(tmp_path: Path, database: Database, clock: Callable[[], float]) -> Iterator[Cards]:
    keys = Keys(database, clock, {"free": FREE, "unlimited": UNLIMITED})
    cards = Cards(tmp_path / "cards", keys)
    yield cards
    cards.store.close()


def test_one_card_asked_for_by_many_at_once_is_rendered_once(cards: Cards) -> None:
    answers = cards.ask_at_once([0] * ASKERS)
    assert answers == {(200, "MISS"): 1, (200, "HIT"): ASKERS - 1}
    assert cards.renderer.rendered == 1


def test_all_are_answered_though_nothing_can_be_stored(cards: Cards, tmp_path: Path) -> None:
    (tmp_path / "cards").write_text("in the way")
    answers = cards.ask_at_once([0] * ASKERS)
    assert sum(answers.values()) == ASKERS
    assert answers[200, "MISS"] == cards.renderer.rendered


def test_those_who_wait_for_a_render_that_fails_are_told(cards: Cards) -> None:
    cards.renderer.fails = True
    answers = cards.ask_at_once([0] * ASKERS)
    assert answers == {(500, None): ASKERS}
    cards.renderer.fails = False
    assert cards.ask() == (200, "MISS")


def test_different_cards_all_come_out(cards: Cards) -> None:
    answers = cards.ask_at_once(list(range(40)))
    assert answers == {(200, "MISS"): 40}
    assert len(list(cards.store.folder.iterdir())) == 40


def test_past_the_queue_callers_are_sent_away() -> None:
    turns = Turns(at_once=1, waiting=2, wait_seconds=30)
    inside = threading.Event()
    leave = threading.Event()

    def hold() -> None:
        with turns.turn():
            inside.set()
            assert leave.wait(10)

    with ThreadPoolExecutor(3) as pool:
        held = [pool.submit(hold) for _ in range(3)]
        assert inside.wait(10)
        deadline = time.monotonic() + 10
        while turns._admitted._value and time.monotonic() < deadline:
            time.sleep(0.001)
        with pytest.raises(Unavailable) as refused, turns.turn():
            pass
        leave.set()
        assert [result.result(10) for result in held] == [None] * 3
    assert refused.value.status == 503
    assert refused.value.headers["Retry-After"] == "1"
    with turns.turn():
        pass


def test_no_more_are_inside_than_allowed() -> None:
    turns = Turns(at_once=2, waiting=100, wait_seconds=30)
    inside, most, lock = 0, 0, threading.Lock()

    def enter() -> None:
        nonlocal inside, most
        with turns.turn():
            with lock:
                inside += 1
                most = max(most, inside)
            threading.Event().wait(0.002)
            with lock:
                inside -= 1

    with ThreadPoolExecutor(20) as pool:
        for result in [pool.submit(enter) for _ in range(60)]:
            result.result(30)
    assert most == 2


def test_waiting_too_long_is_given_up() -> None:
    turns = Turns(at_once=1, waiting=5, wait_seconds=0.01)
    with turns.turn(), pytest.raises(Unavailable), turns.turn():
        pass
    with turns.turn():
        pass


def test_a_flight_that_failed_can_be_tried_again() -> None:
    flights: SingleFlight[int] = SingleFlight()
    with pytest.raises(ZeroDivisionError):
        flights.do("a", lambda: 1 // 0)
    assert flights.do("a", lambda: 1) == (1, True)


def test_several_stores_over_one_folder_never_show_a_torn_card(tmp_path: Path) -> None:
    stores = [Store(tmp_path, 200_000, "v1") for _ in range(2)]
    names = [file_name(str(n)) for n in range(8)]
    cards = {name: seal(name, PNG.replace(bytes(1000), bytes([n]) * 60_000), n) for n, name in enumerate(names)}

    def churn(store: Store) -> None:
        for n in range(200):
            name = names[n * 7 % len(names)]
            assert store.get(name) in (None, cards[name])
            store.put(name, cards[name])

    with ThreadPoolExecutor(4) as pool:
        for result in [pool.submit(churn, store) for store in stores * 2]:
            result.result(60)
    for store in stores:
        store.close()
