"""GET /og: cards drawn, stored, answered in part and refused, without a socket."""

import struct
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from cardbeat.cards.drawing.render import Drawing
from cardbeat.cards.painter import renderer_of
from cardbeat.cards.routes import RENDERS_OF_CLIENT, WAITING_OF_CLIENT
from cardbeat.cards.seal import IEND
from cardbeat.errors import TooMany, Unavailable
from cardbeat.host.system import UNSHAPED
from cardbeat.keys.key import CHECKS
from cardbeat.typeset.faces.fonts import Fonts
from tests.kit.cards import Cards, body_of
from tests.kit.lists import times
from tests.kit.support import settled, wait_until

PNG = b"\x89PNG\r\n\x1a\n" + bytes(1000) + IEND
IMMUTABLE = "public, max-age=31536000, immutable"


@pytest.fixture
def cards(tmp_path):
    cards = Cards(tmp_path / "cards", renderer_of(None).render)
    yield cards
    cards.close()


@pytest.fixture
def restarted(tmp_path, cards):
    """The same cards for a server that has just started, with nothing in memory."""
    restarted = Cards(tmp_path / "cards", renderer_of(None).render)
    yield restarted
    restarted.close()


def test_each_request_url_is_a_stored_image_of_its_own(cards):
    others = (
        "",
        "&v=2",
        "&tag=",
        "&template=default",
        "&theme=light",
        "&%74itle2=2",
    )
    for other in others:
        assert cards.card(extra=other).headers["X-Cache"] == "MISS"
    assert len(cards.files()) == len(others)


def test_after_a_change_of_the_accent_a_stored_card_is_drawn_again(
    app_of,
):
    app = app_of()
    target = f"/og?title=A&key={app.cards_key()}"
    answers = [app("GET", target), app("GET", target)]
    app = app_of(accent="#16a34a")
    answers += [app("GET", target), app("GET", target)]
    kinds = [it.headers["X-Cache"] for it in answers]
    assert kinds == ["MISS", "HIT"] * 2
    assert answers[0].body != answers[2].body


def test_the_key_is_judged_before_anything_else(cards):
    missing = cards.get("/og?title=x")
    assert missing.status == 401
    assert body_of(missing)["field"] == "key"
    assert missing.headers["Cache-Control"] == "no-store"
    for query in (
        "template=fancy",
        "key=sk_unknown",
        "title=a&title=b&key=sk_unknown",
    ):
        assert cards.get(f"/og?{query}").status == 401
    refused = cards.get(cards.url(key=cards.keys.issue(CHECKS)))
    assert refused.status == 403
    assert "checks key" in body_of(refused)["error"]


def test_a_revoked_key_is_refused_though_the_image_is_in_memory(cards):
    for _ in range(2):
        cards.card()
    assert cards.at_once(cards.url())
    cards.keys.revoke_all()
    assert cards.at_once(cards.url()) is None
    assert cards.card().status == 401


def test_what_cannot_be_drawn_is_refused_and_counts_for_nothing(cards):
    cards.key = cards.keys.issue(renders_per_minute=1)
    wrong = {
        "": "title",
        "title=+": "title",
        "title=a&title=b": "title",
        "title=a&theme=blue": "theme",
    }
    for query, field in wrong.items():
        refused = cards.get(f"/og?key={cards.key}&{query}")
        assert refused.status == 400
        assert body_of(refused)["field"] == field
        assert refused.headers["Cache-Control"] == "no-store"
    assert cards.card().status == 200
    assert len(cards.files()) == 1


RANGES = {
    "bytes=0-9": (0, 9),
    "bytes=100-": (100, -1),
    "bytes=-5": (-5, -1),
    "bytes=0-999999999": (0, -1),
    "bytes=-999999999": (0, -1),
    **dict.fromkeys(("bytes=9999999-", "bytes=-0"), "outside"),
    **dict.fromkeys(
        ("bytes=0-1,4-5", "bytes=5-2", "bytes=-", "items=0-1"), "other"
    ),
}


@pytest.mark.parametrize(("asked", "part"), RANGES.items())
def test_a_range_gets_its_part_another_one_the_whole_or_416(
    cards, asked, part
):
    whole = cards.card().body
    for _ in range(2):
        answer = cards.card(range=asked)
        if part == "outside":
            assert answer.status == 416
            assert answer.headers["Cache-Control"] == "no-store"
            assert (
                answer.headers["Content-Range"] == f"bytes */{len(whole)}"
            )
        elif part == "other":
            assert answer.status == 200
            assert answer.body == whole
        else:
            first, last = (range(len(whole))[place] for place in part)
            assert answer.status == 206
            assert answer.body == whole[first : last + 1]
            assert (
                answer.headers["Content-Range"]
                == f"bytes {first}-{last}/{len(whole)}"
            )


@pytest.mark.parametrize("tags", ["{}", "*", '"other" , W/{}'])
def test_a_known_version_is_not_sent_again_and_has_ranges(cards, tags):
    etag = cards.card().headers["ETag"]
    unchanged = cards.card(if_none_match=tags.format(etag))
    assert unchanged.status == 304
    assert unchanged.body == b""
    assert unchanged.headers["ETag"] == etag
    assert unchanged.headers["Cache-Control"] == IMMUTABLE
    assert cards.card(if_none_match='"other"').status == 200
    assert cards.card(range="bytes=0-1", if_range=etag).status == 206
    for other in ('"other"', f"W/{etag}"):
        assert cards.card(range="bytes=0-1", if_range=other).status == 200
    head = cards.get(cards.url(), "HEAD", range="bytes=0-1")
    assert head.status == 200
    assert head.headers["X-Cache"] == "HIT"


def statuses(cards, titles, client="192.0.2.1"):
    found = []
    for title in titles:
        answer = cards.get(cards.url(title), "GET", client)
        found.append(answer.status)
    return found


def test_one_client_takes_three_quarters_of_a_keys_new_cards(cards):
    cards.key = cards.keys.issue(renders_per_minute=4)
    assert statuses(cards, "abcd") == [200, 200, 200, 429]
    assert statuses(cards, "de", "192.0.2.2") == [200, 429]
    refused = cards.card("e")
    assert body_of(refused)["code"] == "too_many_requests"
    assert refused.headers["Retry-After"] == "20"
    # What is stored is never refused.
    assert statuses(cards, "aaa") == [200] * 3
    cards.clock.advance(20)
    assert statuses(cards, "ef") == [200, 429]


def test_one_client_has_so_many_new_cards_a_minute_with_all_its_keys(
    tmp_path,
):
    cards = Cards(tmp_path, lambda _: Drawing(b"PNG", 0))
    for number in range(RENDERS_OF_CLIENT):
        cards.key = cards.keys.issue()
        assert statuses(cards, [f"{number}"]) == [200]
    assert statuses(cards, "a") == [429]
    assert statuses(cards, "a", "192.0.2.2") == [200]
    cards.close()


def test_the_first_request_draws_and_the_loop_answers_the_next_and_looks_up_no_key(
    cards,
):
    assert cards.at_once(cards.url()) is None
    drawn = cards.card()
    assert drawn.status == 200
    assert drawn.headers["X-Cache"] == "MISS"
    assert struct.unpack(">II", drawn.body[16:24]) == (1200, 630)
    again = cards.at_once(cards.url())
    assert again.status == 200
    assert again.body == drawn.body
    assert again.headers == {
        "Content-Type": "image/png",
        "Cache-Control": IMMUTABLE,
        "ETag": drawn.headers["ETag"],
        "X-Cache": "HIT",
        "X-Missing-Glyphs": "0",
        "Accept-Ranges": "bytes",
        "X-Content-Type-Options": "nosniff",
        "Content-Length": str(len(drawn.body)),
    }
    cards.keys.forget()
    assert cards.at_once(cards.url()) is None
    assert cards.card().headers["X-Cache"] == "HIT"
    assert cards.at_once(cards.url())


def test_a_card_stored_before_a_restart_is_served_with_its_count_of_missing_glyphs(
    cards, restarted
):
    kinds, bodies = [], set()
    for asked in (cards, cards, restarted, restarted):
        answer = asked.card("\ue000x\ue001")
        kinds.append(answer.headers["X-Cache"])
        assert answer.headers["X-Missing-Glyphs"] == "2"
        bodies.add(answer.body)
    assert kinds == ["MISS", "HIT", "HIT", "HIT"]
    assert len(bodies) == 1


def test_a_store_that_cannot_be_written_still_answers(cards, caplog):
    cards.folder.write_text("in the way")
    for _ in range(2):
        assert cards.card().headers["X-Cache"] == "MISS"
    assert "can't store a card" in caplog.text


def test_letters_that_are_not_shaped_are_counted_and_the_log_says_so(
    cards, caplog, monkeypatch
):
    monkeypatch.setattr(
        Fonts, "unshaped", lambda _, text: text.count("ټ")
    )
    for title, count in (("fine", "0"), ("ټول", "1")):
        assert cards.card(title).headers["X-Missing-Glyphs"] == count
    assert caplog.messages == [UNSHAPED]


class Held(Cards):
    """Cards of which one is drawn, and the next when they are let to. `order` has their titles."""

    def __init__(self, folder):
        self.order = []
        self.go = threading.Event()
        self.pool = ThreadPoolExecutor(200)
        super().__init__(folder, self.draw_held)

    def draw_held(self, card):
        self.order.append(card.title)
        assert self.go.wait(60)
        if card.title == "broken":
            raise RuntimeError("broken")
        return Drawing(PNG, 0)

    def ask(self, title):
        request = self.request(self.url(title))
        return self.pool.submit(
            settled, request, self.routes.card(request)
        )

    def begin(self, title, client="192.0.2.1", key=None):
        """The future of a card that waits. Raises the refusal of one too many."""
        request = self.request(self.url(title, key=key), client=client)
        return self.routes.card(request)(request).future

    def begin_first(self):
        self.begin("first", "first", self.keys.issue())
        wait_until(lambda: self.order)


def outcomes(asked):
    """How often which `X-Cache` was answered."""
    return Counter(one.result(60).headers["X-Cache"] for one in asked)


@pytest.fixture
def held(tmp_path):
    held = Held(tmp_path / "held")
    yield held
    held.go.set()
    held.close()


def test_one_card_asked_for_by_many_at_once_is_drawn_once_and_48_of_a_page_all(
    held,
):
    asked = times(50, held.ask, "a")
    page = [held.ask(str(number)) for number in range(48)]
    held.go.set()
    assert outcomes(asked) == {"MISS": 1, "HIT": 49}
    assert outcomes(page) == {"MISS": 48}
    assert len(held.files()) == 49


def test_clients_have_turns_and_in_these_their_keys(held):
    x, y = held.keys.issue(), held.keys.issue()
    held.begin_first()
    asked = [held.begin(f"a x{number}", "a", x) for number in (1, 2, 3)]
    asked += [held.begin(f"a y{number}", "a", y) for number in (1, 2)]
    asked += [held.begin(f"b x{number}", "b", x) for number in (1, 2)]
    held.go.set()
    for card in asked:
        card.wait()
    assert held.order[1:] == [
        "a x1",
        "b x1",
        "a y1",
        "b x2",
        "a x2",
        "a y2",
        "a x3",
    ]


@pytest.mark.parametrize(
    ("most", "client", "key"),
    [(64, "a", ""), (64, "", "x"), (512, "", "")],
)
def test_a_client_a_key_and_all_have_so_many_waiting_and_no_more(
    held, most, client, key
):
    def begin(number):
        return held.begin(
            f"{number}", client or f"{number}", key or held.keys.issue()
        )

    key = key and held.keys.issue()
    held.begin_first()
    asked = [*map(begin, range(most))]
    with pytest.raises(Unavailable) as refused:
        begin("one more")
    assert refused.value.code == "busy"
    assert refused.value.headers["Retry-After"] == "1"
    if most < 512:
        asked.append(held.begin("other", "other", held.keys.issue()))
    held.go.set()
    for card in asked:
        card.wait()
    assert begin("one more").wait()


def test_a_card_whose_turn_comes_too_late_is_refused(held):
    held.begin_first()
    late = held.begin("late")
    held.clock.advance(1)
    in_time = held.begin("in time")
    held.clock.advance(9.5)
    held.go.set()
    with pytest.raises(
        Unavailable, match="Too many of your requests wait"
    ):
        late.wait()
    assert in_time.wait()


def test_at_a_stop_all_that_wait_are_refused(held):
    held.begin_first()
    asked = [held.begin(str(number)) for number in range(3)]
    held.routes.stop()
    held.go.set()
    for card in asked:
        with pytest.raises(Unavailable) as refused:
            card.wait()
        assert refused.value.code == "stopping"
    assert held.order == ["first"]


def test_a_card_that_cannot_be_drawn_is_an_error_and_can_be_asked_for_again(
    held,
):
    held.go.set()
    for _ in range(2):
        with pytest.raises(RuntimeError, match="broken"):
            held.begin("broken").wait()
    assert held.order == ["broken"] * 2


def test_cards_refused_for_too_many_that_wait_count_for_no_rate(held):
    key = held.keys.issue(renders_per_minute=2 * WAITING_OF_CLIENT)
    held.begin_first()
    for number in range(WAITING_OF_CLIENT + 12):
        with suppress(Unavailable):
            held.begin(str(number), key=key)
    held.go.set()
    wait_until(lambda: len(held.order) == 1 + WAITING_OF_CLIENT)
    # Of 128 a minute one client takes three quarters.
    for number in range(WAITING_OF_CLIENT, 96):
        held.begin(f"more {number}", key=key)
    with pytest.raises(TooMany):
        held.begin("one more", key=key)


def test_robots_are_welcome(cards):
    answer = cards.get("/robots.txt")
    assert answer.status == 200
    assert answer.body == b"User-agent: *\nAllow: /\n"
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
