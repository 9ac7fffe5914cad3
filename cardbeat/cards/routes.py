"""`GET /og`: a card's image, and `GET /robots.txt`."""

import contextlib
import os
import re
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from cardbeat.cards.drawing_queue import DrawingQueue, Waiter
from cardbeat.cards.render import Renderer
from cardbeat.cards.request import Card, card_of
from cardbeat.cards.seal import StoredCard, owner_of, seal
from cardbeat.cards.store import CardIndex, Entry, Signature, Store, file_name
from cardbeat.errors import Refusal, TooMany, Unavailable
from cardbeat.keys.key import CARDS, Key, key_missing
from cardbeat.keys.rate import RateLimit
from cardbeat.keys.store import Keys, hash_of
from cardbeat.later import Later
from cardbeat.web.forwarded import network_of
from cardbeat.web.message import FileBody, Request, Response
from cardbeat.web.query import first_value, pairs_of
from cardbeat.web.router import Route, header_lines
from cardbeat.workers import Workers

READERS = 4
"""Threads that look up keys and read stored cards."""
READERS_OF_ONE = 2
"""So many of them work at once for one key, or for one client whose key is not known."""

_ROBOTS = Response(200, b"User-agent: *\nAllow: /\n", {"Content-Type": "text/plain; charset=utf-8"})
"""Crawlers may fetch everything: they are who asks for the cards."""

_HIT = {"X-Cache": "HIT"}
_CONDITIONAL = frozenset({"if-none-match", "range"})
_RANGE = re.compile(r"bytes=(\d{0,999})-(\d{0,999})", re.ASCII | re.IGNORECASE)


class _Asked(NamedTuple):
    """A card that is not in the index: `name` is that of its file, `client` the network of whoever asks for it."""

    name: str
    query: str
    key_hash: bytes
    client: str


class Found(NamedTuple):
    """A card and what its answer says of it. `signature` is that of its file, None where it could not be stored."""

    card: StoredCard
    signature: Signature | None
    cache: str


class CardRoutes:
    """Answers a card's URL from the store, or draws it.

    A card that is not in the index is looked for, and drawn if need be, once for all who ask for it meanwhile (single
    flight). Whoever waits to be looked for is queued by the key in the URL, or by the client's network as long as that
    key has not been seen, and the queues are served in turns.

    Threads: `_index` is used in the server's loop alone, in which `card` runs, and the functions given to `map` there.
    What waits for the disk or the database runs in `_readers`, drawing in the thread of `_drawing`. Both change
    `_flights`, each by one step of a dictionary. The rest of the attributes are set once and safe for any thread.
    """

    def __init__(self, keys: Keys, store: Store, renderer: Renderer, renders: RateLimit) -> None:
        self._keys = keys
        self._store = store
        self._renderer = renderer
        self._renders = renders
        self._index = CardIndex()
        self._readers = Workers(READERS, running_each=READERS_OF_ONE)
        self._drawing = DrawingQueue()
        self._flights: dict[str, Later[Found]] = {}
        """What will be found for a name that is looked for or drawn now."""

    def routes(self) -> list[Route]:
        return [
            Route("GET", "/og", self.card, in_loop=True),
            Route("GET", "/robots.txt", lambda _: _ROBOTS, in_loop=True),
        ]

    def stop(self) -> None:
        """Draw nothing more."""
        self._readers.stop()
        self._drawing.stop()

    def card(self, request: Request) -> Response | Later[Response]:
        """The card's PNG, stored before or now. However many wait to be drawn, no other request waits behind them."""
        hit = self._hit(request)
        if hit is not None:
            return hit
        value = first_value(request.query, "key")
        if not value:
            raise _key_missing(request.query)
        key_hash = hash_of(value)
        key = self._keys.last_known(key_hash)
        client = network_of(request.client)
        name = file_name(request.target)
        found: Later[Found] = Later()
        work = partial(self._find, _Asked(name, request.query, key_hash, client), found)
        self._readers.submit(client if key is None else key.id, work)
        return found.map(partial(self._respond, request, name, key_hash))

    def _hit(self, request: Request) -> Response | None:
        """A stored card whose file is as it was found sound, for a key known to be good a moment ago."""
        entry = self._index.get(request.target)
        if entry is None:
            return None
        key = self._keys.find_cached(entry.key_hash, self._renew)
        if key is None or key.scope != CARDS:
            return None
        descriptor = self._store.open(entry.name, entry.signature)
        if descriptor is None:
            self._index.discard(request.target)
            return None
        body = FileBody(descriptor, entry.signature[1])
        if _CONDITIONAL.isdisjoint(request.headers):
            return Response(200, body, _HIT, entry.lines or _written(entry, body))
        try:
            return _asked_part(request, body.read(), _headers(entry.etag, entry.missing_glyphs, "HIT"))
        except OSError:
            # It was cut short since it was opened: let it be judged again.
            return None
        finally:
            os.close(descriptor)

    def _renew(self) -> None:
        # Where so many wait already, one more would do nothing more.
        with contextlib.suppress(Unavailable):
            self._readers.submit("", self._keys.renew)

    def _respond(self, request: Request, name: str, key_hash: bytes, found: Found) -> Response:
        card = found.card
        headers = _headers(card.etag, card.missing_glyphs, found.cache)
        if found.signature:
            entry = Entry(name, found.signature, key_hash, headers["ETag"], card.missing_glyphs)
            self._index.put(request.target, entry)
        return _asked_part(request, card.png, headers)

    def _find(self, asked: _Asked, found: Later[Found]) -> None:
        """Settle with the card, stored or drawn, or with the refusal of it."""
        try:
            # Nothing is told or done before the key is known to be good.
            key = self._keys.authenticate_hash(asked.key_hash, CARDS)
        except Exception as error:
            return found.fail(error)
        flight = self._flights.setdefault(asked.name, found)
        if flight is not found:
            return flight.then(partial(_share, found))
        try:
            stored = self._store.get(asked.name)
            if stored is not None:
                return self._land(asked.name, found, partial(Found, *stored, "HIT"))
            work = partial(self._draw, asked.name, key, card_of(pairs_of(asked.query)))
            drawn = self._drawing.submit(Waiter(key.id, asked.client), partial(self._take_render, key), work)
        except Exception as error:
            del self._flights[asked.name]
            return found.fail(error)
        return drawn.then(lambda settled: self._land(asked.name, found, settled.result))

    def _land(self, name: str, found: Later[Found], outcome: Callable[[], Found]) -> None:
        # First, so that whoever asks once this is answered gets an answer of their own.
        del self._flights[name]
        found.settle(outcome)

    def _draw(self, name: str, key: Key, card: Card) -> Found:
        drawing = self._renderer.render(card)
        sealed = seal(name, drawing.png, drawing.missing_glyphs, owner_of(key.id))
        return Found(sealed, self._store.put(name, sealed), "MISS")

    def _take_render(self, key: Key) -> None:
        per_minute = key.limits.renders_per_minute
        wait_seconds = 0 if per_minute is None else self._renders.take(key.id, per_minute)
        if wait_seconds:
            raise TooMany(f"This key may draw {per_minute} new cards a minute; try again later.", wait_seconds)


def _share(found: Later[Found], flight: Later[Found]) -> None:
    """Settle with what was found for whoever asked first."""
    found.settle(lambda: flight.result()._replace(cache="HIT"))


def _written(entry: Entry, body: FileBody) -> bytes:
    """The header lines of a stored card's answers, from its first one on kept in the entry."""
    headers = _headers(entry.etag, entry.missing_glyphs, "HIT")
    entry.lines = header_lines(Response(200, body, headers))
    return entry.lines


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
    if _CONDITIONAL.isdisjoint(request.headers):
        return Response(200, png, headers)
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


def _key_missing(query: str) -> Refusal:
    """A URL copied out of HTML source ends its first parameter with `&amp;`: say so, or nobody finds it."""
    if first_value(query, "amp;key") is not None:
        return key_missing("The API key is missing: this URL has &amp; where a plain & belongs.", "key")
    return key_missing(field="key")
