"""`GET /og`: a card's image, and `GET /robots.txt`."""

import logging
import os
import re
import threading
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from cardbeat.cards.drawing_queue import DrawingQueue
from cardbeat.cards.seal import StoredCard, owner_of, seal
from cardbeat.cards.store import CardIndex, Entry, Signature, Store, file_name
from cardbeat.concurrency.later import Droppable, Job, Later, Precedence, Workers
from cardbeat.errors import Refusal
from cardbeat.host.system import UNSHAPED
from cardbeat.keys.key import CARDS, Key, key_missing
from cardbeat.keys.store import Keys, hash_of
from cardbeat.web.message import FileBody, Request, Response, header_lines
from cardbeat.web.query import first_value, known_among
from cardbeat.web.router import Route, WorkSoon

if TYPE_CHECKING:
    from cardbeat.cards.drawing.render import Renderer
    from cardbeat.cards.drawing_process import DrawingProcess
    from cardbeat.cards.request import Card

log = logging.getLogger(__name__)

READERS = 4  # threads that look up keys and read stored cards
READERS_OF_ONE = 2  # of them, at work at once for one key and one network

_ROBOTS = Response(200, b"User-agent: *\nAllow: /\n", {"Content-Type": "text/plain; charset=utf-8"})
"""Crawlers may fetch everything: it is they that request cards."""

_HIT = {"X-Cache": "HIT"}
_RANGE = re.compile(r"bytes=(\d{0,999})-(\d{0,999})", re.ASCII | re.IGNORECASE)


class Found(NamedTuple):
    """A card, the signature of its file (None if it could not be stored), and `X-Cache` of the first answer."""

    card: StoredCard
    signature: Signature | None
    cache: str


class Flight:
    """A card that is looked for by the thread that has `looking`, or drawn, or waits for it, for these clients."""

    def __init__(self) -> None:
        self.clients = set[str]()
        self.looking = threading.Lock()
        self.drawn: Job[Found] | None = None


class CardRoutes:
    """Answers a card's URL from the store, or draws it.

    A card that is not in the index is looked for on disk, and drawn if needed, once for all requests that wait for it
    (single flight). These requests are queued by the key in the URL and the client's network, or by the latter alone
    while that key is not known. Neither a key nor a network gets more of the readers' time by many queues.

    Threads: `_index` is used in the server's loop alone, where `card` runs, and the functions given to `map` there.
    What waits for the disk or the database runs in `_readers`, drawing in the thread of `_drawing`. Both change
    `_flights`, each by one atomic step of a dictionary. The other attributes are set once and safe for any thread.
    """

    def __init__(
        self,
        keys: Keys,
        store: Store,
        renderer: "Renderer | DrawingProcess",
        drawing: DrawingQueue,
        *,
        work_soon: WorkSoon,
        note_drawing_seconds: Callable[[float], object] = lambda _: None,
        first: Iterable[Precedence] = (),
    ) -> None:
        """Readers pause for the threads of `first`."""
        self._keys = keys
        self._store = store
        self._renderer = renderer
        self._note_drawing_seconds = note_drawing_seconds
        self._renew = partial(work_soon, keys.renew)
        self._index = CardIndex()
        self._readers = Workers(READERS, running_each=READERS_OF_ONE, first=first)
        self._drawing = drawing
        self._flights: dict[str, Flight] = {}
        """By file name."""
        self._told_unshaped = False  # whether the log says that Pillow can't shape text; of the drawing thread alone

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
        """The card's PNG, stored or drawn. Stored cards never wait for cards that are drawn."""
        hit = self._hit(request)
        if hit is not None:
            return hit
        name = file_name(request.target)
        value = first_value(request.query, "key")
        if not value:
            raise _key_missing(request.query)
        key_hash = hash_of(value)
        key = self._keys.last_known(key_hash)
        work = partial(self._find, request, name, key_hash)
        # Clients of one key must not wait behind each other: it is public.
        return self._readers.submit(work, *request.payers(key and key.id))

    def _hit(self, request: Request) -> Response | None:
        """A stored card from the index, if its file has not changed and its key was valid a moment ago."""
        entry = self._index.get(request.target)
        if entry is None:
            return None
        key = self._keys.find_cached(entry.key_hash, self._renew)
        if key is None or key.scope != CARDS:
            return None
        descriptor = self._store.open(entry.name, entry.signature, request.network)
        if descriptor is None:
            self._index.discard(request.target)
            return None
        body = FileBody(descriptor, entry.signature[1])
        if "range" not in request.headers and "if-none-match" not in request.headers:
            if not entry.lines:
                entry.lines = header_lines(Response(200, body, _headers(entry, "HIT")))
            return Response(200, body, _HIT, entry.lines)
        try:
            return _asked_part(request, body.read(), _headers(entry, "HIT"))
        except OSError:
            # The file was truncated since it was opened: let it be examined again.
            return None
        finally:
            os.close(descriptor)

    def _find(self, request: Request, name: str, key_hash: bytes) -> Later[Response]:
        """The answer with the card, stored or drawn.

        A card that is drawn for another client already is drawn in the turn of this client too: else a stranger who
        asks for many cards could let others' cards wait behind them.
        """
        # Invalid keys learn nothing and cost nothing more.
        key = self._keys.authenticate(key_hash, (CARDS,))
        while True:
            flight = self._flights.setdefault(name, Flight())
            with flight.looking:
                # If another thread looked before, the card was stored, or refused to that client.
                if flight.drawn is None and self._flights.get(name) is flight:
                    found = self._begin(request, name, key, flight)
                    return Droppable(found, partial(self._respond, request, name, key_hash, None))
            if flight.drawn is not None:
                if request.network not in flight.clients:
                    flight.clients.add(request.network)
                    self._drawing.join(key, request.network, flight.drawn)
                return Droppable(flight.drawn, partial(self._respond, request, name, key_hash, "HIT"))

    def _begin(self, request: Request, name: str, key: Key, flight: Flight) -> Later[Found]:
        """The card, stored or drawn. Raises what `DrawingQueue.submit` raises, of which no other client hears."""
        from cardbeat.cards.request import PARAMETERS, card_from  # noqa: PLC0415 - the first answer needs no card

        try:
            stored = self._store.get(name)
            if stored is not None:
                found: Later[Found] = Later()
                found.succeed(Found(*stored, "HIT"))
                return found
            # Past a limit not even the query is read.
            self._drawing.judge(key, request.network)
            card = card_from(known_among(PARAMETERS, request.query))
            draw = partial(self._draw, name, key, request.network, card)
            flight.clients.add(request.network)
            flight.drawn = self._drawing.submit(key, request.network, draw)
        finally:
            if flight.drawn is None:
                self._flights.pop(name)
        # Runs before any request is answered, so that a request after an answer looks anew.
        flight.drawn.then(lambda _: self._flights.pop(name))
        return flight.drawn

    def _draw(self, name: str, key: Key, client: str, card: "Card") -> Found:
        began = time.perf_counter()
        drawing = self._renderer.render(card)
        self._note_drawing_seconds(time.perf_counter() - began)
        if drawing.unshaped and not self._told_unshaped:
            self._told_unshaped = True
            log.warning("%s", UNSHAPED)
        owner, left_out = owner_of(key.id), drawing.left_out
        sealed = seal(name, drawing.png, drawing.missing_glyphs, owner, left_out=left_out)
        return Found(sealed, self._store.put(name, sealed, client), "MISS")

    def _respond(self, request: Request, name: str, key_hash: bytes, cache: str | None, found: Found) -> Response:
        """The answer. `cache`, if given, replaces the `X-Cache` of the first answer."""
        card = found.card
        response = _asked_part(request, card.png, _headers(card, cache or found.cache))
        if found.signature:
            self._store.note_client(name, request.network)
            told = card.etag, card.missing_glyphs, card.left_out
            self._index.put(request.target, Entry(name, found.signature, key_hash, *told))
        return response


def _headers(card: StoredCard | Entry, cache: str) -> dict[str, str]:
    left_out = {"X-Left-Out": "description"} if card.left_out else {}
    return {
        "Content-Type": "image/png",
        "Cache-Control": "public, max-age=31536000, immutable",
        "ETag": card.etag,
        "X-Cache": cache,
        "X-Missing-Glyphs": str(card.missing_glyphs),
        "Accept-Ranges": "bytes",
        **left_out,
    }


def _asked_part(request: Request, png: bytes, headers: dict[str, str]) -> Response:
    """The card, the requested part of it, or 304 (RFC 9110, 13 and 14). Raises `Refusal` 416."""
    if request.names_tag("if-none-match", headers["ETag"]):
        return Response(304, b"", headers)
    part = byte_range(request, len(png), headers["ETag"])
    if part is None:
        return Response(200, png, headers)
    first, last = part
    return Response(206, png[first : last + 1], {**headers, "Content-Range": f"bytes {first}-{last}/{len(png)}"})


def byte_range(request: Request, length: int, etag: str) -> tuple[int, int] | None:
    """The first and last byte requested, or None for all, also for several ranges and for invalid ones.

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
        raise Refusal("range_not_satisfiable", headers={"Content-Range": f"bytes */{length}"}, length=length)
    return span


def _key_missing(query: str) -> Refusal:
    """The refusal of a request without a key. It names `&amp;`, which a URL copied from HTML source has for `&`."""
    if "&amp;key=" in query:
        return key_missing("The API key is missing: this URL has &amp; where a plain & belongs.", "key")
    return key_missing(field="key")
