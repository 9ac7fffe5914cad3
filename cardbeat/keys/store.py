"""API keys: issued, found, rotated and revoked. Only their hashes are stored."""

import base64
import hashlib
import secrets
import sys
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from math import inf
from typing import Any, NamedTuple, TypeVar

from cardbeat import monitor
from cardbeat.alarms import after
from cardbeat.clock import Clock
from cardbeat.config import Tier
from cardbeat.database import Database, Row, Transaction
from cardbeat.keys.key import CARDS, CHECKS, IssuedKey, Key, key_missing, key_out_of_scope, key_unknown
from cardbeat.keys.tiers import tier_of
from cardbeat.later import Later

T = TypeVar("T")

CACHE_SECONDS = 0.1
"""For how long a process may go on with a key as it read it. A change waits as long before it counts as done."""

CHANGES = "key_changes"
"""In the table `monitor`: how often keys were changed."""

_MAX_CACHED = 4096
_PREFIX_LENGTH = 8


class Keys:
    """The keys of this instance.

    Keys are cached by their hash, in each process on its own. Every change is counted in its own transaction, and the
    cache holds as long as that count does not change. It is read again once it is `CACHE_SECONDS` old: one short read
    for all keys together. A change is committed first and then waits that long, so when it returns, no process goes by
    what was there before it. The process that made a change lets go of that key alone, whoever changes keys in a loop;
    all others empty their caches, as nothing tells them which key it was.
    """

    def __init__(self, database: Database, clock: Clock, tiers: Mapping[str, Tier]) -> None:
        self._database = database
        self._clock = clock
        self._tiers = tiers
        # Written under the lock. Any thread reads each without it: one value, or one look into the dictionary.
        self._lock = threading.Lock()
        self._cache: dict[bytes, Key] = {}
        self._changes: int | None = None
        """How many changes there had been when the cache was last known to hold; None if that is not known."""
        self._checked_at = -inf
        """When that was, on the monotonic clock, before the read."""
        self._is_renewing = False
        """Whether `renew` has been asked for. Set, without the lock, by the one thread that calls `find_cached`."""

    def issue(self, email: str | None = None, tier: str = "free") -> Later[IssuedKey]:
        """A new key, settled when it is on disk: for checks when there is an e-mail address, else for cards.

        Raises `Unavailable` while the disk is low.
        """
        value = _new_value()
        secret = None if email is None else new_webhook_secret()
        row = {
            "id": f"key_{secrets.token_hex(8)}",
            "scope": CARDS if email is None else CHECKS,
            "tier": tier,
            "email": email,
            "hash": hash_of(value),
            "prefix": value[:_PREFIX_LENGTH],
            "webhook_secret": secret,
            "created_at": int(self._clock()),
        }
        issued = IssuedKey(self._key(row), value, secret)

        def insert(transaction: Transaction) -> IssuedKey:
            transaction.execute(
                "INSERT INTO keys (id, scope, tier, email, hash, prefix, webhook_secret, created_at) "
                "VALUES (:id, :scope, :tier, :email, :hash, :prefix, :webhook_secret, :created_at)",
                row,
            )
            return issued

        return self._database.create_later(insert)

    def find(self, value: str) -> Key | None:
        """The key with this value, if it was issued and not revoked. Costs microseconds while it is cached."""
        return self.find_by_hash(hash_of(value))

    def find_by_hash(self, digest: bytes) -> Key | None:
        """As `find`, by what `hash_of` gives."""
        if time.monotonic() - self._checked_at >= CACHE_SECONDS:
            self.renew()
        return self._cache.get(digest) or self._load(digest)

    def find_cached(self, digest: bytes, renew: Callable[[], object]) -> Key | None:
        """The key with this hash, if it is in the cache; never reads the database. To be called by one thread only.

        `renew` is called when the cache is soon too old, and must return at once after having another thread call
        the method of that name: so a service in steady use goes on from its cache.
        """
        seconds = time.monotonic() - self._checked_at
        if seconds >= CACHE_SECONDS:
            return None
        if seconds >= CACHE_SECONDS / 2 and not self._is_renewing:
            self._is_renewing = True
            renew()
        return self._cache.get(digest)

    def renew(self) -> None:
        """Empty the cache if a key was changed since it was last looked at; it is good for `CACHE_SECONDS` then."""
        checked_at = time.monotonic()
        with self._database.read() as connection:
            row = connection.execute("SELECT value FROM monitor WHERE name = ?", (CHANGES,)).fetchone()
        changes = row["value"] if row else 0
        with self._lock:
            # Fewer than are known: it was read before a change whose key is let go of already, or a standby that lagged
            # behind has the database now, and lacks changes.
            if changes != self._changes:
                self._cache.clear()
                self._changes = changes
            self._checked_at = checked_at
            self._is_renewing = False

    def last_known(self, digest: bytes) -> Key | None:
        """The key with this hash as it was read last, if it is in the cache; it may have changed since."""
        return self._cache.get(digest)

    def authenticate_value(self, value: str | None, scope: str | None, wrong_scope: str | None = None) -> Key:
        """The key with this value. Raises `Refusal` 401 without a known one, 403 for one of another scope."""
        if not value:
            raise key_missing()
        return self.authenticate_hash(hash_of(value), scope, wrong_scope)

    def authenticate_hash(self, digest: bytes, scope: str | None, wrong_scope: str | None = None) -> Key:
        """As `authenticate_value`, by what `hash_of` gives."""
        key = self.find_by_hash(digest)
        if key is None:
            raise key_unknown("This API key is not known here, or was revoked.")
        if scope not in (None, key.scope):
            raise key_out_of_scope(scope, wrong_scope)
        return key

    def rotate_later(self, key: Key) -> Later[IssuedKey]:
        """A new value for the same key; the old one is unknown from then on.

        The result raises `Refusal` 401 if it was revoked.
        """
        value = _new_value()
        row = self._change(
            key.id,
            "UPDATE keys SET hash = ?, prefix = ? WHERE id = ? AND prefix = ? AND revoked_at IS NULL RETURNING *",
            (hash_of(value), value[:_PREFIX_LENGTH], key.id, key.prefix),
        )
        return row.map(lambda row: IssuedKey(self._key(_found(row)), value, None))

    def revoke_later(self, key_id: str) -> Later[bool]:
        """End a key, and forget its e-mail address and secrets. False if there is none with this id.

        Its row stays, found by nobody, until `Removal` has removed its checks.
        """
        row = self._change(
            key_id,
            "UPDATE keys SET revoked_at = ?, email = NULL, webhook_secret = NULL, old_webhook_secret = NULL"
            " WHERE id = ? AND revoked_at IS NULL RETURNING *",
            (int(self._clock()), key_id),
        )
        return row.map(lambda row: row is not None)

    def revoke(self, key_id: str) -> bool:
        """As `revoke_later`, and waits for it."""
        return self.revoke_later(key_id).wait()

    def set_tier(self, key_id: str, tier: str) -> bool:
        """Move a key to a tier. False if there is none with this id."""
        sql = "UPDATE keys SET tier = ? WHERE id = ? AND revoked_at IS NULL RETURNING *"
        return self._change(key_id, sql, (tier, key_id)).wait() is not None

    def all(self) -> list[Key]:
        """Every key that is not revoked, oldest first."""
        with self._database.read() as connection:
            return list(map(self._key, connection.execute("SELECT * FROM keys WHERE revoked_at IS NULL ORDER BY seq")))

    def count_by_tier(self) -> dict[str, int]:
        """How many keys are in each tier, also in one that is not defined any more."""
        with self._database.read() as connection:
            return count_by_tier(connection)

    def _load(self, digest: bytes) -> Key | None:
        changes = self._changes
        with self._database.read() as connection:
            row = connection.execute("SELECT * FROM keys WHERE hash = ? AND revoked_at IS NULL", (digest,)).fetchone()
        if row is None:
            return None
        key = self._key(row)
        with self._lock:
            # What was read before a change must not come into the cache after it was emptied for that.
            if changes == self._changes:
                if len(self._cache) >= _MAX_CACHED:
                    self._cache.clear()
                self._cache[digest] = key
        return key

    def _change(self, key_id: str, sql: str, values: tuple[object, ...]) -> Later[Row | None]:
        """Change one key and count it; the row so written. Once it is settled, no process uses what was before."""

        def change(transaction: Transaction) -> _Changed:
            before = transaction.execute("SELECT hash FROM keys WHERE id = ?", (key_id,)).fetchone()
            row: Row | None = transaction.execute(sql, values).fetchone()
            return _Changed(row, before["hash"] if before else b"", monitor.increment(transaction, CHANGES))

        changed: Later[Row | None] = Later()
        self._database.write_later(change).then(partial(self._forget, changed))
        return changed

    def _forget(self, changed: Later[Row | None], written: Later["_Changed"]) -> None:
        """Let go of the key as it is cached here, and settle `changed` when every other process has done so too.

        The whole cache goes where another process changed a key too, and nobody has looked since.
        """
        try:
            old_hash, number = written.result().old_hash, written.result().number
        except Exception:
            # Perhaps it was written all the same.
            old_hash, number = b"", sys.maxsize
        with self._lock:
            if self._changes == number - 1:
                self._changes = number
            if self._changes is not None and self._changes >= number:
                self._cache.pop(old_hash, None)
            else:
                self._cache.clear()
                self._changes = None
                self._checked_at = -inf
        after(CACHE_SECONDS).then(lambda _: changed.settle(lambda: written.result().row))

    def _key(self, row: Mapping[str, Any] | Row) -> Key:
        return Key(
            id=row["id"],
            scope=row["scope"],
            tier=row["tier"],
            limits=tier_of(self._tiers, row["tier"]),
            email=row["email"],
            prefix=row["prefix"],
            created_at=row["created_at"],
        )


class _Changed(NamedTuple):
    """What a change did.

    The row so written, if there is one, the hash by which the key was found until then, and how many changes there have
    been with it.
    """

    row: Row | None
    old_hash: bytes
    number: int


def _found(row: T | None) -> T:
    if row is None:
        raise key_unknown("This API key was rotated or revoked a moment ago.")
    return row


def count_by_tier(transaction: Transaction) -> dict[str, int]:
    sql = "SELECT tier, count(*) FROM keys WHERE revoked_at IS NULL GROUP BY tier"
    return dict(map(tuple, transaction.execute(sql)))


def _new_value() -> str:
    return f"sk_{secrets.token_urlsafe(24)}"


def new_webhook_secret() -> str:
    """As the Standard Webhooks specification writes one: `whsec_` and 24 bytes in base64."""
    return f"whsec_{base64.b64encode(secrets.token_bytes(24)).decode()}"


def hash_of(value: str) -> bytes:
    """What is stored of a key's value: its SHA-256."""
    return hashlib.sha256(value.encode("utf-8", "surrogatepass")).digest()
