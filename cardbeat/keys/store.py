"""API keys: issued, found, rotated and revoked. The database holds only the SHA-256 of a key's value."""

import hashlib
import secrets
import sys
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from math import inf
from typing import Any, NamedTuple, TypeVar

from cardbeat.clock import Clock
from cardbeat.concurrency.later import Later
from cardbeat.concurrency.threads import Afterwards
from cardbeat.config import Tier
from cardbeat.database import Database, Row, Transaction, monitor
from cardbeat.errors import Unavailable
from cardbeat.keys.key import CARDS, CHECKS, READ, IssuedKey, Key, key_unknown, require_scope
from cardbeat.keys.tiers import count_by_tier, tier_of
from cardbeat.keys.webhook_secrets import new_webhook_secret

CACHE_SECONDS = 0.1
"""How long a process may use a cached key. A change is reported as done this long after its commit."""
CHANGES = "key_changes"
"""The row of the table `monitor` whose number grows with each change of keys."""
MAX_CACHED = 4096
"""Keys in the cache of a process. One more empties it."""
RELOAD_SECONDS = 3600
"""How long a key stays cached without a look at its row, in which its use is noted."""
RETRY_SECONDS = 60
"""How long it stays if a note failed."""
NOTED_SECONDS = 20 * 3600
"""The use of a key is noted again after this time: about once a day."""
GAP_SECONDS = 7 * 86_400
"""Longest time between two looks for unused keys, by the wall clock, over which keys are taken to have been watched."""
_PREFIX_LENGTH = 8

REVOKE = (
    "UPDATE keys SET revoked_at = :now, email = NULL, webhook_secret = NULL, old_webhook_secret = NULL,"
    " read_hash = NULL, read_prefix = NULL"
)
"""The begin of the statement that revokes keys."""


def note_change(transaction: Transaction) -> tuple[int, int]:
    """Let all processes know that keys were changed. The number of `CHANGES` before and now.

    It grows by chance: after a backup was put back, or a standby took over, no later change has the number of a lost
    one, at which a process may still know its keys.
    """
    grown = secrets.randbelow(2**20) + 1
    now = monitor.increment(transaction, CHANGES, grown)
    return now - grown, now


def watched_since(transaction: Transaction, now: int) -> int:
    """Since when unused keys are watched: since now if the last look for them is more than `GAP_SECONDS` away.

    Called also where a key's times are stored: by a wrong clock they would look old, even if it was wrong for a second.
    """
    noted = monitor.values(transaction)
    if abs(now - noted.get("keys_watched_until", now)) > GAP_SECONDS or "keys_watched_since" not in noted:
        monitor.note(transaction, keys_watched_since=now, keys_watched_until=now)
        return now
    return noted["keys_watched_since"]


class Keys:
    """The keys of this instance.

    Each process caches keys by their hash. Each change of a key adds to `CHANGES` in the same transaction. A process
    reads that number at most every `CACHE_SECONDS`, one read for all keys, and empties its cache when the number has
    changed. A change is reported as done `CACHE_SECONDS` after its commit: from then on no process uses the old key.
    The process that made the change drops that one key from its cache, so a client that changes its key in a loop costs
    other keys nothing.

    `monotonic` and `afterwards`, which calls what it is given after `CACHE_SECONDS`, are replaced in tests.
    """

    def __init__(
        self,
        database: Database,
        clock: Clock,
        tiers: Mapping[str, Tier],
        *,
        monotonic: Clock = time.monotonic,
        afterwards: Callable[[Callable[[], object]], None] | None = None,
    ) -> None:
        self._database = database
        self._clock = clock
        self.tiers = tiers
        self._monotonic = monotonic
        self._afterwards = afterwards or Afterwards(CACHE_SECONDS).call
        # These are written under the lock. Any thread reads each of them without it: each read is atomic.
        self._lock = threading.Lock()
        self._cache: dict[bytes, Key] = {}
        self._changes: int | None = None
        """The number of changes at which the cache was last known to be right; None if that is not known."""
        self._checked_at = -inf
        """The monotonic time just before that number was read."""
        self._emptied_at = -inf
        """The monotonic time at which `renew` emptied the cache."""
        self._is_renewing = False
        """Whether `renew` was asked for. Set without the lock, by the one thread that calls `find_cached`."""

    def issue(self, email: str | None = None, tier: str = "free") -> Later[IssuedKey]:
        """A new key, settled when it is on disk: a checks key if an e-mail address is given, else a cards key.

        Raises `Unavailable` while the disk is low.
        """
        value = _new_value()
        secret = None if email is None else new_webhook_secret()
        now = int(self._clock())
        row = {
            "id": f"key_{secrets.token_hex(8)}",
            "scope": CARDS if email is None else CHECKS,
            "tier": tier,
            "email": email,
            "hash": hash_of(value),
            "prefix": value[:_PREFIX_LENGTH],
            "webhook_secret": secret,
            "created_at": now,
        }
        issued = IssuedKey(self._key({**row, "used_at": None, "read_prefix": None}), value, secret)

        def insert(transaction: Transaction) -> IssuedKey:
            watched_since(transaction, now)
            transaction.execute(
                "INSERT INTO keys (id, scope, tier, email, hash, prefix, webhook_secret, created_at) "
                "VALUES (:id, :scope, :tier, :email, :hash, :prefix, :webhook_secret, :created_at)",
                row,
            )
            return issued

        return self._database.create_later(insert)

    def find(self, digest: bytes) -> Key | None:
        """The key with this hash (see `hash_of`), unless it was revoked. Takes microseconds if it is in the cache."""
        if self._monotonic() - self._checked_at >= CACHE_SECONDS:
            self.renew()
        return self._cache.get(digest) or self._load(digest)

    def find_cached(self, digest: bytes, renew: Callable[[], object]) -> Key | None:
        """The key with this hash, if it is in the cache. Never reads the database. Only one thread may call this.

        When the cache is half of `CACHE_SECONDS` old, it calls `renew`, which must return at once and make another
        thread call the method `renew`. So a busy server never waits for the database here.
        """
        seconds = self._monotonic() - self._checked_at
        if seconds >= CACHE_SECONDS:
            return None
        if seconds >= CACHE_SECONDS / 2 and not self._is_renewing:
            self._is_renewing = True
            renew()
        return self._cache.get(digest)

    def renew(self) -> None:
        """Look whether keys have changed; if so, and once an hour so that uses are noted, empty the cache."""
        checked_at = self._monotonic()
        with self._database.read() as connection:
            row = connection.execute("SELECT value FROM monitor WHERE name = ?", (CHANGES,)).fetchone()
        changes = row["value"] if row else 0
        with self._lock:
            # A smaller number than the known one also empties it: the read may be older than this process's own change,
            # or a standby took over that lacks the last changes.
            if changes != self._changes or checked_at - self._emptied_at >= RELOAD_SECONDS:
                self._cache.clear()
                self._changes = changes
                self._emptied_at = checked_at
            self._checked_at = checked_at
            self._is_renewing = False

    def last_known(self, digest: bytes) -> Key | None:
        """The key with this hash, if it is in the cache, however old that is."""
        return self._cache.get(digest)

    def authenticate(self, digest: bytes, scopes: Collection[str] = (), of_cards_key: str | None = None) -> Key:
        """The key with this hash. Raises `Refusal` 401 if there is none, 403 if it has another scope."""
        key = self.find(digest)
        if key is None:
            raise key_unknown()
        require_scope(key, scopes, of_cards_key)
        return key

    def rotate(self, key: Key) -> Later[IssuedKey]:
        """Replace the value of a key; the old value stops working, and its read-only key ends.

        The result raises `Refusal` 401 if the key was rotated or revoked since it was read.
        """
        return self.replace(key.id, key.prefix).map(_still_known)

    def replace(self, key_id: str, prefix: str | None = None) -> Later[IssuedKey | None]:
        """As `rotate`, for any key, or only while it has this prefix. The result is None if there is no such key."""
        value = _new_value()
        sql = (
            "UPDATE keys SET hash = ?, prefix = ?, read_hash = NULL, read_prefix = NULL"
            " WHERE id = ? AND prefix = coalesce(?, prefix) AND revoked_at IS NULL RETURNING *"
        )
        changed = self._change(key_id, sql, (hash_of(value), value[:_PREFIX_LENGTH], key_id, prefix))
        return changed.map(lambda row: None if row is None else IssuedKey(self._key(row), value, None))

    def issue_reader(self, key: Key) -> Later[str]:
        """The value of a new read-only key; the one before ends. A first one raises `Unavailable` on a low disk."""
        value = _new_value()
        return self._set_reader(key, hash_of(value), value[:_PREFIX_LENGTH]).map(lambda _: value)

    def end_reader(self, key: Key) -> Later[Row]:
        """End the read-only key of a checks key, if it has one. The result raises like that of `rotate`."""
        return self._set_reader(key, None, None)

    def _set_reader(self, key: Key, digest: bytes | None, prefix: str | None) -> Later[Row]:
        # With the old value of a key that was rotated since, no reader may be made.
        sql = (
            "UPDATE keys SET read_hash = ?, read_prefix = ?"
            " WHERE id = ? AND prefix = ? AND revoked_at IS NULL RETURNING *"
        )
        values = (digest, prefix, key.id, key.prefix)
        return self._change(key.id, sql, values, is_longer=bool(prefix and not key.read_prefix)).map(_still_known)

    def revoke(self, key_id: str) -> Later[bool]:
        """End a key, and delete its e-mail address and secrets. The result is False if there is no key with this id.

        The row stays until `Removal` has removed the key's checks.
        """
        sql = f"{REVOKE} WHERE id = :id AND revoked_at IS NULL RETURNING *"
        values = {"now": int(self._clock()), "id": key_id}
        return self._change(key_id, sql, values).map(lambda row: row is not None)

    def set_tier(self, key_id: str, tier: str) -> Later[bool]:
        """Move a key to a tier. The result is False if there is no key with this id."""
        sql = "UPDATE keys SET tier = ? WHERE id = ? AND revoked_at IS NULL RETURNING *"
        return self._change(key_id, sql, (tier, key_id)).map(lambda row: row is not None)

    def all(self) -> list[Key]:
        """Every key that is not revoked, oldest first."""
        with self._database.read() as connection:
            return list(map(self._key, connection.execute("SELECT * FROM keys WHERE revoked_at IS NULL ORDER BY seq")))

    def count_by_tier(self) -> dict[str, int]:
        """The number of keys in each tier, also in tiers that are no longer defined."""
        with self._database.read() as connection:
            return count_by_tier(connection)

    def _load(self, digest: bytes) -> Key | None:
        changes = self._changes
        with self._database.read() as connection:
            sql = "SELECT * FROM keys WHERE (hash = ? OR read_hash = ?) AND revoked_at IS NULL"
            row = connection.execute(sql, (digest, digest)).fetchone()
        if row is None:
            return None
        key = self._key(row)
        if row["read_hash"] == digest:
            key = key._replace(scope=READ, email=None, prefix=row["read_prefix"], read_prefix=None)
        self._note_use(key)
        with self._lock:
            # If the cache was emptied since, what was read here may be from before the change.
            if changes == self._changes:
                if len(self._cache) >= MAX_CACHED:
                    self._cache.clear()
                self._cache[digest] = key
        return key

    def _note_use(self, key: Key) -> None:
        """Have it written that a key is used now, unless that was noted lately. If that fails, it is tried again."""
        now = int(self._clock())
        if key.used_at is None or abs(now - key.used_at) >= NOTED_SECONDS:
            sql = "UPDATE keys SET used_at = ? WHERE id = ? AND revoked_at IS NULL"

            def note(transaction: Transaction) -> int:
                watched_since(transaction, now)
                return transaction.execute(sql, (now, key.id)).rowcount

            try:
                self._database.write_later(note).then(self._look_again_unless_done)
            except Unavailable:
                self._look_again()

    def _look_again_unless_done(self, noted: Later[int]) -> None:
        try:
            noted.result()
        except Exception:
            self._look_again()

    def _look_again(self) -> None:
        with self._lock:
            self._emptied_at = min(self._emptied_at, self._monotonic() - RELOAD_SECONDS + RETRY_SECONDS)

    def _change(
        self, key_id: str, sql: str, values: Sequence[Any] | Mapping[str, Any], *, is_longer: bool = False
    ) -> Later[Row | None]:
        """Change one key; the row as written, None if there is none. Settled when no process uses the old key."""

        def change(transaction: Transaction) -> _Change:
            before = transaction.execute("SELECT hash, read_hash FROM keys WHERE id = ?", (key_id,)).fetchone()
            row: Row | None = transaction.execute(sql, values).fetchone()
            return _Change(row, tuple(before), *note_change(transaction)) if row else _NO_CHANGE

        changed: Later[Row | None] = Later()
        write = self._database.create_later if is_longer else self._database.write_later
        write(change).then(partial(self._forget, changed))
        return changed

    def _forget(self, changed: Later[Row | None], written: Later["_Change"]) -> None:
        """Drop the changed key from the cache, and settle `changed` when all other processes have dropped it too.

        If another process has also changed a key since the last look, the whole cache is emptied.
        """
        try:
            change = written.result()
        except Exception:
            # The change may be committed all the same.
            change = _Change(None, (), sys.maxsize, sys.maxsize)
        if change is _NO_CHANGE:
            changed.succeed(None)
            return
        with self._lock:
            if self._changes == change.number_before:
                self._changes = change.number
            if self._changes is not None and self._changes >= change.number:
                for digest in change.old_hashes:
                    self._cache.pop(digest, None)
            else:
                self._cache.clear()
                self._changes = None
                self._checked_at = -inf
        self._afterwards(lambda: changed.settle(lambda: written.result().row))

    def _key(self, row: Mapping[str, Any] | Row) -> Key:
        limits = tier_of(self.tiers, row["tier"])
        columns = ("email", "prefix", "created_at", "used_at", "read_prefix")
        return Key(row["id"], row["scope"], row["tier"], limits, *(row[name] for name in columns))


class _Change(NamedTuple):
    """The row as written, the hashes that the key and its reader had, and `CHANGES` before and with the change."""

    row: Row | None
    old_hashes: tuple[Any, ...]
    number_before: int
    number: int


_NO_CHANGE = _Change(None, (), 0, 0)


T = TypeVar("T")


def _still_known(changed: T | None) -> T:
    if changed is None:
        raise key_unknown("This API key was rotated or revoked a moment ago.")
    return changed


def _new_value() -> str:
    return f"sk_{secrets.token_urlsafe(24)}"


def hash_of(value: str) -> bytes:
    """The SHA-256 of a key's value, which is what the database holds."""
    return hashlib.sha256(value.encode("utf-8", "surrogatepass")).digest()
