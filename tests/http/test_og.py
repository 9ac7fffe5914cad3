"""GET /og against the image-card document and CONTRACT 3, without a socket."""

import struct
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from cardbeat.cards.fonts import Fonts
from cardbeat.cards.render import Renderer
from cardbeat.cards.routes import CardRoutes
from cardbeat.cards.store import Store
from cardbeat.config import FREE, Tier
from cardbeat.database import Database
from cardbeat.keys.rate import RateLimit
from cardbeat.keys.store import Keys
from cardbeat.web.message import Request, Response
from cardbeat.web.router import Router

RENDERER = Renderer(Fonts())


class Cards:
    """The card routes with their keys and store, asked by URL."""

    def __init__(self, folder: Path, database: Database, clock) -> None:
        self.folder = folder
        self.clock = clock
        self.monotonic = 1000.0
        self.keys = Keys(database, clock, {"free": FREE, "few": Tier(renders_per_minute=2)})
        self.store = Store(folder, 1_000_000)
        routes = CardRoutes(self.keys, self.store, RENDERER, RateLimit(lambda: self.monotonic))
        self.router = Router(routes.routes())
        self.key = self.keys.issue().value

    def get(self, target: str, method: str = "GET", **headers: str) -> Response:
        return self.router.handle(self.request(target, method, **headers))

    def quick(self, target: str) -> Response | None:
        return self.router.handle_quick(self.request(target))

    def card(self, title: str = "A title", extra: str = "", **headers: str) -> Response:
        return self.get(self.url(title, extra), **headers)

    def url(self, title: str = "A title", extra: str = "") -> str:
        return f"/og?title={quote(title)}&key={self.key}{extra}"

    def files(self) -> list[Path]:
        return list(self.store.folder.glob("*.png"))

    @staticmethod
    def request(target: str, method: str = "GET", **headers: str) -> Request:
        path, _, query = target.partition("?")
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        return Request(method, target, path, query, names)


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
