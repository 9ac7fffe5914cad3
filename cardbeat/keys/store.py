"""API keys: issued, found, rotated and revoked.

The database holds only the SHA-256 of a key's value. A request has the value in its header
`Authorization: Bearer ...` (RFC 6750).
"""

import base64
import hashlib
import secrets
import threading
import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Any

from cardbeat.clock import Clock
from cardbeat.config import Tier
from cardbeat.database import Database, Row
from cardbeat.errors import Refusal, Unavailable
from cardbeat.keys.key import (
    CARDS,
    CHECKS,
    READ,
    IssuedKey,
    Key,
    require_scope,
)
from cardbeat.web.message import Request

CACHE_SECONDS = 1.0
"""How long a process uses a key without reading it again."""
OLD_SECRET_SECONDS = 24 * 60 * 60
"""How long the webhook secret before the current one still signs."""
MAX_CACHED = 4096
"""Keys in the cache. One more empties it."""
_PREFIX_LENGTH = 8

REVOKED = (
    "revoked_at = ?, email = NULL, webhook_secret = NULL, old_webhook_secret = NULL,"
    " read_hash = NULL, read_prefix = NULL"
)
"""The columns of a key that is revoked. Its row stays until `Tidy` removes it."""
_READER = "read_hash = ?, read_prefix = ?"


class Keys:
    """The keys of this instance. Methods that change one return when that is on disk.

    A key is cached for `CACHE_SECONDS`: for as long, a change by another process may not count
    yet. A change by this process counts at once. It drops the key from the cache after its commit
    and before its answer, and raises `_generation`: a look-up that began to read before the drop
    sees that, and does not cache what it read.

    Changes of a `Key` raise `Refusal` 401 if it was rotated or revoked since it was read. `issue`
    raises `Unavailable` while the disk is low.
    """

    def __init__(
        self,
        database: Database,
        clock: Clock,
        tiers: Mapping[str, Tier],
        *,
        monotonic: Clock = time.monotonic,
    ) -> None:
        self._database = database
        self._clock = clock
        self.tiers = tiers
        self._monotonic = monotonic
        self._lock = threading.Lock()
        # Written under the lock only. The cache holds each key with the time until which it counts.
        self._cache: dict[bytes, tuple[Key, float]] = {}
        self._generation = 0

    def cached(self, digest: bytes) -> Key | None:
        """The key with this hash (see `hash_of`), if it is in the cache. Never waits."""
        key, until = self._cache.get(digest, (None, 0))
        if self._monotonic() < until:
            return key
        return None

    def authenticate(
        self, digest: bytes, scopes: Collection[str] = ()
    ) -> Key:
        """The key with this hash. Raises `Refusal` 401 if there is none, 403 for another scope."""
        key = self.cached(digest) or self._look_up(digest)
        require_scope(key, scopes)
        return key

    def issue(
        self, email: str | None = None, tier: str = "free"
    ) -> IssuedKey:
        """A new key: a checks key if an e-mail address is given, else a cards key."""
        value, digest, prefix = _new_value()
        secret = None if email is None else new_webhook_secret()
        sql = (
            "INSERT INTO keys (id, scope, tier, email, hash, prefix, webhook_secret, created_at)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING *"
        )
        values = (
            f"key_{secrets.token_hex(8)}",
            CARDS if email is None else CHECKS,
            tier,
            email,
            digest,
            prefix,
            secret,
            int(self._clock()),
        )
        create = self._database.create
        row = create(lambda it: it.execute(sql, values).fetchone())
        return IssuedKey(self._key(row), value, secret)

    def rotate(self, key: Key) -> IssuedKey:
        """Replace the value of a key. The old value stops working, and its read-only key ends."""
        value, digest, prefix = _new_value()
        change = (
            "hash = ?, prefix = ?, read_hash = NULL, read_prefix = NULL"
        )
        row = self._change_of(key, change, digest, prefix)
        return IssuedKey(self._key(row), value)

    def issue_reader(self, key: Key) -> str:
        """The value of a new read-only key; the one before ends."""
        value, digest, prefix = _new_value()
        self._change_of(key, _READER, digest, prefix)
        return value

    def end_reader(self, key: Key) -> None:
        """End the read-only key of a checks key, if it has one."""
        self._change_of(key, _READER, None, None)

    def renew_webhook_secret(self, key: Key) -> str:
        """A new secret. For `OLD_SECRET_SECONDS` the one before it signs alerts too."""
        secret = new_webhook_secret()
        change = (
            "old_webhook_secret = webhook_secret, "
            "old_webhook_secret_until = ?, webhook_secret = ?"
        )
        until = int(self._clock()) + OLD_SECRET_SECONDS
        self._change_of(key, change, until, secret)
        return secret

    def revoke(self, key_id: str) -> bool:
        """End a key, and delete its e-mail address and secrets. False if there is no such key."""
        return (
            self._change(key_id, REVOKED, int(self._clock())) is not None
        )

    def set_tier(self, key_id: str, tier: str) -> bool:
        """Move a key to a tier. False if there is no key with this id."""
        return self._change(key_id, "tier = ?", tier) is not None

    def all(self) -> list[Key]:
        """Every key that is not revoked, oldest first."""
        sql = "SELECT * FROM keys WHERE revoked_at IS NULL ORDER BY seq"
        with self._database.read() as connection:
            return [self._key(row) for row in connection.execute(sql)]

    def _look_up(self, digest: bytes) -> Key:
        """The key as the database has it, noted as used and cached. Raises `Refusal` 401."""
        generation = self._generation
        until = self._monotonic() + CACHE_SECONDS
        sql = "SELECT * FROM keys WHERE (hash = ? OR read_hash = ?) AND revoked_at IS NULL"
        with self._database.read() as connection:
            row = connection.execute(sql, (digest, digest)).fetchone()
        if row is None:
            raise Refusal("key_unknown")
        key = self._key(row)
        if row["read_hash"] == digest:
            key = key._replace(
                scope=READ,
                email=None,
                prefix=row["read_prefix"],
                read_prefix=None,
            )
        if key.used_at is None:
            # Noted once, so that it is not removed as an unused one. If that fails, the use is
            # served all the same, and noted at the next look-up.
            sql = "UPDATE keys SET used_at = ? WHERE id = ? AND used_at IS NULL"
            values = int(self._clock()), key.id
            with suppress(Unavailable):
                self._database.write(
                    lambda it: it.execute(sql, values).rowcount
                )
        with self._lock:
            if len(self._cache) >= MAX_CACHED:
                self._cache.clear()
            if generation == self._generation:
                self._cache[digest] = key, until
        return key

    def _change_of(self, key: Key, change: str, *values: Any) -> Row:
        """Change a key that was read before. Raises `Refusal` 401 if its value is another now."""
        row = self._change(key.id, change, *values, prefix=key.prefix)
        if row is None:
            sentence = "This API key was rotated or revoked a moment ago."
            raise Refusal("key_unknown", sentence)
        return row

    def _change(
        self,
        key_id: str,
        change: str,
        *values: Any,
        prefix: str | None = None,
    ) -> Row | None:
        """Change one key, if it has this prefix. The row as written, None if there is none."""
        sql = (
            f"UPDATE keys SET {change}"
            " WHERE id = ? AND prefix = coalesce(?, prefix) AND revoked_at IS NULL RETURNING *"
        )
        given = (*values, key_id, prefix)
        try:
            return self._database.write(
                lambda it: it.execute(sql, given).fetchone()
            )
        finally:
            # Also after an error: the change may be on disk all the same.
            self._drop(key_id)

    def _drop(self, key_id: str) -> None:
        """Take a key and its reader out of the cache."""
        with self._lock:
            self._generation += 1
            for digest, (key, _) in list(self._cache.items()):
                if key.id == key_id:
                    del self._cache[digest]

    def _key(self, row: Row) -> Key:
        columns = {
            name: row[name] for name in Key._fields if name != "limits"
        }
        # The operator may no longer define its tier.
        limits = self.tiers.get(row["tier"], self.tiers["free"])
        return Key(limits=limits, **columns)


class Bearer:
    """The guard of a route: accepts a known key of one of the scopes; without any, each key."""

    def __init__(self, keys: Keys, *scopes: str) -> None:
        self._keys = keys
        self._scopes = scopes

    def judge(self, request: Request) -> None:
        """Raise `Refusal` 401 for a request without a key."""
        _hash_in(request)

    def look_up(self, request: Request) -> Key:
        """The key, read from the database if need be. Raises `Refusal` 401 or 403."""
        return self._keys.authenticate(_hash_in(request), self._scopes)


def key_of(request: Request) -> Key:
    """The key that the guard of the request's route has found."""
    key: Key = request.key
    return key


def _hash_in(request: Request) -> bytes:
    """The hash of the key's value. Raises `Refusal` 401 if the request has none."""
    scheme, _, value = request.headers.get("authorization", "").partition(
        " "
    )
    if scheme.lower() != "bearer" or not value.strip():
        sentence = (
            "Send the API key in a header: Authorization: Bearer sk_..."
        )
        raise Refusal("key_missing", sentence)
    return hash_of(value.strip())


def hash_of(value: str) -> bytes:
    """The SHA-256 of a key's value, which is what the database holds."""
    return hashlib.sha256(value.encode("utf-8", "surrogatepass")).digest()


def new_webhook_secret() -> str:
    """A new secret as the Standard Webhooks specification has it: `whsec_` and 24 bytes."""
    return f"whsec_{base64.b64encode(secrets.token_bytes(24)).decode()}"


def _new_value() -> tuple[str, bytes, str]:
    """The value of a new key, its hash, and its prefix for people."""
    value = f"sk_{secrets.token_urlsafe(24)}"
    return value, hash_of(value), value[:_PREFIX_LENGTH]
