"""GET /og: cards drawn, stored, answered in part and refused, without a socket."""

import errno
import json
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import Mock
from urllib.parse import quote

import pytest

from cardbeat.cards.drawing.render import Renderer
from cardbeat.cards.drawing_queue import DrawingQueue, Waiting
from cardbeat.cards.routes import CardRoutes
from cardbeat.cards.store import Signature, Store
from cardbeat.config import FREE, Config, Tier
from cardbeat.database import Database
from cardbeat.host.system import UNSHAPED
from cardbeat.keys.rate import RateLimit
from cardbeat.keys.store import Keys
from cardbeat.typeset.faces.fonts import Fonts
from cardbeat.web.forwarded import network_of
from cardbeat.web.message import Request, Response
from cardbeat.web.router import Router
from tests.support import App, FakeClock, answer_of, service_of, taken
from tests.systems import DESCRIPTORS, PAGE_CACHE

RENDERER = Renderer(Fonts())


class Cards:
    """The card routes with their keys and store, asked by URL."""

    def __init__(self, folder: Path, database: Database, clock) -> None:
        self.folder = folder
        self.clock = clock
        self.monotonic = 1000.0
        self.network = "192.0.2.1"
        tiers = {"free": FREE, "few": Tier(renders_per_minute=2)}
        # Keys stay in memory however slow the test is.
        self.keys = Keys(database, clock, tiers, monotonic=lambda: 0.0)
        self.store = Store(folder, 1_000_000)
        drawing = DrawingQueue(RateLimit(lambda: self.monotonic))
        self.routes = CardRoutes(self.keys, self.store, RENDERER, drawing, work_soon=lambda work: work())
        self.router = Router(self.routes.routes())
        self.key = self.keys.issue().wait().value

    def get(self, target: str, method: str = "GET", **headers: str) -> Response:
        return answer_of(self.router, self.request(target, method, **headers))

    def at_once(self, target: str, **headers: str) -> Response | None:
        """The answer, if the loop gives it without waiting for anybody."""
        answer = self.routes.card(self.request(target, **headers))
        return taken(answer) if isinstance(answer, Response) else None

    def card(self, title: str = "A title", extra: str = "", **headers: str) -> Response:
        return self.get(self.url(title, extra), **headers)

    def url(self, title: str = "A title", extra: str = "") -> str:
        return f"/og?title={quote(title)}&key={self.key}{extra}"

    def files(self) -> list[Path]:
        return list(self.store.folder.glob("*.png"))

    def request(self, target: str, method: str = "GET", **headers: str) -> Request:
        path, _, query = target.partition("?")
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        return Request(method, target, path, query, names, network=self.network)


def body_of(response: Response) -> dict[str, str]:
    return json.loads(response.body)


@pytest.fixture
def cards(tmp_path: Path, database: Database, clock) -> Iterator[Cards]:
    cards = Cards(tmp_path / "cards", database, clock)
    yield cards
    cards.store.close()


def test_the_first_request_renders_and_the_second_is_stored(cards: Cards) -> None:
    first, second = cards.card(), cards.card()
    assert [first.status, second.status] == [200, 200]
    assert [first.headers["X-Cache"], second.headers["X-Cache"]] == ["MISS", "HIT"]
    assert first.headers["Content-Type"] == "image/png"
    assert first.headers["Cache-Control"] == "public, max-age=31536000, immutable"
    assert first.body == second.body
    assert struct.unpack(">II", first.body[16:24]) == (1200, 630)


@pytest.mark.parametrize(
    "other", ["&v=2", "&tag=", "&template=default", "&theme=light", "&template=blog", "&description=x", "&%76=2"]
)
def test_another_url_is_another_stored_image(cards: Cards, other: str) -> None:
    assert cards.card().headers["X-Cache"] == "MISS"
    assert cards.card(extra=other).headers["X-Cache"] == "MISS"
    assert len(cards.files()) == 2


def test_after_a_change_of_the_accent_a_stored_card_is_drawn_again(config: Config, clock: FakeClock) -> None:
    answers = []
    for accent in (None, None, "#16a34a", "#16a34a", "#e11d48"):
        service = service_of(config._replace(accent=accent), clock)
        try:
            app = App(service, clock)
            target = answers[0][0] if answers else f"/og?title=A&key={app.cards_key()}"
            answer = app("GET", target)
            answers.append((target, answer.headers["X-Cache"], answer.body))
        finally:
            service.close()
    assert [cache for _, cache, _ in answers] == ["MISS", "HIT", "MISS", "HIT", "MISS"]
    assert len({body for _, _, body in answers}) == 3


def test_templates_and_themes_are_all_different_images(cards: Cards) -> None:
    choices = [f"&template={t}&theme={c}" for t in ("default", "blog", "article") for c in ("dark", "light")]
    assert len({cards.card(extra=choice).headers["ETag"] for choice in choices}) == 6


def test_a_missing_key_is_refused(cards: Cards) -> None:
    response = cards.get("/og?title=x")
    assert (response.status, body_of(response)["code"], body_of(response)["field"]) == (401, "key_missing", "key")
    assert response.headers["Cache-Control"] == "no-store"


def test_an_unknown_key_is_refused_before_anything_else_is_judged(cards: Cards) -> None:
    assert cards.get("/og?key=sk_unknown").status == 401
    assert cards.get("/og?template=fancy").status == 401
    assert cards.get("/og?title=a&title=b&key=sk_unknown").status == 401


def test_a_checks_key_is_refused_with_a_reason(cards: Cards) -> None:
    key = cards.keys.issue("someone@example.com").wait().value
    response = cards.get(f"/og?title=x&key={key}")
    assert response.status == 403
    assert "checks key" in body_of(response)["error"]


def test_a_revoked_key_is_refused_though_the_image_is_stored(cards: Cards) -> None:
    assert [cards.card().status for _ in range(3)] == [200] * 3
    assert cards.at_once(cards.url()).headers["X-Cache"] == "HIT"
    [key] = cards.keys.all()
    cards.keys.revoke(key.id).wait()
    assert cards.at_once(cards.url()) is None
    assert cards.card().status == 401


def test_a_url_copied_with_escaped_ampersands_is_explained(cards: Cards) -> None:
    response = cards.get(f"/og?title=x&amp;key={cards.key}")
    assert response.status == 401
    assert "&amp;" in body_of(response)["error"]


@pytest.mark.parametrize(
    ("query", "field"),
    [("", "title"), ("title=+", "title"), ("title=a&title=b", "title"), ("title=a&theme=blue", "theme")],
)
def test_what_cannot_be_drawn_is_refused_and_stores_nothing(cards: Cards, query: str, field: str) -> None:
    response = cards.get(f"/og?key={cards.key}&{query}")
    assert (response.status, body_of(response)["field"]) == (400, field)
    assert response.headers["Cache-Control"] == "no-store"
    assert cards.files() == []


def test_head_answers_as_get_does(cards: Cards) -> None:
    head = cards.get(cards.url(), method="HEAD")
    assert (head.status, head.headers["X-Cache"]) == (200, "MISS")
    assert cards.get(cards.url(), method="HEAD").headers["X-Cache"] == "HIT"


@pytest.mark.parametrize("tags", ["{}", "W/{}", '"other", {}', "*", '"other" , W/{}'])
def test_a_known_etag_gets_304_without_a_body(cards: Cards, tags: str) -> None:
    etag = cards.card().headers["ETag"]
    response = cards.card(if_none_match=tags.format(etag))
    assert (response.status, response.body) == (304, b"")
    assert response.headers["ETag"] == etag
    assert response.headers["Cache-Control"] == "public, max-age=31536000, immutable"


def test_another_etag_gets_the_image(cards: Cards) -> None:
    assert cards.card(if_none_match='"other"').status == 200


@pytest.mark.parametrize(
    ("asked", "first", "last"), [("bytes=0-9", 0, 9), ("bytes=100-", 100, None), ("bytes=-5", -5, None)]
)
def test_a_range_gets_its_part(cards: Cards, asked: str, first: int, last: int | None) -> None:
    whole = cards.card().body
    part = cards.card(range=asked)
    assert part.status == 206
    assert part.body == whole[first : None if last is None else last + 1]
    start = len(whole) + first if first < 0 else first
    assert part.headers["Content-Range"] == f"bytes {start}-{start + len(part.body) - 1}/{len(whole)}"


def test_a_range_past_the_end_is_shortened(cards: Cards) -> None:
    whole = cards.card().body
    assert cards.card(range="bytes=0-999999999").body == whole
    assert cards.card(range="bytes=-999999999").headers["Content-Range"] == f"bytes 0-{len(whole) - 1}/{len(whole)}"


@pytest.mark.parametrize("asked", ["bytes=9999999-", "bytes=9999999-99999999", "bytes=-0"])
def test_a_range_outside_is_416(cards: Cards, asked: str) -> None:
    size = len(cards.card().body)
    response = cards.card(range=asked)
    assert response.status == 416
    assert response.headers["Content-Range"] == f"bytes */{size}"
    assert response.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize("asked", ["bytes=0-1,4-5", "bytes=5-2", "bytes=-", "bytes=a-b", "items=0-1", "bytes 0-1"])
def test_other_ranges_get_the_whole(cards: Cards, asked: str) -> None:
    assert cards.card(range=asked).status == 200


def test_a_range_of_another_version_gets_the_whole(cards: Cards) -> None:
    etag = cards.card().headers["ETag"]
    assert cards.card(range="bytes=0-1", if_range=etag).status == 206
    assert cards.card(range="bytes=0-1", if_range='"other"').status == 200
    assert cards.card(range="bytes=0-1", if_range=f"W/{etag}").status == 200


def test_renders_are_limited_by_key_but_stored_images_never(cards: Cards) -> None:
    [key] = cards.keys.all()
    cards.keys.set_tier(key.id, "few").wait()
    assert [cards.card(title).status for title in "abc"] == [200, 200, 429]
    refused = cards.card("d")
    assert refused.headers["Retry-After"] == "30"
    assert [cards.card(title).status for title in "abab"] == [200] * 4
    cards.monotonic += 31
    assert cards.card("c").status == 200


def test_a_stranger_who_uses_a_key_up_leaves_its_owner_a_share(cards: Cards) -> None:
    [key] = cards.keys.all()
    cards.keys.set_tier(key.id, "few").wait()
    assert [cards.card(title).status for title in "abc"] == [200, 200, 429]
    cards.network = "198.51.100.7"
    assert [cards.card(title).status for title in "def"] == [200, 429, 429]
    assert cards.card("a").status == 200


def test_a_stranger_with_many_networks_of_one_customer_leaves_the_owner_a_share(cards: Cards) -> None:
    [key] = cards.keys.all()
    cards.keys.set_tier(key.id, "few").wait()
    for number in range(8):
        cards.network = network_of(f"2001:db8:5:{number}::1")
        assert cards.card(f"strange {number}").status == (200 if number < 2 else 429)
    cards.network = network_of("2001:db8:6::1")
    assert [cards.card(title).status for title in "ab"] == [200, 429]


def test_networks_of_one_customer_have_the_waiting_places_and_the_room_of_one(
    cards: Cards, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited = []
    add = Waiting.add
    monkeypatch.setattr(Waiting, "add", lambda self, waiter: (waited.append(waiter.client), add(self, waiter)))
    for number in range(3):
        cards.network = network_of(f"2001:db8:5:{number}::1")
        assert cards.card("a").status == cards.card(f"own {number}").status == 200
    assert set(waited) == set(cards.store._clients.values()) == {"2001:db8:5::/48"}
    assert not cards.store._others
    cards.network = network_of("2001:db8:6::1")
    cards.card("a")
    assert len(cards.store._others) == 1


def test_past_a_limit_a_query_is_not_even_read(cards: Cards, monkeypatch: pytest.MonkeyPatch) -> None:
    [key] = cards.keys.all()
    cards.keys.set_tier(key.id, "few").wait()
    bad = f"/og?title=a&title=b&key={cards.key}"
    assert cards.get(bad).status == 400
    assert [cards.card(title).status for title in "ab"] == [200, 200]
    monkeypatch.setattr("cardbeat.cards.routes.known_among", None)
    assert cards.get(bad).status == 429
    assert cards.get("/og?title=a").status == 401
    assert cards.card("a").headers["X-Cache"] == "HIT"


def test_a_refused_request_counts_for_nothing(cards: Cards) -> None:
    [key] = cards.keys.all()
    cards.keys.set_tier(key.id, "few").wait()
    for _ in range(5):
        assert cards.get(f"/og?key={cards.key}").status == 400
    assert [cards.card(title).status for title in "ab"] == [200, 200]


def test_a_key_that_must_be_looked_up_is_not_looked_up_by_the_loop(cards: Cards) -> None:
    for _ in range(2):
        cards.card()
    assert cards.at_once(cards.url())
    cards.keys.set_tier(cards.keys.all()[0].id, "few").wait()
    assert cards.at_once(cards.url()) is None
    assert cards.card().headers["X-Cache"] == "HIT"
    assert cards.at_once(cards.url())


def test_a_deleted_file_is_rendered_anew(cards: Cards) -> None:
    cards.card()
    [file] = cards.files()
    file.unlink()
    assert cards.card().headers["X-Cache"] == "MISS"


def test_a_damaged_file_is_rendered_anew(cards: Cards) -> None:
    good = cards.card().body
    [file] = cards.files()
    file.write_bytes(good[:-100])
    again = cards.card()
    assert (again.headers["X-Cache"], again.body) == ("MISS", good)
    assert file.read_bytes() == good


def test_a_store_that_cannot_be_written_still_answers(cards: Cards, caplog: pytest.LogCaptureFixture) -> None:
    cards.folder.write_text("in the way")
    for _ in range(2):
        response = cards.card()
        assert (response.status, response.headers["X-Cache"]) == (200, "MISS")
    assert "can't store a card" in caplog.text


def test_missing_glyphs_are_counted_also_from_the_store(cards: Cards) -> None:
    for _ in range(3):
        assert cards.card("\ue000x\ue001").headers["X-Missing-Glyphs"] == "2"
    assert cards.at_once(cards.url("\ue000x\ue001")).headers["X-Missing-Glyphs"] == "2"
    assert cards.card("fine").headers["X-Missing-Glyphs"] == "0"


def test_a_description_without_room_is_told_also_from_the_store(cards: Cards) -> None:
    title = "A title that fills the card " * 12
    for _ in range(3):
        assert cards.card(title, "&description=Text").headers["X-Left-Out"] == "description"
    assert cards.at_once(cards.url(title, "&description=Text")).headers["X-Left-Out"] == "description"
    for shown in (cards.card("Short", "&description=Text"), cards.card(title)):
        assert "X-Left-Out" not in shown.headers


def test_letters_that_are_not_shaped_are_counted_and_the_log_says_it_once(
    cards: Cards, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Fonts, "unshaped", lambda _, text: text.count("ټ"))
    assert [cards.card(title).headers["X-Missing-Glyphs"] for title in ("fine", "ټول", "ټټ")] == ["0", "1", "2"]
    assert cards.at_once(cards.url("ټول")).headers["X-Missing-Glyphs"] == "1"
    assert [record.getMessage() for record in caplog.records] == [UNSHAPED]


def test_a_card_is_answered_at_once_when_it_was_asked_for_before(cards: Cards) -> None:
    assert cards.at_once(cards.url()) is None
    drawn = cards.card()
    again = cards.at_once(cards.url())
    assert again
    assert again.body == drawn.body
    assert again.headers == {
        "Content-Type": "image/png",
        "Cache-Control": "public, max-age=31536000, immutable",
        "ETag": drawn.headers["ETag"],
        "X-Cache": "HIT",
        "X-Missing-Glyphs": "0",
        "Accept-Ranges": "bytes",
        "X-Content-Type-Options": "nosniff",
        "Content-Length": str(len(drawn.body)),
    }


def test_a_card_stored_by_an_earlier_process_is_read_once_and_then_answered_at_once(cards: Cards) -> None:
    drawn = cards.card()
    later = Cards.__new__(Cards)
    later.__dict__ |= cards.__dict__
    later.routes = CardRoutes(
        cards.keys, cards.store, RENDERER, DrawingQueue(RateLimit()), work_soon=lambda work: work()
    )
    later.router = Router(later.routes.routes())
    assert later.at_once(cards.url()) is None
    assert later.card().headers["X-Cache"] == "HIT"
    assert later.at_once(cards.url()).body == drawn.body


def test_a_card_known_to_the_index_is_given_in_part_or_not_at_all_if_asked_so(cards: Cards) -> None:
    cards.card()
    whole = cards.at_once(cards.url())
    part = cards.at_once(cards.url(), range="bytes=5-9")
    assert (part.status, part.body) == (206, whole.body[5:10])
    assert cards.at_once(cards.url(), if_none_match=whole.headers["ETag"]).status == 304
    assert cards.card(range="bytes=9999999-").status == 416


@DESCRIPTORS
def test_nothing_of_a_card_answered_at_once_is_left_open(cards: Cards) -> None:
    cards.card()
    before = len(os.listdir("/dev/fd"))
    for headers in ({}, {"range": "bytes=5-9"}, {"range": "bytes=9999999-"}, {"if_none_match": "*"}):
        for _ in range(3):
            cards.card(**headers)
    assert len(os.listdir("/dev/fd")) == before


@PAGE_CACHE
def test_a_card_that_has_left_the_kernel_s_memory_is_not_read_in_the_loop(
    cards: Cards, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = cards.card()
    cards.store.write_uses()
    monkeypatch.setattr("cardbeat.host.system.os.preadv", would_block)
    assert cards.at_once(cards.url()) is None
    again = cards.card()
    assert (again.headers["X-Cache"], again.body) == ("HIT", drawn.body)


def test_while_descriptors_lack_a_stored_card_is_not_drawn_again(cards: Cards, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = cards.card()
    with monkeypatch.context() as patch:
        patch.setattr("cardbeat.cards.store.os.open", Mock(side_effect=OSError(errno.EMFILE, "Too many open files")))
        assert cards.at_once(cards.url()) is None
        refused = cards.card()
    assert (refused.status, body_of(refused)["code"], refused.headers["Retry-After"]) == (503, "busy", "1")
    again = cards.card()
    assert (again.headers["X-Cache"], again.body) == ("HIT", drawn.body)


def test_a_card_that_is_cut_short_while_a_part_of_it_is_read_is_judged_again(
    cards: Cards, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = cards.card()
    [file] = cards.files()
    opened = cards.store.open

    def open_and_cut(name: str, signature: Signature, client: str) -> int | None:
        descriptor = opened(name, signature, client)
        os.truncate(file, 100)
        return descriptor

    with monkeypatch.context() as patch:
        patch.setattr(cards.store, "open", open_and_cut)
        part = cards.card(range="bytes=0-9")
    assert (part.status, part.body) == (206, drawn.body[:10])


def would_block(*_: object) -> int:
    raise BlockingIOError


def test_robots_are_welcome(cards: Cards) -> None:
    response = cards.get("/robots.txt")
    assert response.status == 200
    assert response.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert "Allow: /" in response.body.decode()
    assert "Disallow" not in response.body.decode()


def test_another_method_is_refused(cards: Cards) -> None:
    response = cards.get(cards.url(), method="POST")
    assert (response.status, response.headers["Allow"]) == (405, "GET, HEAD")
