"""API keys: issued, found, rotated and revoked. Only their hashes are stored."""

import base64
import hashlib
import secrets
import sqlite3
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf
from typing import Any

from cardbeat.clock import Clock, utc_text
from cardbeat.config import Tier
from cardbeat.database import Database
from cardbeat.errors import Refusal
from cardbeat.keys.tiers import tier_of
from cardbeat.web.message import Request

CARDS = "cards"
CHECKS = "checks"

CACHE_SECONDS = 0.1
"""How long a process may go without seeing what another one changed. So long a change takes to be done."""

_MAX_CACHED = 4096
_PREFIX_LENGTH = 8

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


@dataclass(slots=True)
class _Cached:
    key: Key
    looked_up_at: float
    is_renewed: bool = False
    """Whether it is being looked up again."""


class Keys:
    """The keys of this instance."""

    def __init__(self, database: Database, clock: Clock, tiers: Mapping[str, Tier]) -> None:
        self._database = database
        self._clock = clock
        self._tiers = tiers
        self._cache: dict[bytes, _Cached] = {}
        self._changes = 0

    def issue(self, email: str | None = None, tier: str = "free") -> IssuedKey:
        """A new key: for checks when there is an e-mail address, else for cards."""
        value = _new_value()
        secret = None if email is None else _new_webhook_secret()
        row = {
            "id": f"key_{secrets.token_hex(8)}",
            "scope": CARDS if email is None else CHECKS,
            "tier": tier,
            "email": email,
            "hash": _hash(value),
            "prefix": value[:_PREFIX_LENGTH],
            "webhook_secret": secret,
            "created_at": int(self._clock()),
        }
        self._database.write(
            lambda connection: connection.execute(
                "INSERT INTO keys (id, scope, tier, email, hash, prefix, webhook_secret, created_at) "
                "VALUES (:id, :scope, :tier, :email, :hash, :prefix, :webhook_secret, :created_at)",
                row,
            )
        )
        return IssuedKey(self._key(row), value, secret)

    def find(self, value: str) -> Key | None:
        """The key with this value, if it was issued and not revoked. Costs microseconds when asked again."""
        digest = _hash(value)
        cached = self._cache.get(digest)
        if cached is not None and time.monotonic() - cached.looked_up_at < CACHE_SECONDS / 2:
            return cached.key
        return self._load(digest)

    def find_cached(self, value: str, renew: Callable[[str], object]) -> Key | None:
        """The same without a look into the database: None also for a key that was not asked for a moment ago.

        `renew` is given the value once it should be looked up again, and returns at once: who asks often never waits.
        """
        cached = self._cache.get(_hash(value))
        seconds = time.monotonic() - cached.looked_up_at if cached else inf
        if cached is None or seconds >= CACHE_SECONDS:
            return None
        if seconds >= CACHE_SECONDS / 2 and not cached.is_renewed:
            cached.is_renewed = True
            renew(value)
        return cached.key

    def authenticate_value(self, value: str | None, scope: str | None) -> Key:
        """The key with this value. Raises `Refusal` 401 without a known one, 403 for one of another scope."""
        if not value:
            raise key_missing()
        key = self.find(value)
        if key is None:
            raise _unauthorized("key_unknown", "This API key is not known here, or was revoked.")
        if scope is not None and key.scope != scope:
            raise Refusal(403, "wrong_scope", _WRONG_SCOPE[scope])
        return key

    def authenticate(self, request: Request, scope: str | None) -> Key:
        """The key in the `Authorization: Bearer` header; `scope` None takes any. Raises `Refusal` 401 or 403."""
        scheme, _, value = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            raise key_missing("Send the API key in a header: Authorization: Bearer sk_...")
        return self.authenticate_value(value.strip(), scope)

    def rotate(self, key: Key) -> IssuedKey:
        """A new value for the same key; the old one is dead from here on. Raises `Refusal` 401 if it was revoked."""
        value = _new_value()

        def update(connection: sqlite3.Connection) -> sqlite3.Row | None:
            row: sqlite3.Row | None = connection.execute(
                "UPDATE keys SET hash = ?, prefix = ? WHERE id = ? AND prefix = ? RETURNING *",
                (_hash(value), value[:_PREFIX_LENGTH], key.id, key.prefix),
            ).fetchone()
            return row

        row = self._database.write(update)
        self._forget()
        if row is None:
            raise _unauthorized("key_unknown", "This API key was rotated or revoked a moment ago.")
        return IssuedKey(self._key(row), value, None)

    def revoke(self, key_id: str) -> bool:
        """End a key; its checks and their alerts go with it. False if there is none with this id."""
        deleted = self._database.write(
            lambda connection: connection.execute("DELETE FROM keys WHERE id = ?", (key_id,)).rowcount
        )
        self._forget()
        return deleted == 1

    def set_tier(self, key_id: str, tier: str) -> bool:
        """Move a key to a tier. False if there is none with this id."""
        changed = self._database.write(
            lambda connection: connection.execute("UPDATE keys SET tier = ? WHERE id = ?", (tier, key_id)).rowcount
        )
        self._forget()
        return changed == 1

    def all(self) -> list[Key]:
        """Every key, oldest first."""
        with self._database.read() as connection:
            return [self._key(row) for row in connection.execute("SELECT * FROM keys ORDER BY seq")]

    def count_by_tier(self) -> dict[str, int]:
        """How many keys are in each tier, also in one that is not defined any more."""
        with self._database.read() as connection:
            return count_by_tier(connection)

    def _load(self, digest: bytes) -> Key | None:
        changes = self._changes
        looked_up_at = time.monotonic()
        with self._database.read() as connection:
            row = connection.execute("SELECT * FROM keys WHERE hash = ?", (digest,)).fetchone()
        if row is None:
            self._cache.pop(digest, None)
            return None
        key = self._key(row)
        # A change that came between the read and here must not be undone by what was read before it.
        if changes == self._changes:
            if len(self._cache) >= _MAX_CACHED:
                self._cache.clear()
            self._cache[digest] = _Cached(key, looked_up_at)
        return key

    def _forget(self) -> None:
        """When this returns, no process on this data folder judges by what it read before the change."""
        self._changes += 1
        self._cache.clear()
        time.sleep(CACHE_SECONDS)

    def _key(self, row: Mapping[str, Any] | sqlite3.Row) -> Key:
        return Key(
            id=row["id"],
            scope=row["scope"],
            tier=row["tier"],
            limits=tier_of(self._tiers, row["tier"]),
            email=row["email"],
            prefix=row["prefix"],
            created_at=row["created_at"],
        )


def count_by_tier(connection: sqlite3.Connection) -> dict[str, int]:
    return {row[0]: row[1] for row in connection.execute("SELECT tier, count(*) FROM keys GROUP BY tier")}


def _new_value() -> str:
    return f"sk_{secrets.token_urlsafe(24)}"


def _new_webhook_secret() -> str:
    """As the Standard Webhooks specification writes one: `whsec_` and 24 bytes in base64."""
    return f"whsec_{base64.b64encode(secrets.token_bytes(24)).decode()}"


def _hash(value: str) -> bytes:
    return hashlib.sha256(value.encode("utf-8", "surrogatepass")).digest()


def key_missing(sentence: str = _KEY_MISSING, field: str | None = None) -> Refusal:
    return _unauthorized("key_missing", sentence, field)


def _unauthorized(code: str, sentence: str, field: str | None = None) -> Refusal:
    return Refusal(401, code, sentence, field=field, headers={"WWW-Authenticate": "Bearer"})
