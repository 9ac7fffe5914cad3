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


def key_out_of_scope(scope: str, sentence: str | None = None) -> Refusal:
    """403 for a key of another scope than this one."""
    return Refusal(403, "wrong_scope", sentence or _WRONG_SCOPE[scope])


def key_missing(sentence: str = _KEY_MISSING, field: str | None = None) -> Refusal:
    return _unauthorized("key_missing", sentence, field)


def key_unknown(sentence: str) -> Refusal:
    return _unauthorized("key_unknown", sentence)


def _unauthorized(code: str, sentence: str, field: str | None = None) -> Refusal:
    """401 with the challenge that RFC 9110, 11.6.1 demands of it."""
    return Refusal(401, code, sentence, field=field, headers={"WWW-Authenticate": "Bearer"})
