"""GET /og and GET /robots.txt (CONTRACT 3)."""

import re
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial

from cardbeat.cards.render import Renderer
from cardbeat.cards.request import Card, card_of, key_in, pairs_of
from cardbeat.cards.seal import StoredCard, file_name, seal
from cardbeat.cards.store import Store
from cardbeat.cards.turns import Turns
from cardbeat.errors import Refusal, TooMany
from cardbeat.keys.rate import RateLimit
from cardbeat.keys.store import CARDS, Key, Keys, key_missing
from cardbeat.later import Later
from cardbeat.web.message import Request, Response
from cardbeat.web.router import Route

WAITING_RENDERS = 64
WAIT_SECONDS = 5
READERS = 4
KNOWN_TARGETS = 1024
KEPT_ANSWERS = 16

MAX_KNOWN_TARGET = 2048
"""Longer ones are asked in full each time, so that a few hundred thousand of them can't fill the memory."""

_ROBOTS = Response(200, b"User-agent: *\nAllow: /\n", {"Content-Type": "text/plain; charset=utf-8"})
"""Crawlers are welcome: they are who cards are drawn for."""

_RANGE = re.compile(r"bytes=(\d{0,999})-(\d{0,999})", re.ASCII | re.IGNORECASE)


class CardRoutes:
    """Answers a card's URL from the store, or renders it."""

    def __init__(self, keys: Keys, store: Store, renderer: Renderer, renders: RateLimit) -> None:
        self._keys = keys
        self._store = store
        self._renderer = renderer
        self._renders = renders
        self._readers = ThreadPoolExecutor(READERS, "cards")
        self._turns: Turns[tuple[StoredCard, bool]] = Turns(WAITING_RENDERS, WAIT_SECONDS)
        self._known: OrderedDict[str, tuple[str, str]] = OrderedDict()

    def routes(self) -> list[Route]:
        return [
            Route("GET", "/og", self.card, in_loop=True),
            Route("GET", "/robots.txt", lambda _: _ROBOTS, in_loop=True),
        ]

    def card(self, request: Request) -> Response | Later[Response]:
        """The card's PNG, stored before or now. However many wait to be drawn, no other request waits behind them."""
        hit = self.quick_card(request)
        if hit is not None:
            return hit
        answer: Later[Response] = Later()
        self._readers.submit(self._answer, request, answer)
        return answer

    def stop(self) -> None:
        """Draw nothing more."""
        self._readers.shutdown(wait=False, cancel_futures=True)
        self._turns.stop()

    def quick_card(self, request: Request) -> Response | None:
        """A stored card that is in memory, for a key known to be good. Only for the server's own thread."""
        card = self._find_good(request.target)
        if card is None:
            return None
        is_plain = "if-none-match" not in request.headers and "range" not in request.headers
        return _hit(card) if is_plain else respond(request, card, "HIT")

    def _find_good(self, target: str) -> StoredCard | None:
        name, value = self._known.get(target, ("", ""))
        card = self._store.get_hot(name) if name else None
        key = self._keys.find_cached(value, self._renew) if card else None
        return card if key and key.scope == CARDS else None

    def _renew(self, value: str) -> None:
        self._readers.submit(self._keys.find, value)

    def _answer(self, request: Request, answer: Later[Response]) -> None:
        found: Later[Response | Later[Response]] = Later()
        found.run(partial(self._find, request))
        try:
            response = found.result()
        except Exception:
            response = None
        if isinstance(response, Later):
            response.then(lambda drawn: answer.settle(drawn.result))
        else:
            found.then(lambda _: answer.settle(found.result))  # type: ignore[arg-type]

    def _find(self, request: Request) -> Response | Later[Response]:
        """Nothing of the URL is judged before its key."""
        pairs = pairs_of(request.query)
        value = key_in(pairs)
        if not value:
            raise _key_missing(pairs)
        key = self._keys.authenticate_value(value, CARDS)
        card = card_of(pairs)
        name = file_name(request.target)
        stored = self._store.get(name)
        if stored is None:
            drawn, first = self._turns.ask(name, partial(self._admit, name, key), partial(self._make, name, card))
            return drawn.map(lambda drawing: _drawn(request, *drawing, first=first))
        self._remember(request.target, name, value)
        return respond(request, stored, "HIT")

    def _admit(self, name: str, key: Key) -> None:
        # It may have been stored since this request looked, and what is stored is never refused.
        if self._store.get(name) is None:
            self._take_render(key)

    def _make(self, name: str, card: Card) -> tuple[StoredCard, bool]:
        """The card, and whether it was rendered."""
        stored = self._store.get(name)
        if stored is not None:
            return stored, False
        drawing = self._renderer.render(card)
        stored = seal(name, drawing.png, drawing.missing_glyphs)
        self._store.put(name, stored)
        return stored, True

    def _take_render(self, key: Key) -> None:
        per_minute = key.limits.renders_per_minute
        wait_seconds = 0 if per_minute is None else self._renders.take(key.id, per_minute)
        if wait_seconds:
            raise TooMany(f"This key may draw {per_minute} new cards a minute; try again later.", wait_seconds)

    def _remember(self, target: str, name: str, value: str) -> None:
        """Spares the next request for this target the reading of its query."""
        if len(target) <= MAX_KNOWN_TARGET:
            self._known[target] = (name, value)
        while len(self._known) > KNOWN_TARGETS:
            self._known.popitem(last=False)


def _drawn(request: Request, card: StoredCard, rendered: bool, *, first: bool) -> Response:
    return respond(request, card, "MISS" if first and rendered else "HIT")


def respond(request: Request, card: StoredCard, cache: str) -> Response:
    """The card, the part of it asked for, or 304. Raises `Refusal` 416."""
    whole = _whole(card, cache)
    etag = whole.headers["ETag"]
    if request.names_tag("if-none-match", etag):
        return Response(304, b"", whole.headers)
    part = byte_range(request, len(card.png), etag)
    if part is None:
        return whole
    first, last = part
    content_range = f"bytes {first}-{last}/{len(card.png)}"
    return Response(206, card.png[first : last + 1], {**whole.headers, "Content-Range": content_range})


@lru_cache(KEPT_ANSWERS)
def _hit(card: StoredCard) -> Response:
    """The same answer for the same card, so that the server meets again what it has laid out for the kernel."""
    return _whole(card, "HIT")


def _whole(card: StoredCard, cache: str) -> Response:
    headers = {
        "Content-Type": "image/png",
        "Cache-Control": "public, max-age=31536000, immutable",
        "ETag": f'"{card.digest}"',
        "X-Cache": cache,
        "X-Missing-Glyphs": str(card.missing_glyphs),
        "Accept-Ranges": "bytes",
    }
    return Response(200, card.png, headers)


def byte_range(request: Request, length: int, etag: str) -> tuple[int, int] | None:
    """The first and last byte asked for, or None for all: several ranges, and nonsense, get the whole.

    Raises `Refusal` 416 for a range that begins after the end.
    """
    if request.method != "GET" or "range" not in request.headers or request.headers.get("if-range", etag) != etag:
        return None
    match = _RANGE.fullmatch(request.headers["range"].strip())
    if match is None or match.group() == "bytes=-":
        return None
    first, last = match.groups()
    if first and last and int(last) < int(first):
        return None
    span = (int(first), min(int(last or length), length - 1)) if first else (max(0, length - int(last)), length - 1)
    if span[0] > span[1]:
        sentence = f"The image has {length} bytes; ask for a range inside it."
        raise Refusal(416, "range_not_satisfiable", sentence, headers={"Content-Range": f"bytes */{length}"})
    return span


def _key_missing(pairs: list[tuple[str, str]]) -> Refusal:
    """A URL copied out of HTML source ends its first parameter with `&amp;`: say so, or nobody finds it."""
    if any(name == "amp;key" for name, _ in pairs):
        return key_missing("The API key is missing: this URL has &amp; where a plain & belongs.", "key")
    return key_missing(field="key")
