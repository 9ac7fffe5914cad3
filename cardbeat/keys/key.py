"""A key without its value, and the refusals of requests for their key."""

from collections.abc import Collection
from typing import Any, NamedTuple

from cardbeat.clock import utc_text
from cardbeat.config import Tier
from cardbeat.errors import Refusal

CARDS = "cards"
CHECKS = "checks"
READ = "read"
"""The scope of the second value that a checks key may have. It reads what the checks key reads, and changes nothing."""

_CHALLENGE = {"WWW-Authenticate": "Bearer"}
"""RFC 9110, 11.6.1: every 401 has this header."""
_NAMES = {CHECKS: "checks", READ: "read-only"}
_NO_CARDS_KEY = "This is a {} key; cards take a cards key, which POST /register issues when it is sent no body."
_READS_ONLY = "This is a read-only key, which changes nothing; send the checks key."


class Key(NamedTuple):
    """A key without its value. `prefix` is the first 8 characters of the value, for people to recognise it.

    A read-only key is its checks key, with another scope and prefix and without an e-mail address. `read_prefix` is the
    prefix of the read-only key that a checks key has, None without one.

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
    read_prefix: str | None = None

    @property
    def queue(self) -> str:
        """Where its requests wait. Those of a read-only key are not in the way of the checks key's."""
        return f"{self.id} {READ}" if self.scope == READ else self.id

    def as_json(self) -> dict[str, Any]:
        """Scope, tier, time of creation and, for a checks key, its e-mail address."""
        value = {"scope": self.scope, "tier": self.tier, "created_at": utc_text(self.created_at)}
        return value if self.email is None else {**value, "email": self.email}


class IssuedKey(NamedTuple):
    """A key with its value and webhook secret, which are shown only once."""

    key: Key
    value: str
    webhook_secret: str | None


def require_scope(key: Key, scopes: Collection[str], of_cards_key: str | None = None) -> None:
    """Raise `Refusal` 403 for a key of another scope than these; without any, all are allowed.

    `of_cards_key` is the sentence for a cards key, where the usual one does not fit.
    """
    if scopes and key.scope not in scopes:
        of_others = _READS_ONLY if CHECKS in scopes else _NO_CARDS_KEY.format(_NAMES[key.scope])
        raise Refusal("wrong_scope", of_cards_key if key.scope == CARDS else of_others)


def key_missing(sentence: str | None = None, field: str | None = None) -> Refusal:
    return Refusal("key_missing", sentence, field=field, headers=_CHALLENGE)


def key_unknown(sentence: str | None = None) -> Refusal:
    """401 for a request whose key does not exist, or no longer."""
    return Refusal("key_unknown", sentence, headers=_CHALLENGE)
