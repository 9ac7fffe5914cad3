"""A key without its value, and the refusals of requests for their key."""

from dataclasses import dataclass
from typing import Any

from cardbeat.clock import utc_text
from cardbeat.config import Tier
from cardbeat.errors import Refusal

CARDS = "cards"
CHECKS = "checks"

_CHALLENGE = {"WWW-Authenticate": "Bearer"}
"""RFC 9110, 11.6.1: every 401 has this header."""
_NO_CARDS_KEY = "This is a checks key; cards take a cards key, which POST /register issues when it is sent no body."


@dataclass(frozen=True, slots=True)
class Key:
    """A key without its value. `prefix` is the first 8 characters of the value, for people to recognise it.

    `used_at` is when it was last used, at most a day ago if it is used all the time, None before its first use.
    """

    id: str
    scope: str
    tier: str
    limits: Tier
    email: str | None
    prefix: str
    created_at: int
    used_at: int | None = None

    def as_json(self) -> dict[str, Any]:
        """Scope, tier, time of creation and, for a checks key, its e-mail address."""
        value = {"scope": self.scope, "tier": self.tier, "created_at": utc_text(self.created_at)}
        return value if self.email is None else {**value, "email": self.email}


@dataclass(frozen=True, slots=True)
class IssuedKey:
    """A key with its value and webhook secret, which are shown only once."""

    key: Key
    value: str
    webhook_secret: str | None


def require_scope(key: Key, scope: str | None, sentence: str | None = None) -> None:
    """Raise `Refusal` 403, with this sentence, for a key of another scope. None allows both scopes."""
    if scope is not None and key.scope != scope:
        raise Refusal("wrong_scope", sentence or (_NO_CARDS_KEY if scope == CARDS else None))


def key_missing(sentence: str | None = None, field: str | None = None) -> Refusal:
    """401 for a request without a key."""
    return Refusal("key_missing", sentence, field=field, headers=_CHALLENGE)


def key_unknown(sentence: str | None = None) -> Refusal:
    """401 for a request whose key does not exist, or no longer."""
    return Refusal("key_unknown", sentence, headers=_CHALLENGE)
