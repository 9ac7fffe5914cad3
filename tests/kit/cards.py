"""What tests of `GET /og` are made with: keys without a database, and the routes without a socket."""

import json
from collections.abc import Callable
from urllib.parse import quote

from cardbeat.cards.drawing.render import Drawing
from cardbeat.cards.request import Card
from cardbeat.cards.routes import CardRoutes
from cardbeat.cards.store import Store
from cardbeat.config import Tier
from cardbeat.errors import Refusal
from cardbeat.keys.key import CARDS, Key, require_scope
from cardbeat.keys.rate import RateLimit
from cardbeat.keys.store import hash_of
from cardbeat.web.message import Request, Response
from cardbeat.web.router import Router
from tests.kit.support import FakeClock, answer_of, taken

Draw = Callable[[Card], Drawing]


class CardKeys:
    """Keys as `CardRoutes` asks for them. A key that was looked up stays cached until `forget`."""

    def __init__(self):
        self.keys = {}
        self.known = {}

    def issue(self, scope=CARDS, renders_per_minute=None):
        """The value of a new key."""
        value = f"sk_{len(self.keys):032}"
        tier = Tier(renders_per_minute=renders_per_minute)
        key = Key(
            f"key_{len(self.keys)}",
            scope,
            "tier",
            tier,
            None,
            "sk_",
            0,
            None,
            None,
        )
        self.keys[hash_of(value)] = key
        return value

    def forget(self):
        self.known.clear()

    def revoke_all(self):
        self.keys.clear()
        self.forget()

    def cached(self, digest):
        return self.known.get(digest)

    def authenticate(self, digest, scopes=()):
        if digest not in self.keys:
            raise Refusal("key_unknown")
        key = self.known[digest] = self.keys[digest]
        require_scope(key, scopes)
        return key


class Cards:
    """The routes of cards with their keys and store, asked by URL."""

    def __init__(self, folder, draw, keys=None):
        self.clock = FakeClock()
        self.keys = keys or CardKeys()
        self.key = self.keys.issue()
        self.folder = folder
        self.draw = draw
        self.store = Store(folder, 10_000_000, "v1")
        self.routes = CardRoutes(
            self.keys,
            self.store,
            self,
            RateLimit(self.clock),
            monotonic=self.clock,
        )
        self.router = Router(self.routes.routes())

    def close(self):
        self.routes.stop()
        self.store.close()

    def files(self):
        return list(self.store.folder.glob("*.png"))

    def url(self, title="A title", extra="", key=None):
        return f"/og?title={quote(title)}&key={key or self.key}{extra}"

    def request(
        self, target, method="GET", client="192.0.2.1", **headers
    ):
        path, _, query = target.partition("?")
        sent = {
            name.replace("_", "-"): value
            for name, value in headers.items()
        }
        return Request(
            method,
            target,
            path,
            query,
            sent,
            client=client,
            network=client,
        )

    def get(self, target, *args, **headers):
        return answer_of(
            self.router, self.request(target, *args, **headers)
        )

    def card(self, title="A title", extra="", **headers):
        return self.get(self.url(title, extra), **headers)

    def at_once(self, target, **headers):
        """The answer, if the loop gives it itself."""
        answer = self.routes.card(self.request(target, **headers))
        return taken(answer) if isinstance(answer, Response) else None


def body_of(response):
    return dict(json.loads(response.body))
