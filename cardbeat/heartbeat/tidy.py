"""Removes rows that nothing needs any more, in many short writes, so that no ping waits for one.

`Keys.revoke` marks a key as revoked and leaves its rows. Each step here is one write that finds
some of what is left: a stop or a crash may come between any two, the next start goes on, and
several processes may tidy at once. The key's own row goes last.

Once a day outages go that ended more than 92 days ago, API keys that have no check and were not
used within 90 days of their creation, and webhook secrets that no longer sign. Registration is
open, so keys come that are never needed.
"""

import logging
import time
from collections.abc import Callable
from functools import partial

from cardbeat.clock import Clock, wall_clock
from cardbeat.database import Database, Transaction
from cardbeat.heartbeat import outages
from cardbeat.heartbeat.outages import DAY_SECONDS
from cardbeat.jobs import BackgroundThread
from cardbeat.keys.key import Key
from cardbeat.keys.store import REVOKED

log = logging.getLogger(__name__)

STEP_CHECKS = 5
STEP_ROWS = 100
STEP_KEYS = 100
"""Most checks with their 1,100 rows each, old outages, and keys without checks that one write
removes."""
PAUSES = 3
"""Pause three times a step's duration, so removal uses at most 25 % of the writer."""
SHORTEST_PAUSE_SECONDS = 0.002
"""Several times the interval at which another process that waits for SQLite's lock tries again."""
POLL_SECONDS = 60.0
UNUSED_DAYS = 90


class Tidy(BackgroundThread):
    """Tidies at the start, after each `wake` and every `poll_seconds`.

    The first daily tidying comes a day after the start: before, the clock may be wrong, and a
    request may use a key.
    """

    def __init__(
        self,
        database: Database,
        clock: Clock = wall_clock,
        monotonic: Clock = time.monotonic,
        poll_seconds: float = POLL_SECONDS,
    ) -> None:
        super().__init__(
            "tidy", self.tidy, poll_seconds, monotonic=monotonic
        )
        self._database = database
        self._clock = clock
        self._daily_at = monotonic() + DAY_SECONDS

    def tidy(self) -> None:
        """Remove all that is due. Raises `Unavailable`; the next call goes on."""
        self.remove_revoked()
        if self._monotonic() < self._daily_at:
            return
        now = int(self._clock())
        self._repeat(partial(outages.remove_old, now=now, most=STEP_ROWS))
        ended = self._database.write(partial(_end_unused, now))
        if ended:
            log.info(
                "removed %d API keys that have no check and were not used within %d days",
                ended,
                UNUSED_DAYS,
            )
        self._daily_at = self._monotonic() + DAY_SECONDS

    def remove_revoked(self) -> None:
        """Remove what revoked keys have left."""
        self._repeat(partial(_remove_some, self._database))

    def _repeat(self, step: Callable[[Transaction], int]) -> None:
        """Write a step until one removes nothing, or until a stop."""
        while not self.stopping.is_set():
            started = self._monotonic()
            if not self._database.write(step):
                return
            pause = PAUSES * (self._monotonic() - started)
            # At most `POLL_SECONDS`: the process may have been suspended during the step.
            self.stopping.wait(
                min(max(SHORTEST_PAUSE_SECONDS, pause), POLL_SECONDS)
            )


def removed_after(key: Key, checks: int) -> int | None:
    """The Unix time after which a key with so many checks goes if it stays unused; None: never."""
    if checks or key.used_at is not None:
        return None
    return key.created_at + UNUSED_DAYS * DAY_SECONDS


def _remove_some(database: Database, transaction: Transaction) -> int:
    """Remove revoked keys without checks, or else some checks of one; how many it removed."""
    without_checks = (
        "SELECT seq FROM keys WHERE revoked_at IS NOT NULL"
        " AND NOT EXISTS (SELECT 1 FROM checks WHERE api_key_id = keys.id) ORDER BY seq LIMIT ?"
    )
    sql = f"DELETE FROM keys WHERE seq IN ({without_checks})"
    removed = int(transaction.execute(sql, (STEP_KEYS,)).rowcount)
    if not removed:
        oldest = "SELECT id FROM keys WHERE revoked_at IS NOT NULL ORDER BY seq LIMIT 1"
        some = f"SELECT seq FROM checks WHERE api_key_id = ({oldest}) ORDER BY seq LIMIT ?"
        # In the order of all transactions, so that none waits for this one while it is waited for.
        database.lock(transaction, some, (STEP_CHECKS,))
        sql = f"DELETE FROM checks WHERE seq IN ({some})"
        removed = int(transaction.execute(sql, (STEP_CHECKS,)).rowcount)
    return removed


def _end_unused(now: int, transaction: Transaction) -> int:
    """End unused keys, whose rows go later, and forget old secrets; the number of these keys.

    100,000 keys to end took 0.4 s, as many that are looked at and stay 0.07 s.
    """
    transaction.execute(
        "UPDATE keys SET old_webhook_secret = NULL, old_webhook_secret_until = NULL"
        " WHERE old_webhook_secret_until <= ?",
        (now,),
    )
    sql = (
        f"UPDATE keys SET {REVOKED} WHERE revoked_at IS NULL AND used_at IS NULL AND created_at < ?"
        " AND NOT EXISTS (SELECT 1 FROM checks WHERE api_key_id = keys.id)"
    )
    return int(
        transaction.execute(
            sql, (now, now - UNUSED_DAYS * DAY_SECONDS)
        ).rowcount
    )
