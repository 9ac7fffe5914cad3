"""Removes what revoked keys leave behind, in many short writes, so that no ping waits for a long one.

`Keys.revoke` marks a key as revoked and leaves its rows. Each step here is one write that finds some of what is left:
so a stop or a crash may come between any two, the next start goes on, and several processes may remove at once. The
key's own row goes last.
"""

import time
from collections.abc import Callable, Iterable
from functools import partial

from cardbeat.clock import Clock
from cardbeat.concurrency.threads import BackgroundThread
from cardbeat.database import Database, Transaction

STEP_CHECKS = 50
STEP_ALERTS = 50
STEP_KEYS = 100
"""Most checks, alerts, and keys without checks that one write removes. They bound how long a ping waits for it."""
PAUSES = 3
"""Pause three times a step's duration, so removal uses at most 25 % of the writer."""
SHORTEST_PAUSE_SECONDS = 0.002
"""Several times the interval at which another process that waits for SQLite's lock tries again."""
POLL_SECONDS = 60.0
"""Interval of looking for keys that another process revoked and did not remove, and of tries after an error."""


class Removal(BackgroundThread):
    """Removes revoked keys with their checks and alerts: at the start, and after each `wake`.

    Each function in `also` removes other old rows. They are called afterwards, and every `poll_seconds`.
    """

    def __init__(
        self,
        database: Database,
        monotonic: Clock = time.monotonic,
        also: Iterable[Callable[[], object]] = (),
        poll_seconds: float = POLL_SECONDS,
    ) -> None:
        super().__init__("removal", self._remove_all, poll_seconds, monotonic=monotonic)
        self._database = database
        self._also = tuple(also)

    def finish(self) -> None:
        """Take steps until nothing is left, or until a stop. Raises `Unavailable` when the database can't be used."""
        while not self.stopping.is_set():
            with self._database.read() as connection:
                if _oldest_revoked(connection) is None:
                    return
            started = self._monotonic()
            self._database.write(partial(_step, self._database))
            self.rest(self._monotonic() - started)

    def rest(self, step_seconds: float) -> None:
        """Pause after a step that took so long."""
        # At most `POLL_SECONDS`: the process may have been suspended during the step.
        self.stopping.wait(min(max(SHORTEST_PAUSE_SECONDS, PAUSES * step_seconds), POLL_SECONDS))

    def _remove_all(self) -> None:
        self.finish()
        for remove in self._also:
            remove()


def _step(database: Database, transaction: Transaction) -> None:
    """Remove keys left without checks; if there are none, alerts of one key's checks, then checks without alerts."""
    without_checks = (
        "SELECT seq FROM keys WHERE revoked_at IS NOT NULL"
        " AND NOT EXISTS (SELECT 1 FROM checks WHERE api_key_id = keys.id) ORDER BY seq LIMIT ?"
    )
    if transaction.execute(f"DELETE FROM keys WHERE seq IN ({without_checks})", (STEP_KEYS,)).rowcount:
        return
    rows = transaction.execute(
        "SELECT id FROM checks WHERE api_key_id = ? ORDER BY seq LIMIT ?", (_oldest_revoked(transaction), STEP_CHECKS)
    ).fetchall()
    if not rows:
        return
    ids = [row["id"] for row in rows]
    among = ", ".join("?" * len(ids))
    # In the order of all transactions, so that none waits for this one while it is waited for.
    database.lock(transaction, f"SELECT seq FROM checks WHERE id IN ({among}) ORDER BY seq", ids)
    removed = transaction.execute(
        f"DELETE FROM alerts WHERE seq IN (SELECT seq FROM alerts WHERE check_id IN ({among}) LIMIT ?)",
        (*ids, STEP_ALERTS),
    ).rowcount
    if removed < STEP_ALERTS:
        # Another process may have deleted the alerts that were found here: then others may be left.
        transaction.execute(
            f"DELETE FROM checks WHERE id IN ({among})"
            " AND NOT EXISTS (SELECT 1 FROM alerts WHERE check_id = checks.id)",
            ids,
        )


def _oldest_revoked(transaction: Transaction) -> str | None:
    row = transaction.execute("SELECT id FROM keys WHERE revoked_at IS NOT NULL ORDER BY seq LIMIT 1").fetchone()
    return row and str(row["id"])
