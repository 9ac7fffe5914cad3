"""The endpoints `/register` and `/key`: registration, and what a key may read and change of itself."""

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cardbeat.characters import first_seen, holds_formats
from cardbeat.concurrency.later import Later
from cardbeat.config import TESTS_AN_HOUR
from cardbeat.errors import Invalid
from cardbeat.keys.bearer import Bearer, key_of
from cardbeat.keys.key import CHECKS, READ, IssuedKey, Key
from cardbeat.keys.rate import RateLimit
from cardbeat.keys.registration import Registration
from cardbeat.keys.store import Keys
from cardbeat.keys.webhook_secrets import WebhookSecrets
from cardbeat.web.message import Request, Response
from cardbeat.web.router import Route

MAX_EMAIL_LENGTH = 254
_SPACES_AND_CONTROLS = ("Zs", "Zl", "Zp", "Cc")
_SURROGATE = "Cs"
"""Unicode category of half a character. Python gives one for each byte of a command line that is not UTF-8."""

_PUBLIC = (
    "A cards key is public, so it can't change itself; the operator of this server ends it with the command: "
    "keys revoke ID"
)


@dataclass(eq=False, repr=False)
class KeyRoutes:
    """Handlers of `/register` and `/key`.

    `renders` counts the cards drawn for each key. `usage` returns the number of checks of a key id and of its test
    alerts in the last hour. `wake_removal` is called after a key was revoked.
    """

    _registration: Registration
    _keys: Keys
    _webhook_secrets: WebhookSecrets
    _renders: RateLimit
    _usage: Callable[[str], tuple[int, int]]
    _wake_removal: Callable[[], None]

    def routes(self) -> list[Route]:
        any_key, checks_key = Bearer(self._keys), Bearer(self._keys, CHECKS, of_cards_key=_PUBLIC)
        return [
            Route("POST", "/register", self.register, guard=self._registration),
            Route("GET", "/key", self.read, guard=any_key),
            Route("DELETE", "/key", self.revoke, guard=checks_key),
            Route("POST", "/key/rotate", self.rotate, guard=checks_key),
            Route("POST", "/key/read-only", self.issue_reader, guard=checks_key),
            Route("DELETE", "/key/read-only", self.end_reader, guard=checks_key),
            Route("POST", "/key/webhook-secret", self.renew_webhook_secret, guard=checks_key),
        ]

    def register(self, request: Request) -> Later[Response]:
        email = valid_email(request.json_object(["email"]).get("email")) if request.body else None
        self._registration.take(request)
        return self._keys.issue(email).map(lambda issued: Response.json(201, _issued(issued)))

    def read(self, request: Request) -> Response:
        key = key_of(request)
        reader = {"read_only_prefix": key.read_prefix} if key.scope == CHECKS else {}
        return Response.json(200, {"prefix": key.prefix, **key.as_json(), **reader, **self._limits_and_usage(key)})

    def rotate(self, request: Request) -> Later[Response]:
        request.expect_no_body()
        return self._keys.rotate(key_of(request)).map(lambda issued: Response.json(200, _issued(issued)))

    def revoke(self, request: Request) -> Later[Response]:
        request.expect_no_body()
        return self._keys.revoke(key_of(request).id).map(self._revoked)

    def _revoked(self, _is_done: bool) -> Response:
        self._wake_removal()
        return Response(204)

    def issue_reader(self, request: Request) -> Later[Response]:
        request.expect_no_body()
        issued = self._keys.issue_reader(key_of(request))
        return issued.map(lambda value: Response.json(201, {"key": value, "scope": READ}))

    def end_reader(self, request: Request) -> Later[Response]:
        request.expect_no_body()
        return self._keys.end_reader(key_of(request)).map(lambda _: Response(204))

    def renew_webhook_secret(self, request: Request) -> Later[Response]:
        request.expect_no_body()
        renewed = self._webhook_secrets.renew(key_of(request))
        return renewed.map(lambda secret: Response.json(200, {"webhook_secret": secret}))

    def _limits_and_usage(self, key: Key) -> dict[str, Any]:
        per_minute = key.limits.renders_per_minute
        checks, tests = self._usage(key.id)
        return {
            "limits": {
                "max_checks": key.limits.max_checks,
                "min_period_seconds": key.limits.min_period_seconds,
                "renders_per_minute": per_minute,
                "test_alerts_per_hour": TESTS_AN_HOUR,
            },
            "usage": {
                "checks": checks,
                "renders": 0 if per_minute is None else self._renders.used(key.id, per_minute),
                "test_alerts": tests,
            },
        }


def _issued(issued: IssuedKey) -> dict[str, Any]:
    value = {"key": issued.value, **issued.key.as_json()}
    return value if issued.webhook_secret is None else {**value, "webhook_secret": issued.webhook_secret}


def valid_email(email: object) -> str:
    """The address as given. Raises `Invalid` for a value that is not an e-mail address.

    It needs one @ with a visible character on each side, and has at most 254 characters. Spaces, control characters,
    format characters (such as those that change the direction of text) and surrogates are refused.
    """
    if not isinstance(email, str):
        sentence = "Give email, a string, for a checks key; or send no body at all for a cards key."
    elif not all(email.partition("@")) or email.count("@") > 1:
        sentence = "The e-mail address needs one @ with something on both sides."
    elif len(email) > MAX_EMAIL_LENGTH:
        sentence = f"The e-mail address must have at most {MAX_EMAIL_LENGTH} characters."
    elif any(unicodedata.category(character) in _SPACES_AND_CONTROLS for character in email):
        sentence = "The e-mail address must not contain spaces or control characters."
    elif any(unicodedata.category(character) == _SURROGATE for character in email):
        sentence = "The e-mail address must be text in UTF-8."
    elif holds_formats(email):
        sentence = "The e-mail address must not contain invisible characters, such as those that turn its direction."
    elif not all(map(first_seen, email.split("@"))):
        sentence = "The e-mail address must show something on both sides of its @."
    else:
        return email
    raise Invalid("invalid_field", sentence, field="email")
