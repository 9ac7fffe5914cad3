"""Removes API keys that are not used, since registration is open: in steps, so that no ping waits for a long write.

A checks key goes that has no check and made no request for 90 days; a cards key that was never used within a year of
its creation.

A wrong clock must not make keys look old. So `monitor` holds since when the clock has run without a long gap or jump.
A term counts from there, if that is later. See `watched_since`.
"""

import logging
import time
from collections.abc import Iterator
from functools import partial
from typing import Final, NamedTuple

from cardbeat.clock import Clock
from cardbeat.database import Database, Transaction, monitor
from cardbeat.heartbeat.removal import STEP_KEYS, Removal
from cardbeat.keys.key import CARDS, Key
from cardbeat.keys.store import REVOKE, note_change, watched_since

log = logging.getLogger(__name__)

DAY_SECONDS: Final = 86_400
CHECKS_DAYS: Final = 90
CARDS_DAYS: Final = 365
LOOK_SECONDS: Final = 3600.0
WINDOW_KEYS: Final = 500
"""Keys that one read looks at."""

_IS_UNUSED: Final = (
    "revoked_at IS NULL AND ((scope = 'cards' AND used_at IS NULL AND created_at < :cards)"
    " OR (scope = 'checks' AND created_at < :checks AND (used_at IS NULL OR used_at < :used)"
    " AND NOT EXISTS (SELECT 1 FROM checks WHERE api_key_id = keys.id)))"
)


class Terms(NamedTuple):
    """The Unix times before which keys were created, and checks keys last used, that are unused now."""

    cards: int
    checks: int
    used: int

    @classmethod
    def of_days(cls, now: int, days: int) -> "Terms":
        """Of keys that were not used for so many days, and one more: a use is noted up to 21 hours late."""
        before = now - days * DAY_SECONDS
        return cls(before, before, before - DAY_SECONDS)

    @classmethod
    def watched(cls, now: int, since: int) -> "Terms":
        """Of the keys that the server removes by itself, if it has watched all keys since then. 0 is before any key."""
        cards, checks = (now - days * DAY_SECONDS for days in (CARDS_DAYS, CHECKS_DAYS))
        checks = checks if since <= checks else 0
        return cls(cards if since <= cards else 0, checks, checks - DAY_SECONDS)


def removed_after(key: Key, checks: int) -> int | None:
    """The Unix time after which a key with so many checks is removed if it is not used before; None for never."""
    if checks or (key.scope == CARDS and key.used_at is not None):
        return None
    days = CARDS_DAYS if key.scope == CARDS else CHECKS_DAYS
    return max(key.created_at, key.used_at or 0) + days * DAY_SECONDS


class UnusedKeys:
    """Finds and removes unused keys. Several processes may do so at once."""

    def __init__(self, database: Database, clock: Clock | None = None, monotonic: Clock = time.monotonic) -> None:
        """`clock` is the database's unless another is given."""
        self._database = database
        self._clock = clock or database.clock
        self._monotonic = monotonic
        self._next_look_at = monotonic()

    def look(self, removal: Removal) -> None:
        """Remove the keys whose term is over, once in `LOOK_SECONDS`. Raises `Unavailable`."""
        began = self._monotonic()
        if began < self._next_look_at:
            return
        now = int(self._clock())
        since = self._database.write(partial(_watch, now))
        if removed := self.remove(Terms.watched(now, since), removal):
            line = "removed %d API keys: without a check and a request for %d days, or cards keys not used in %d"
            log.info(line, removed, CHECKS_DAYS, CARDS_DAYS)
        self._next_look_at = began + LOOK_SECONDS

    def remove(self, terms: Terms, removal: Removal) -> int:
        """Remove all unused keys, or some before a stop; returns their number. Raises `Unavailable`."""
        removed = 0
        for batch in self._batches(terms, removal):
            if batch.keys:
                began = self._monotonic()
                removed += self._database.write(partial(_revoke, terms, batch, int(self._clock())))
                removal.rest(self._monotonic() - began)
                removal.finish()
        return removed

    def count(self, terms: Terms, removal: Removal) -> int:
        """The number of unused keys."""
        return sum(batch.keys for batch in self._batches(terms, removal))

    def _batches(self, terms: Terms, removal: Removal) -> "Iterator[Batch]":
        """All keys, in batches with at most `STEP_KEYS` unused ones: each is one short read."""
        last = 0
        while not removal.stopping.is_set():
            with self._database.read() as connection:
                batch = _next_batch(connection, terms, last)
            if batch is None:
                return
            yield batch
            last = batch.last
            removal.rest(0)


class Batch(NamedTuple):
    """The keys behind the `seq` `after` up to `last`, and how many of them are unused."""

    after: int
    last: int
    keys: int


_IN_BATCH: Final = f"seq > :after AND seq <= :last AND {_IS_UNUSED}"


def _next_batch(transaction: Transaction, terms: Terms, after: int) -> Batch | None:
    window = "SELECT max(seq) FROM (SELECT seq FROM keys WHERE seq > ? ORDER BY seq LIMIT ?) AS following"
    (last,) = transaction.execute(window, (after, WINDOW_KEYS)).fetchone()
    if last is None:
        return None
    values = {**terms._asdict(), "after": after, "last": last, "most": STEP_KEYS}
    rows = transaction.execute(f"SELECT seq FROM keys WHERE {_IN_BATCH} ORDER BY seq LIMIT :most", values).fetchall()
    return Batch(after, rows[-1]["seq"] if len(rows) == STEP_KEYS else last, len(rows))


def _revoke(terms: Terms, batch: Batch, now: int, transaction: Transaction) -> int:
    """Revoke the keys of a batch that are unused still; their number."""
    values = {**terms._asdict(), "after": batch.after, "last": batch.last, "now": now}
    revoked = transaction.execute(f"{REVOKE} WHERE {_IN_BATCH}", values).rowcount
    if revoked:
        note_change(transaction)
    return revoked


def _watch(now: int, transaction: Transaction) -> int:
    """Since when keys are watched without a gap; noted with the time of this look."""
    since = watched_since(transaction, now)
    monitor.note(transaction, keys_watched_until=now)
    return since
