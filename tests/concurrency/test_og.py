"""Cards asked for at the same moment: rendered once, in turns, and never corrupted."""

import contextlib
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

from cardbeat.cards import routes
from cardbeat.cards.drawing.render import Drawing
from cardbeat.cards.drawing_queue import WAITING_OF_KEY, DrawingQueue
from cardbeat.cards.request import Card
from cardbeat.cards.routes import READERS_OF_ONE, CardRoutes, Flight
from cardbeat.cards.seal import seal
from cardbeat.cards.store import Store, file_name
from cardbeat.concurrency.later import WAITING_EACH, Later
from cardbeat.config import FREE, HttpLimits, Tier
from cardbeat.database import Database
from cardbeat.errors import Refusal, TooMany, Unavailable
from cardbeat.keys.key import Key
from cardbeat.keys.rate import RateLimit
from cardbeat.keys.store import Keys, hash_of
from cardbeat.web.forwarded import network_of
from cardbeat.web.message import Request, Response
from cardbeat.web.router import Router
from cardbeat.web.server import HttpServer
from tests.http.malformed import get
from tests.http.sockets import Client, starting
from tests.support import answer_of, wait_until

PNG = b"\x89PNG\r\n\x1a\n" + bytes(1000) + b"\x00\x00\x00\x00IEND\xaeB`\x82"
ASKERS = 50
RUNNING_AND_WAITING = READERS_OF_ONE + WAITING_EACH


class SlowRenderer:
    """Renders when it is let to, and counts."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.begun: SimpleQueue[str] = SimpleQueue()
        """The titles of the cards, in the order in which they were begun."""
        self.at_work = threading.Lock()
        self.rendered = 0
        self.fails = False

    def render(self, card: Card) -> Drawing:
        self.begun.put(card.title)
        assert self.at_work.acquire(blocking=False), "two cards are drawn at a time"
        try:
            assert self.go.wait(10)
            self.rendered += 1
            if self.fails:
                raise ZeroDivisionError
            return Drawing(PNG, 0)
        finally:
            self.at_work.release()


class CountedRenders(RateLimit):
    """Is asked for each card just before that begins to wait."""

    taken = 0

    def take(self, name: str, per_minute: int, client: str = "") -> float:
        self.taken += 1
        return super().take(name, per_minute, client)


class JoinedQueue(DrawingQueue):
    """Tells when a card waits in the turn of a second client too."""

    def __init__(self, renders: RateLimit) -> None:
        super().__init__(renders)
        self.joined = threading.Event()

    def join(self, *arguments: Any) -> None:
        super().join(*arguments)
        self.joined.set()


class Cards:
    def __init__(self, folder: Path, keys: Keys) -> None:
        self.renderer = SlowRenderer()
        self.store = Store(folder, 10_000_000, "v1")
        self.renders = CountedRenders()
        self.keys = keys
        self.draw_by(DrawingQueue(self.renders))
        self.key = self.new_key()

    def draw_by(self, queue: DrawingQueue) -> None:
        self.routes = CardRoutes(self.keys, self.store, self.renderer, queue, work_soon=lambda work: work())  # type: ignore
        self.router = Router(self.routes.routes())

    def new_key(self) -> str:
        """A key that has been used before."""
        value = self.keys.issue(tier="busy").wait().value
        assert self.keys.find(hash_of(value))
        return value

    def ask(self, n: int = 0) -> tuple[int, str | None]:
        response = answer_of(self.router, self.request(n))
        return response.status, response.headers.get("X-Cache")

    def request(self, n: int, key: str | None = None, client: str = "192.0.2.1") -> Request:
        query = f"title=t{n}&key={key or self.key}"
        return Request("GET", f"/og?{query}", "/og", query, network=network_of(client))

    def begin(self, n: int, key: str | None = None, client: str = "192.0.2.1") -> Later[Response]:
        """Asks, and comes back once the card is drawn, waits to be drawn, or is refused."""
        before = self.renders.taken
        answer = self.routes.card(self.request(n, key, client))
        assert isinstance(answer, Later)
        wait_until(lambda: answer.is_settled or self.renders.taken > before)
        return answer

    def begin_one(self) -> None:
        """Lets one card be begun, so that all others have to wait until the renderer may go on."""
        self.begin(1000)
        self.renderer.begun.get(timeout=10)

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
    keys = Keys(database, clock, {"free": FREE, "busy": Tier(renders_per_minute=10_000)})
    cards = Cards(tmp_path / "cards", keys)
    yield cards
    cards.store.close()


def test_one_card_asked_for_by_many_at_once_is_rendered_once(cards: Cards) -> None:
    answers = cards.ask_at_once([0] * ASKERS)
    assert answers == {(200, "MISS"): 1, (200, "HIT"): ASKERS - 1}
    assert cards.renderer.rendered == 1


def test_a_page_of_new_cards_that_one_browser_asks_for_at_once_is_served_whole(cards: Cards) -> None:
    assert cards.ask_at_once([*range(48)]) == {(200, "MISS"): 48}


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


def test_different_cards_are_drawn_one_at_a_time_and_all_come_out(cards: Cards) -> None:
    cards.renderer.go.set()
    answers = [cards.begin(n, cards.new_key()) for n in range(40)]
    assert [answer.wait().headers["X-Cache"] for answer in answers] == ["MISS"] * 40
    assert len(list(cards.store.folder.iterdir())) == 40


def refused(answer: Later[Response]) -> bool:
    """Whether it is 503 already; one that is not settled is not."""
    try:
        return answer.is_settled and not answer.result()
    except Unavailable as error:
        return (error.status, error.code, error.headers["Retry-After"]) == (503, "busy", "1")


def test_a_key_with_many_waiting_cards_is_refused_more_of_them_and_nobody_else_waits_behind_it(cards: Cards) -> None:
    cards.renderer.go.set()
    assert cards.ask(0) == (200, "MISS")
    cards.renderer.go.clear()
    cards.begin_one()
    answers = [cards.begin(n) for n in range(1, WAITING_OF_KEY + 13)]
    assert [refused(answer) for answer in answers] == [False] * WAITING_OF_KEY + [True] * 12
    assert not refused(cards.begin(0, cards.new_key()))
    assert cards.ask(0) == (200, "HIT")
    assert answer_of(cards.router, Request("GET", "/og?title=a", "/og", "title=a")).status == 401
    cards.renderer.go.set()
    assert [answer.wait().status for answer in answers[:WAITING_OF_KEY]] == [200] * WAITING_OF_KEY


def test_a_card_that_is_refused_for_want_of_room_costs_none_of_the_keys_cards_a_minute(cards: Cards) -> None:
    cards.begin_one()
    answers = [cards.begin(n) for n in range(WAITING_OF_KEY + 12)]
    assert cards.renders.taken == 1 + WAITING_OF_KEY
    cards.renderer.go.set()
    for answer in answers[:WAITING_OF_KEY]:
        answer.wait()


def test_a_key_that_had_no_card_drawn_goes_before_one_that_had(cards: Cards) -> None:
    cards.begin_one()
    answers = [cards.begin(n) for n in range(3)]
    answers += [cards.begin(n, cards.new_key()) for n in (10, 11)]
    cards.renderer.go.set()
    for answer in answers:
        answer.wait()
    assert [cards.renderer.begun.get(timeout=10) for _ in answers] == ["t10", "t11", "t0", "t1", "t2"]


def test_a_card_that_a_stranger_asked_for_first_does_not_wait_behind_the_strangers_others(cards: Cards) -> None:
    """Else whoever knows the URL of a new card keeps it from its owner, who gets 503 after 10 s."""
    queue = JoinedQueue(cards.renders)
    cards.draw_by(queue)
    cards.begin_one()
    answers = [cards.begin(n, client="198.51.100.1") for n in range(20)]
    owner = cards.routes.card(cards.request(19, client="203.0.113.1"))
    assert isinstance(owner, Later)
    assert queue.joined.wait(10)
    cards.renderer.go.set()
    assert [answer.wait().headers["X-Cache"] for answer in (*answers, owner)] == ["MISS"] * 20 + ["HIT"]
    begun = [cards.renderer.begun.get(timeout=10) for _ in answers]
    assert begun.index("t19") <= 1
    assert len(begun) == len({*begun})
    assert cards.renderer.rendered == 1 + len(answers)


class SeenLock:
    """A lock that tells whether a thread had to wait for it."""

    def __init__(self) -> None:
        self._lock, self.was_awaited = threading.Lock(), False

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            self.was_awaited = True
            self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def test_what_a_client_is_refused_is_not_refused_to_another_who_asks_for_the_same_card(
    cards: Cards, monkeypatch: pytest.MonkeyPatch
) -> None:
    looking, asked = SeenLock(), list[Any]()

    class SeenFlight(Flight):
        def __init__(self) -> None:
            super().__init__()
            self.looking = looking  # type: ignore

    class Queue(DrawingQueue):
        def judge(self, key: Key, client: str) -> None:
            """Refuses the first client once the second has asked for the same card."""
            if not asked:
                asked.append(cards.routes.card(cards.request(0, client="203.0.113.1")))
                wait_until(lambda: looking.was_awaited or asked[0]._awaited is not None)
                raise TooMany("This key may draw 1 new card a minute; try again later.", 7)

    monkeypatch.setattr(routes, "Flight", SeenFlight)
    cards.draw_by(Queue(cards.renders))
    cards.renderer.go.set()
    with pytest.raises(TooMany):
        cards.routes.card(cards.request(0, client="198.51.100.1")).wait()  # type: ignore
    assert asked[0].wait().headers["X-Cache"] == "MISS"


def test_where_too_many_wait_whoever_has_most_waiting_gives_way(cards: Cards) -> None:
    cards.draw_by(DrawingQueue(cards.renders, waiting_in_all=4))
    cards.begin_one()
    busy, new = cards.new_key(), cards.new_key()
    answers = [cards.begin(n, busy) for n in range(4)]
    assert refused(cards.begin(4, busy))
    one = cards.begin(5, new)
    assert [refused(answer) for answer in (*answers, one)] == [False, False, False, True, False]
    assert not refused(cards.begin(6, new))
    assert [refused(answer) for answer in (*answers, one)] == [False, False, True, True, False]
    again = cards.begin(3, busy)
    assert refused(again)
    cards.renderer.go.set()
    for answer in (*answers[:2], one):
        assert answer.wait().status == 200
    assert cards.begin(3, busy).wait().headers["X-Cache"] == "MISS"


def test_many_keys_of_one_client_do_not_keep_others_out(cards: Cards) -> None:
    cards.draw_by(DrawingQueue(cards.renders, waiting_in_all=3))
    cards.begin_one()
    answers = [cards.begin(n, cards.new_key(), f"2001:db8::{n}") for n in range(3)]
    assert refused(cards.begin(3, cards.new_key(), "2001:db8::3"))
    other = cards.begin(4, cards.new_key(), "2001:db8:1::1")
    assert [refused(answer) for answer in (*answers, other)] == [False, False, True, False]
    cards.renderer.go.set()
    for answer in (*answers[:2], other):
        answer.wait()


def test_whoever_asks_with_unknown_keys_holds_up_nobody_else(cards: Cards, monkeypatch: pytest.MonkeyPatch) -> None:
    cards.renderer.go.set()
    look_up, go_on = cards.keys.authenticate, threading.Event()

    def slow_for_unknown_keys(digest: bytes, scope: str | None) -> Key:
        assert cards.keys.last_known(digest) or go_on.wait(10)
        return look_up(digest, scope)

    monkeypatch.setattr(cards.keys, "authenticate", slow_for_unknown_keys)
    flood = [cards.request(n, f"sk_{n:032}", "198.51.100.1") for n in range(RUNNING_AND_WAITING + 1)]
    answers = [cards.routes.card(request) for request in flood[:-1]]
    with pytest.raises(Unavailable):
        cards.routes.card(flood[-1])
    assert cards.ask(0) == (200, "MISS")
    go_on.set()
    for answer in answers:
        assert isinstance(answer, Later)
        with pytest.raises(Refusal, match="not known"):
            answer.wait()


def test_a_stranger_who_floods_a_public_key_does_not_keep_its_owner_out(
    cards: Cards, monkeypatch: pytest.MonkeyPatch
) -> None:
    cards.renderer.go.set()
    get_stored, go_on = cards.store.get, threading.Event()
    owners = file_name(cards.request(0).target)
    monkeypatch.setattr(cards.store, "get", lambda name: (name == owners or go_on.wait(10)) and get_stored(name))
    flood = [cards.request(n, client="198.51.100.1") for n in range(1, RUNNING_AND_WAITING + 2)]
    answers = [cards.routes.card(request) for request in flood[:-1]]
    with pytest.raises(Unavailable):
        cards.routes.card(flood[-1])
    assert cards.ask(0) == (200, "MISS")
    go_on.set()
    for answer in answers:
        assert isinstance(answer, Later)
        with contextlib.suppress(Unavailable):
            answer.wait()


def test_cards_are_drawn_though_the_system_grants_no_more_threads(
    cards: Cards, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    cards.renderer.go.set()
    assert cards.ask() == (200, "MISS")


def test_nothing_more_is_drawn_once_the_service_stops(cards: Cards) -> None:
    cards.begin_one()
    waiting = cards.begin(0)
    cards.routes.stop()
    cards.renderer.go.set()
    with pytest.raises(Unavailable):
        waiting.wait()
    assert cards.renderer.rendered <= 1


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


@contextlib.contextmanager
def waiting_for_cards(cards: Cards, limits: HttpLimits, padding: int = 1) -> Iterator[tuple[HttpServer, list[Client]]]:
    """A server with 8 places, and as many clients that wait for two cards: one is being drawn, one waits behind it."""
    found: SimpleQueue[None] = SimpleQueue()
    authenticate = cards.keys.authenticate

    def counted(*arguments: Any) -> Key:
        found.put(None)
        return authenticate(*arguments)

    cards.keys.authenticate = counted  # type: ignore[method-assign]
    with starting(cards.router) as start, contextlib.ExitStack() as stack:
        stack.callback(cards.renderer.go.set)
        server, clients = start(limits, max_connections=8), []
        for n in range(8):
            line = f"GET {cards.request(n % 2).target} HTTP/1.1".encode()
            ask = get(b"X-Padding: " + b"x" * padding, line=line)
            clients.append(stack.enter_context(Client(server, ask, address=f"127.0.0.{2 + n // 4}")))
            found.get(timeout=10)
        cards.renderer.begun.get(timeout=10)
        yield server, clients


def test_where_requests_that_wait_for_cards_take_all_places_one_gives_way_to_a_new_client(cards: Cards) -> None:
    with waiting_for_cards(cards, HttpLimits(stop_seconds=2)) as (server, clients):
        with Client(server, get(line=b"GET /robots.txt HTTP/1.1")) as other:
            assert other.answer()[0] == 200
        cards.renderer.go.set()
        with pytest.raises((EOFError, ConnectionResetError)):
            clients[0].answer()
        # The card of the one that gave way is drawn for those that wait for it too.
        assert [client.answer()[0] for client in clients[1:]] == [200] * 7
    assert cards.renderer.rendered == 2


def test_requests_that_wait_for_cards_give_way_when_too_much_is_held(cards: Cards) -> None:
    with waiting_for_cards(cards, HttpLimits(held_bytes=60_000, stop_seconds=2), padding=12_000) as (server, _):
        wait_until(lambda: server.connections_shed >= 3)
