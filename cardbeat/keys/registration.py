"""Who may register, and how often: the limits are counted before a request costs a worker, its body or a write."""

from collections.abc import Callable
from typing import NamedTuple

from cardbeat.config import Config
from cardbeat.errors import Refusal, TooMany
from cardbeat.keys.rate import StrictRateLimit
from cardbeat.web.forwarded import network_of
from cardbeat.web.message import Request

HOST_PREFIX, WIDER_TIMES = 64, 10
"""An IPv6 /48 gets ten times the keys of a /64, which one host usually has alone."""

SITES_ALLOWED = ("same-origin", "none")
"""Values of Sec-Fetch-Site. Browsers always send it and pages can't change it; other clients don't send it."""


class Stranger(NamedTuple):
    """A client that has no key yet. Its requests wait with those of its network."""

    queue: str


class Registration:
    """The guard of `/register`: refuses by the request's head alone, in the server's loop.

    Only an issued key counts: a refused request takes nothing from the limits of a network and of the one around it.
    """

    refuses = (403, 429)

    def __init__(self, config: Config) -> None:
        self._config = config
        self._issued = StrictRateLimit()

    def find(self, request: Request, _work_soon: Callable[[Callable[[], None]], None]) -> Stranger:
        return self.look_up(request)

    def look_up(self, request: Request) -> Stranger:
        """Raises `Refusal` 403 where registration is closed and to another site's page, `TooMany` above a limit."""
        if request.headers.get("sec-fetch-site", "none") not in SITES_ALLOWED:
            raise Refusal("cross_site")
        if not self._config.registration_open:
            raise Refusal("registration_closed")
        _require(self._issued.wait_seconds(self._limits(request)))
        return Stranger(request.network)

    def name_of(self, request: Request) -> str | None:
        return None

    def take(self, request: Request) -> None:
        """Count a key that is about to be issued. Raises `TooMany`."""
        _require(self._issued.take(self._limits(request)))

    def _limits(self, request: Request) -> dict[str, int]:
        most = self._config.register_per_minute
        return {request.network: WIDER_TIMES * most} | {network_of(request.client, HOST_PREFIX): most}


def _require(wait_seconds: float) -> None:
    if wait_seconds:
        raise TooMany(None, wait_seconds)
