"""`GET /og`: a card's image, and `GET /robots.txt`."""

import logging
import re
import threading
import time
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Final

from cardbeat.cards.painter import Painter
from cardbeat.cards.seal import StoredCard, seal
from cardbeat.cards.store import Store, file_name
from cardbeat.clock import Clock
from cardbeat.errors import Refusal, TooMany, Unavailable
from cardbeat.host.system import UNSHAPED
from cardbeat.jobs import Future, Workers
from cardbeat.keys.key import CARDS, Key
from cardbeat.keys.rate import RateLimit
from cardbeat.keys.store import Keys, hash_of
from cardbeat.web.message import (
    Request,
    Response,
    first_value,
    header_lines,
    known_among,
    only_value,
)
from cardbeat.web.router import Answer, Awaited, Route

if TYPE_CHECKING:
    from cardbeat.cards.request import Card

log = logging.getLogger(__name__)

RENDERS_OF_CLIENT: Final = 240
"""New cards a minute of one client, with any keys."""
WAITING_OF_KEY: Final = 64
WAITING_OF_CLIENT: Final = 64
WAITING_IN_ALL: Final = 512
WAIT_SECONDS: Final = 10

_ROBOTS = Response(
    200,
    b"User-agent: *\nAllow: /\n",
    {"Content-Type": "text/plain; charset=utf-8"},
)
"""Crawlers may fetch everything: it is they that request cards."""
_RANGE = re.compile(
    r"bytes=(?!-$)(\d{0,999})-(\d{0,999})", re.ASCII | re.IGNORECASE
)


class CardRoutes:
    """Answers a card's URL from memory, from its file, or draws it.

    1. The loop answers a stored card itself, if its key was looked up within the last second.
    2. For any other card a thread looks up the key, and then looks for the file.
    3. What is not there is drawn, once for all who ask for it. The thread does not wait for that.
    """

    def __init__(
        self,
        keys: Keys,
        store: Store,
        painter: Painter,
        renders: RateLimit,
        *,
        monotonic: Clock = time.monotonic,
    ) -> None:
        self._keys = keys
        self._store = store
        self._painter = painter
        self._renders = renders
        self._monotonic = monotonic
        self.drawn = 0
        self.drawing_seconds = 0.0
        """Cards drawn since the start, and the time that this took. Only one thread draws."""
        self._worker = Workers("drawing", 1, running_each=1)
        self._is_stopping = False
        self._deciding = threading.Lock()
        """Held by the thread that looks whether a card must be drawn."""
        self._flights: dict[str, Future[StoredCard]] = {}
        """The cards that are drawn or wait for it, by file name."""
        self._waiting = Counter[str]()
        """How many cards wait of each key and client, and of all. Used under the lock."""

    def routes(self) -> list[Route]:
        return [
            Route("GET", "/og", self.card, in_loop=True),
            Route("GET", "/robots.txt", lambda _: _ROBOTS, in_loop=True),
        ]

    def stop(self) -> None:
        """Draw nothing more: cards that wait are refused."""
        self._is_stopping = True
        self._worker.stop()

    def card(self, request: Request) -> Answer:
        """The card's PNG if it is stored and its key is cached; else what finds it in a thread."""
        hot = self._store.memory.get(request.target)
        key_hash = hot[1] if hot else _key_hash(request)
        # With a key of another scope no card was ever drawn, and none is stored.
        if self._keys.cached(key_hash) is None:
            return partial(self._find, key_hash)
        if hot:
            return asked_part(request, hot[0])
        # Only the loop puts cards into the memory. The C library has a heap for each thread, and
        # the threads' heaps would keep what the loop frees.
        card = (
            self._store.read(file_name(request.target))
            if self._store.is_quick
            else None
        )
        if card is None:
            return partial(self._find, key_hash)
        response = _response("HIT", card)
        response.lines = header_lines(response)
        self._store.memory.put(request.target, (response, key_hash))
        return asked_part(request, response)

    def _find(self, key_hash: bytes, request: Request) -> Answer:
        """The card, stored or when it is drawn. Raises `Refusal`, for this client alone."""
        key = self._keys.authenticate(key_hash, (CARDS,))
        name = file_name(request.target)
        with self._deciding:
            cache = "HIT"
            flight = self._flights.get(name)
            if flight is None:
                card = self._store.read(name)
                if card is not None:
                    return asked_part(request, _response(cache, card))
                cache = "MISS"
                flight = self._begin(request, name, key)
        return Awaited(
            flight,
            lambda card: asked_part(request, _response(cache, card)),
        )

    def _begin(
        self, request: Request, name: str, key: Key
    ) -> Future[StoredCard]:
        """Have a new card drawn, in turn by client and then by key.

        A request that is refused counts for no limit. A card that has waited for more than
        `WAIT_SECONDS` when its turn comes is refused.
        """
        from cardbeat.cards.request import PARAMETERS, card_from  # noqa: PLC0415 - not at the start

        values = known_among(PARAMETERS, request.query)
        values["lang"] = only_value(request.query, "lang")
        card = card_from(values)
        client = request.network
        limits = {
            key.id: WAITING_OF_KEY,
            client: WAITING_OF_CLIENT,
            "all": WAITING_IN_ALL,
        }
        if any(
            self._waiting[whose] >= most for whose, most in limits.items()
        ):
            raise Unavailable("busy", retry_after_seconds=1)
        self._take_render(key, client)
        flight = Future[StoredCard]()
        until = self._monotonic() + WAIT_SECONDS

        def settle() -> None:
            with self._deciding:
                # This also drops the names that have none left.
                self._waiting -= Counter(limits.keys())
            try:
                if self._is_stopping:
                    raise Unavailable("stopping")
                if self._monotonic() > until:
                    raise Unavailable("busy", retry_after_seconds=1)
                sealed = self._draw(name, card)
            except Exception as error:
                self._flights.pop(name)
                flight.set_error(error)
                return
            # It is stored: a request that comes later finds it there.
            self._flights.pop(name)
            flight.set_result(sealed)

        self._waiting.update(limits.keys())
        self._flights[name] = flight
        self._worker.submit(client, settle, key.id)
        return flight

    def _draw(self, name: str, card: "Card") -> StoredCard:
        began = time.perf_counter()
        drawing = self._painter.draw(card)
        self.drawing_seconds += time.perf_counter() - began
        self.drawn += 1
        if drawing.unshaped:
            log.warning("%s", UNSHAPED)
        sealed = seal(name, drawing.png, drawing.missing_glyphs)
        self._store.put(sealed)
        return sealed

    def _take_render(self, key: Key, client: str) -> None:
        """Count a new card. One client may take three quarters of a key's cards."""
        limits = {client: RENDERS_OF_CLIENT}
        per_minute = key.limits.renders_per_minute
        if per_minute is not None:
            limits[key.id] = per_minute
            limits[f"{key.id} {client}"] = max(1, per_minute * 3 // 4)
        wait_seconds = self._renders.take(limits)
        if wait_seconds:
            most = min(limits.values())
            sentence = f"At most {most} new cards a minute are drawn for you; try again later."
            raise TooMany(sentence, wait_seconds)


def _key_hash(request: Request) -> bytes:
    value = first_value(request.query, "key")
    if not value:
        raise Refusal("key_missing", field="key")
    return hash_of(value)


def _response(cache: str, card: StoredCard) -> Response:
    headers = {
        "Content-Type": "image/png",
        "Cache-Control": "public, max-age=31536000, immutable",
        "ETag": card.etag,
        "X-Cache": cache,
        "X-Missing-Glyphs": str(card.missing_glyphs),
        "Accept-Ranges": "bytes",
    }
    return Response(200, card.png, headers)


def asked_part(request: Request, whole: Response) -> Response:
    """The card, the requested part of it, or 304 (RFC 9110, 13 and 14). Raises `Refusal` 416.

    All of it also for several ranges, an invalid one, or one of another version.
    """
    headers = request.headers
    if "range" not in headers and "if-none-match" not in headers:
        return whole
    etag = whole.headers["ETag"]
    if request.names_tag("if-none-match", etag):
        return Response(304, b"", whole.headers)
    match = _RANGE.fullmatch(headers.get("range", "").strip())
    if (
        match is None
        or request.method != "GET"
        or headers.get("if-range", etag) != etag
    ):
        return whole
    first, last = match.groups()
    length = len(whole.body)
    begin = int(first or max(0, length - int(last)))
    end = length
    if first and last:
        end = int(last) + 1
        if begin >= end:
            return whole
    part = whole.body[begin:end]
    if not part:
        told = {"Content-Range": f"bytes */{length}"}
        raise Refusal(
            "range_not_satisfiable", headers=told, length=length
        )
    told = {
        **whole.headers,
        "Content-Range": f"bytes {begin}-{begin + len(part) - 1}/{length}",
    }
    return Response(206, part, told)
