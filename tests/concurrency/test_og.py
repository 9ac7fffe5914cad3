"""Cards asked for at the same moment: rendered once, in turns, and never corrupted."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

from cardbeat.cards.render import Drawing
from cardbeat.cards.routes import WAITING_RENDERS, CardRoutes
from cardbeat.cards.seal import seal
from cardbeat.cards.store import Store, file_name
from cardbeat.config import FREE, UNLIMITED
from cardbeat.database import Database
from cardbeat.errors import Unavailable
from cardbeat.keys.rate import RateLimit
from cardbeat.keys.store import Keys
from cardbeat.later import Later
from cardbeat.web.message import Request, Response
from cardbeat.web.router import Router
from tests.support import taken

PNG = b"\x89PNG\r\n\x1a\n" + bytes(1000) + b"\x00\x00\x00\x00IEND\xaeB`\x82"
ASKERS = 50


class SlowRenderer:
    """Renders when it is let to, and counts."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.at_work = threading.Lock()
        self.rendered = 0
        self.fails = False

    def render(self, card: object) -> Drawing:
        assert self.at_work.acquire(blocking=False), "two cards are drawn at a time"
        try:
            assert self.go.wait(10)
            self.rendered += 1
            if self.fails:
                raise ZeroDivisionError
            return Drawing(PNG, 0)
        finally:
            self.at_work.release()


class Cards:
    def __init__(self, folder: Path, keys: Keys) -> None:
        self.renderer = SlowRenderer()
        self.store = Store(folder, 10_000_000, "v1")
        self.routes = CardRoutes(keys, self.store, self.renderer, RateLimit())  # type: ignore[arg-type]
        self.router = Router(self.routes.routes())
        self.key = keys.issue(tier="unlimited").value

    def ask(self, n: int = 0) -> tuple[int, str | None]:
        response = taken(self.router.handle(self.request(n)))
        return response.status, response.headers.get("X-Cache")

    def request(self, n: int) -> Request:
        query = f"title=t{n}&key={self.key}"
        return Request("GET", f"/og?{query}", "/og", query)

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


def test_a_card_is_not_drawn_for_who_has_waited_too_long(cards: Cards, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cardbeat.cards.routes.WAIT_SECONDS", -1)
    assert cards.ask() == (503, None)
    assert cards.renderer.rendered == 0


def test_different_cards_are_drawn_one_at_a_time_and_all_come_out(cards: Cards) -> None:
    answers = cards.ask_at_once(list(range(40)))
    assert answers == {(200, "MISS"): 40}
    assert len(list(cards.store.folder.iterdir())) == 40


def test_whoever_asks_for_something_else_does_not_wait_behind_cards_to_be_drawn(cards: Cards) -> None:
    cards.renderer.go.set()
    assert cards.ask(0) == (200, "MISS")
    cards.renderer.go.clear()
    answers: SimpleQueue[Later[Response]] = SimpleQueue()
    for n in range(1, 201):
        answer = cards.routes.card(cards.request(n))
        assert isinstance(answer, Later)
        answer.then(answers.put)
    for _ in range(200 - 1 - WAITING_RENDERS):
        with pytest.raises(Unavailable) as caught:
            answers.get(timeout=10).result()
        assert (caught.value.status, caught.value.headers["Retry-After"]) == (503, "1")
    assert cards.ask(0) == (200, "HIT")
    assert cards.router.handle(Request("GET", "/og?title=a", "/og", "title=a")).status == 401
    cards.renderer.go.set()
    drawn = Counter(answers.get(timeout=10).result().status for _ in range(1 + WAITING_RENDERS))
    assert drawn == {200: 1 + WAITING_RENDERS}


def test_several_stores_over_one_folder_never_show_a_torn_card(tmp_path: Path) -> None:
    stores = [Store(tmp_path, 200_000, "v1") for _ in range(2)]
    names = [file_name(str(n)) for n in range(8)]
    cards = {name: seal(name, PNG.replace(bytes(1000), bytes([n]) * 60_000), n) for n, name in enumerate(names)}

    def churn(store: Store) -> None:
        for n in range(200):
            name = names[n * 7 % len(names)]
            stored = store.get(name)
            assert stored is None or stored[0] == cards[name]
            store.put(name, cards[name])

    with ThreadPoolExecutor(4) as pool:
        for result in [pool.submit(churn, store) for store in stores * 2]:
            result.result(60)
    for store in stores:
        store.close()
