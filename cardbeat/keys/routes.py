"""The endpoints `/register` and `/key`: registration, and what a key may do with itself."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from cardbeat.config import TESTS_AN_HOUR, Config
from cardbeat.errors import Invalid, Refusal, TooMany
from cardbeat.keys.key import CHECKS, READ, IssuedKey
from cardbeat.keys.rate import RateLimit
from cardbeat.keys.store import Bearer, Keys, key_of
from cardbeat.text import CONTROL, SPACE
from cardbeat.web.message import Request, Response, network_of
from cardbeat.web.router import Route

MAX_EMAIL_LENGTH = 254
_ADDRESS = re.compile(
    f"[^@{SPACE}{CONTROL}]+@[^@{SPACE}{CONTROL}]+"
).fullmatch
SITES_ALLOWED = ("same-origin", "none")
"""Values of Sec-Fetch-Site. Browsers send it and pages can't change it; other clients lack it."""
WIDER_PREFIX = 48
WIDER_TIMES = 10
"""All networks of an IPv6 /48, which one customer often has, get ten times what one gets."""


@dataclass(eq=False, repr=False)
class KeyRoutes:
    """Handlers of `/register` and `/key`."""

    _config: Config
    _keys: Keys
    _renders: RateLimit
    """Counts the cards drawn for each key id."""
    _usage: Callable[[str], tuple[int, int]]
    """Returns the number of checks of a key id, and of its test alerts in the last hour."""
    _wake_removal: Callable[[], None]
    """Called after a key was revoked."""
    _issued: RateLimit = field(default_factory=RateLimit)

    def routes(self) -> list[Route]:
        owner = Bearer(self._keys, CHECKS)
        reader = "/key/read-only"
        return [
            Route("POST", "/register", self.register),
            Route("GET", "/key", self.read, guard=Bearer(self._keys)),
            Route("DELETE", "/key", self.revoke, guard=owner),
            Route("POST", "/key/rotate", self.rotate, guard=owner),
            Route("POST", reader, self.issue_reader, guard=owner),
            Route("DELETE", reader, self.end_reader, guard=owner),
            Route("POST", "/key/webhook-secret", self.renew, guard=owner),
        ]

    def register(self, request: Request) -> Response:
        """Issue a key. A request that is refused counts for no limit."""
        if (
            request.headers.get("sec-fetch-site", "none")
            not in SITES_ALLOWED
        ):
            raise Refusal("cross_site")
        if not self._config.registration_open:
            raise Refusal("registration_closed")
        email = None
        if request.body:
            email = valid_email(
                request.json_object(["email"]).get("email")
            )
        most = self._config.register_per_minute
        limits = {
            network_of(request.client, WIDER_PREFIX): WIDER_TIMES * most
        }
        # An IPv4 address is its own wider network: then this limit stays.
        limits[request.network] = most
        wait_seconds = self._issued.take(limits)
        if wait_seconds:
            raise TooMany(None, wait_seconds)
        return _issued(201, self._keys.issue(email))

    def read(self, request: Request) -> Response:
        key = key_of(request)
        limits = key.limits
        checks, tests = self._usage(key.id)
        renders = 0
        if limits.renders_per_minute is not None:
            renders = self._renders.used(
                key.id, limits.renders_per_minute
            )
        shown: dict[str, Any] = {"prefix": key.prefix, **key.as_json()}
        if key.scope == CHECKS:
            shown["read_only_prefix"] = key.read_prefix
        others = {"test_alerts_per_hour": TESTS_AN_HOUR}
        shown["limits"] = {**limits._asdict(), **others}
        usage = {
            "checks": checks,
            "renders": renders,
            "test_alerts": tests,
        }
        shown["usage"] = usage
        return Response.json(200, shown)

    def rotate(self, request: Request) -> Response:
        request.expect_no_body()
        return _issued(200, self._keys.rotate(key_of(request)))

    def revoke(self, request: Request) -> Response:
        request.expect_no_body()
        self._keys.revoke(key_of(request).id)
        self._wake_removal()
        return Response(204)

    def issue_reader(self, request: Request) -> Response:
        request.expect_no_body()
        value = self._keys.issue_reader(key_of(request))
        return Response.json(201, {"key": value, "scope": READ})

    def end_reader(self, request: Request) -> Response:
        request.expect_no_body()
        self._keys.end_reader(key_of(request))
        return Response(204)

    def renew(self, request: Request) -> Response:
        request.expect_no_body()
        secret = self._keys.renew_webhook_secret(key_of(request))
        return Response.json(200, {"webhook_secret": secret})


def valid_email(email: object) -> str:
    """Return the address as given. Raises `Invalid` for a value that is not an e-mail address."""
    if (
        isinstance(email, str)
        and len(email) <= MAX_EMAIL_LENGTH
        and _ADDRESS(email)
    ):
        return email
    sentence = (
        f"Give email, an address of at most {MAX_EMAIL_LENGTH} characters: one @ with something on"
        " both sides, no spaces or control characters; or send no body for a cards key."
    )
    raise Invalid("invalid_field", sentence, field="email")


def _issued(status: int, issued: IssuedKey) -> Response:
    shown = {"key": issued.value, **issued.key.as_json()}
    if issued.webhook_secret is not None:
        shown["webhook_secret"] = issued.webhook_secret
    return Response.json(status, shown)
