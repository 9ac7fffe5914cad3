"""A key as it is known here, and how a request is refused for its key."""

from dataclasses import dataclass
from typing import Any

from cardbeat.clock import utc_text
from cardbeat.config import Tier
from cardbeat.errors import Refusal

CARDS = "cards"
CHECKS = "checks"

_KEY_MISSING = "An API key is needed here; POST /register issues one."
_WRONG_SCOPE = {
    CARDS: "This is a checks key; cards take a cards key, which POST /register issues when it is sent no body.",
    CHECKS: "This is a cards key; checks take a checks key, which POST /register issues for an e-mail address.",
}


@dataclass(frozen=True, slots=True)
class Key:
    """A key without its value. `prefix` is the start of the value, enough to recognise it by."""

    id: str
    scope: str
    tier: str
    limits: Tier
    email: str | None
    prefix: str
    created_at: int

    def as_json(self) -> dict[str, Any]:
        """Scope, tier, creation and, for a checks key, its e-mail address."""
        value = {"scope": self.scope, "tier": self.tier, "created_at": utc_text(self.created_at)}
        return value if self.email is None else {**value, "email": self.email}


@dataclass(frozen=True, slots=True)
class IssuedKey:
    """A key with the secrets that are shown this once."""

    key: Key
    value: str
    webhook_secret: str | None


def in_scope(key: Key, scope: str | None, wrong_scope: str | None = None) -> Key:
    """The key. Raises `Refusal` 403, with the sentence `wrong_scope` if one is given, for another scope."""
    if scope is not None and key.scope != scope:
        raise Refusal(403, "wrong_scope", wrong_scope or _WRONG_SCOPE[scope])
    return key


def key_missing(sentence: str = _KEY_MISSING, field: str | None = None) -> Refusal:
    return _unauthorized("key_missing", sentence, field)


def key_unknown(sentence: str) -> Refusal:
    return _unauthorized("key_unknown", sentence)


def _unauthorized(code: str, sentence: str, field: str | None = None) -> Refusal:
    """401 with the challenge that RFC 9110, 11.6.1 demands of it."""
    return Refusal(401, code, sentence, field=field, headers={"WWW-Authenticate": "Bearer"})
