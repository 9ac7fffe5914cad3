"""The endpoints of keys: registration, and what a key may do with itself."""

import ipaddress
import unicodedata
from collections.abc import Callable
from typing import Any

from cardbeat.errors import Invalid, Refusal, TooMany
from cardbeat.keys.rate import RateLimit, StrictRateLimit
from cardbeat.keys.store import CHECKS, IssuedKey, Key, Keys
from cardbeat.keys.webhook_secrets import WebhookSecrets
from cardbeat.web.message import Request, Response
from cardbeat.web.router import Route

MAX_EMAIL_LENGTH = 254
_SPACES_AND_CONTROLS = ("Zs", "Zl", "Zp", "Cc")
_INVISIBLE = "Cf"
"""Unicode's format characters, those among them that turn the direction of the text around them."""
_JOINERS = "\u200c\u200d"
"""Invisible too, but part of how several scripts and emoji are spelt."""

_PUBLIC = (
    "A cards key is public, so it can't change itself; the operator of this server ends it with the command: "
    "keys revoke ID"
)


class KeyRoutes:
    """`count_checks` tells how many checks a key has, by its id; `renders` counts the drawings of each key.

    `after_revocation` is called when a key was revoked.
    """

    def __init__(
        self,
        keys: Keys,
        webhook_secrets: WebhookSecrets,
        renders: RateLimit,
        count_checks: Callable[[str], int],
        after_revocation: Callable[[], None],
        *,
        registration_open: bool,
        register_per_minute: int,
    ) -> None:
        self._keys = keys
        self._webhook_secrets = webhook_secrets
        self._renders = renders
        self._count_checks = count_checks
        self._after_revocation = after_revocation
        self._registration_open = registration_open
        self._register_per_minute = register_per_minute
        self._registrations = StrictRateLimit()

    def routes(self) -> list[Route]:
        return [
            Route("POST", "/register", self.register),
            Route("GET", "/key", self.read),
            Route("DELETE", "/key", self.revoke),
            Route("POST", "/key/rotate", self.rotate),
            Route("POST", "/key/webhook-secret", self.renew_webhook_secret),
        ]

    def register(self, request: Request) -> Response:
        if not self._registration_open:
            raise Refusal(403, "registration_closed", "Registration is closed here; ask the operator for a key.")
        email = valid_email(request.json_object(["email"]).get("email")) if request.body else None
        wait = self._registrations.take(_network(request.client), self._register_per_minute)
        if wait:
            raise TooMany("Too many keys were issued to your address; try again in a moment.", wait)
        return Response.json(201, _issued(self._keys.issue(email)))

    def read(self, request: Request) -> Response:
        key = self._keys.authenticate(request, None)
        return Response.json(200, {"prefix": key.prefix, **key.as_json(), **self._limits_and_usage(key)})

    def rotate(self, request: Request) -> Response:
        key = self._checks_key(request)
        request.expect_no_body()
        return Response.json(200, _issued(self._keys.rotate(key)))

    def revoke(self, request: Request) -> Response:
        key = self._checks_key(request)
        request.expect_no_body()
        self._keys.revoke(key.id)
        self._after_revocation()
        return Response(204)

    def renew_webhook_secret(self, request: Request) -> Response:
        key = self._checks_key(request)
        request.expect_no_body()
        return Response.json(200, {"webhook_secret": self._webhook_secrets.renew(key)})

    def _checks_key(self, request: Request) -> Key:
        """The key of a request that changes it. Raises `Refusal` 403 for a cards key: anyone can read it in a page."""
        key = self._keys.authenticate(request, None)
        if key.scope != CHECKS:
            raise Refusal(403, "wrong_scope", _PUBLIC)
        return key

    def _limits_and_usage(self, key: Key) -> dict[str, Any]:
        limits = key.limits
        per_minute = limits.renders_per_minute
        return {
            "limits": {
                "max_checks": limits.max_checks,
                "min_period_seconds": limits.min_period_seconds,
                "renders_per_minute": per_minute,
            },
            "usage": {
                "checks": self._count_checks(key.id),
                "renders": 0 if per_minute is None else self._renders.used(key.id, per_minute),
            },
        }


def _issued(issued: IssuedKey) -> dict[str, Any]:
    value = {"key": issued.value, **issued.key.as_json()}
    return value if issued.webhook_secret is None else {**value, "webhook_secret": issued.webhook_secret}


def valid_email(email: object) -> str:
    """The address as given. Raises `Invalid` for one of another form.

    It needs one @ with something on both sides and at most 254 characters, none of them a space, a control character or
    an invisible one.
    """
    if not isinstance(email, str):
        sentence = "Give email, a string, for a checks key; or send no body at all for a cards key."
        raise Invalid("invalid_field", sentence, field="email")
    name, at, host = email.partition("@")
    if not (name and at and host) or "@" in host:
        raise Invalid("invalid_field", "The e-mail address needs one @ with something on both sides.", field="email")
    if len(email) > MAX_EMAIL_LENGTH:
        sentence = f"The e-mail address must have at most {MAX_EMAIL_LENGTH} characters."
        raise Invalid("invalid_field", sentence, field="email")
    if any(unicodedata.category(character) in _SPACES_AND_CONTROLS for character in email):
        sentence = "The e-mail address must not contain spaces or control characters."
        raise Invalid("invalid_field", sentence, field="email")
    if any(unicodedata.category(character) == _INVISIBLE and character not in _JOINERS for character in email):
        sentence = "The e-mail address must not contain invisible characters, such as those that turn its direction."
        raise Invalid("invalid_field", sentence, field="email")
    return email


def _network(client: str) -> str:
    """What counts as one client: an IPv4 address, or the IPv6 /64 that one host usually has to itself."""
    try:
        address = ipaddress.ip_address(client)
    except ValueError:
        return client
    if isinstance(address, ipaddress.IPv4Address):
        return client
    return str(address.ipv4_mapped or ipaddress.ip_network((address, 64), strict=False))
