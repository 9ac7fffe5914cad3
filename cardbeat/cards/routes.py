"""`GET /og`: a card's image, and `GET /robots.txt`."""

import os
import re
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

from cardbeat.cards.render import Renderer
from cardbeat.cards.request import Card, card_of, key_in
from cardbeat.cards.seal import StoredCard, seal
from cardbeat.cards.single_flight import SingleFlight
from cardbeat.cards.store import CardIndex, Entry, Signature, Store, file_name
from cardbeat.errors import Refusal, TooMany
from cardbeat.keys.rate import RateLimit
from cardbeat.keys.store import CARDS, Key, Keys, hash_of, key_missing
from cardbeat.later import Later
from cardbeat.web.message import FileBody, Request, Response
from cardbeat.web.query import Pairs, pairs_of
from cardbeat.web.router import Route, header_lines

WAITING_RENDERS = 64
WAIT_SECONDS = 5
READERS = 4
"""Threads that look up keys and read stored cards."""

_ROBOTS = Response(200, b"User-agent: *\nAllow: /\n", {"Content-Type": "text/plain; charset=utf-8"})
"""Crawlers may fetch everything: they are who asks for the cards."""

_HIT = {"X-Cache": "HIT"}
_CONDITIONAL = frozenset({"if-none-match", "range"})
_RANGE = re.compile(r"bytes=(\d{0,999})-(\d{0,999})", re.ASCII | re.IGNORECASE)


class Drawn(NamedTuple):
    """A card that was asked to be drawn. `signature` is that of its file, None where it could not be stored.

    `was_stored` says that nothing was drawn: it was stored between the request's look and its turn.
    """

    card: StoredCard
    signature: Signature | None
    was_stored: bool


class Found(NamedTuple):
    """A card and what its answer says of it; `key_hash` is that of the key in its URL."""

    card: StoredCard
    signature: Signature | None
    key_hash: bytes
    cache: str


class CardRoutes:
    """Answers a card's URL from the store, or draws it.

    Threads: `_index` is used in the server's loop alone, in which `card` runs, and the functions given to `map` there.
    What waits for the disk or the database runs in `_readers`, drawing in the one thread of `_drawing`. The rest of
    the attributes are set once and safe for any thread.
    """

    def __init__(self, keys: Keys, store: Store, renderer: Renderer, renders: RateLimit) -> None:
        self._keys = keys
        self._store = store
        self._renderer = renderer
        self._renders = renders
        self._index = CardIndex()
        self._readers = ThreadPoolExecutor(READERS, "cards")
        self._drawing: SingleFlight[Drawn] = SingleFlight(WAITING_RENDERS, WAIT_SECONDS)

    def routes(self) -> list[Route]:
        return [
            Route("GET", "/og", self.card, in_loop=True),
            Route("GET", "/robots.txt", lambda _: _ROBOTS, in_loop=True),
        ]

    def stop(self) -> None:
        """Draw nothing more."""
        self._readers.shutdown(wait=False, cancel_futures=True)
        self._drawing.stop()

    def card(self, request: Request) -> Response | Later[Response]:
        """The card's PNG, stored before or now. However many wait to be drawn, no other request waits behind them."""
        hit = self._hit(request)
        if hit is not None:
            return hit
        name = file_name(request.target)
        found: Later[Found] = Later()
        self._readers.submit(self._find, request.query, name, found)
        return found.map(partial(self._respond, request, name))

    def _hit(self, request: Request) -> Response | None:
        """A stored card whose file is as it was found sound, for a key known to be good a moment ago."""
        name = file_name(request.target)
        entry = self._index.get(name)
        if entry is None:
            return None
        key = self._keys.find_cached(entry.key_hash, self._renew)
        if key is None or key.scope != CARDS:
            return None
        descriptor = self._store.open(name, entry.signature)
        if descriptor is None:
            self._index.discard(name)
            return None
        body = FileBody(descriptor, entry.signature[1])
        if _CONDITIONAL.isdisjoint(request.headers):
            return Response(200, body, _HIT, entry.lines)
        try:
            return _asked_part(request, body.read(), _headers(entry.etag, entry.missing_glyphs, "HIT"))
        except OSError:
            # It was cut short since it was opened: let it be judged again.
            return None
        finally:
            os.close(descriptor)

    def _renew(self) -> None:
        self._readers.submit(self._keys.renew)

    def _respond(self, request: Request, name: str, found: Found) -> Response:
        card = found.card
        if found.signature:
            lines = header_lines(Response(200, card.png, _headers(card.etag, card.missing_glyphs, "HIT")))
            entry = Entry(found.signature, found.key_hash, card.etag, card.missing_glyphs, lines)
            self._index.put(name, entry)
        return _asked_part(request, card.png, _headers(card.etag, card.missing_glyphs, found.cache))

    def _find(self, query: str, name: str, found: Later[Found]) -> None:
        try:
            key, key_hash, card = self._judge(query)
            stored = self._store.get(name)
            if stored is not None:
                return found.settle(lambda: Found(*stored, key_hash, "HIT"))
            drawn, is_first = self._drawing.ask(name, partial(self._admit, name, key), partial(self._draw, name, card))
        except Exception as error:
            return found.fail(error)
        return drawn.map(partial(_found, key_hash, is_first=is_first)).then(lambda it: found.settle(it.result))

    def _judge(self, query: str) -> tuple[Key, bytes, Card]:
        """The key and the card of a query; nothing of it is judged before its key."""
        pairs = pairs_of(query)
        value = key_in(pairs)
        if not value:
            raise _key_missing(pairs)
        key = self._keys.authenticate_value(value, CARDS)
        return key, hash_of(value), card_of(pairs)

    def _admit(self, name: str, key: Key) -> None:
        # It may have been stored since this request looked, and what is stored is never refused.
        if self._store.get(name) is None:
            self._take_render(key)

    def _draw(self, name: str, card: Card) -> Drawn:
        stored = self._store.get(name)
        if stored is not None:
            return Drawn(*stored, was_stored=True)
        drawing = self._renderer.render(card)
        sealed = seal(name, drawing.png, drawing.missing_glyphs)
        return Drawn(sealed, self._store.put(name, sealed), was_stored=False)

    def _take_render(self, key: Key) -> None:
        per_minute = key.limits.renders_per_minute
        wait_seconds = 0 if per_minute is None else self._renders.take(key.id, per_minute)
        if wait_seconds:
            raise TooMany(f"This key may draw {per_minute} new cards a minute; try again later.", wait_seconds)


def _found(key_hash: bytes, drawn: Drawn, *, is_first: bool) -> Found:
    """Of all who waited for one drawing, the first has the MISS."""
    cache = "MISS" if is_first and not drawn.was_stored else "HIT"
    return Found(drawn.card, drawn.signature, key_hash, cache)


def _headers(etag: str, missing_glyphs: int, cache: str) -> dict[str, str]:
    return {
        "Content-Type": "image/png",
        "Cache-Control": "public, max-age=31536000, immutable",
        "ETag": etag,
        "X-Cache": cache,
        "X-Missing-Glyphs": str(missing_glyphs),
        "Accept-Ranges": "bytes",
    }


def _asked_part(request: Request, png: bytes, headers: dict[str, str]) -> Response:
    """The card, the part of it asked for, or 304 (RFC 9110, 13 and 14). Raises `Refusal` 416."""
    if request.names_tag("if-none-match", headers["ETag"]):
        return Response(304, b"", headers)
    part = byte_range(request, len(png), headers["ETag"])
    if part is None:
        return Response(200, png, headers)
    first, last = part
    return Response(206, png[first : last + 1], {**headers, "Content-Range": f"bytes {first}-{last}/{len(png)}"})


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


def _key_missing(pairs: Pairs) -> Refusal:
    """A URL copied out of HTML source ends its first parameter with `&amp;`: say so, or nobody finds it."""
    if any(name == "amp;key" for name, _ in pairs):
        return key_missing("The API key is missing: this URL has &amp; where a plain & belongs.", "key")
    return key_missing(field="key")
