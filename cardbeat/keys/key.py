"""A key without its value, and the refusal of a key of the wrong scope."""

from collections.abc import Collection
from typing import Any, NamedTuple

from cardbeat.clock import utc_text
from cardbeat.config import Tier
from cardbeat.errors import Refusal

CARDS = "cards"
CHECKS = "checks"
READ = "read"
"""The scope of the second value that a checks key may have, which reads and changes nothing."""

_NO_CARDS_KEY = (
    "This is a checks key, or one that reads checks; cards take a cards key, which POST /register"
    " issues when it is sent no body."
)


class Key(NamedTuple):
    """A key without its value. `prefix` is the value's first 8 characters, for people.

    A read-only key is its checks key, with another scope and prefix and without an e-mail address.
    `read_prefix` is the prefix of the read-only key that a checks key has, None without one.

    `used_at` is when the key was first used, None before that.
    """

    id: str
    scope: str
    tier: str
    limits: Tier
    email: str | None
    prefix: str
    created_at: int
    used_at: int | None
    read_prefix: str | None

    def as_json(self) -> dict[str, Any]:
        """Scope, tier, time of creation and, for a checks key, its e-mail address."""
        value = {
            "scope": self.scope,
            "tier": self.tier,
            "created_at": utc_text(self.created_at),
        }
        if self.email is not None:
            value["email"] = self.email
        return value


class IssuedKey(NamedTuple):
    """A key with its value and webhook secret, which are shown only once."""

    key: Key
    value: str
    webhook_secret: str | None = None


def require_scope(key: Key, scopes: Collection[str]) -> None:
    """Raise `Refusal` 403 for a key of another scope than these; without any, all are allowed."""
    if not scopes or key.scope in scopes:
        return
    sentence = None
    if CHECKS not in scopes:
        sentence = _NO_CARDS_KEY
    elif key.scope == READ:
        sentence = "This is a read-only key, which changes nothing; send the checks key."
    raise Refusal("wrong_scope", sentence)
