"""What a revoked key leaves behind goes in many short writes, so that no ping waits behind them.

`Keys.revoke` makes a key dead at once and leaves its row. Each step here is a write of its own that finds what is left,
so steps may be cut short anywhere, be taken up by the next start, and be made by several processes at once. The row
goes last.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable

from cardbeat import threads
from cardbeat.clock import Clock
from cardbeat.database import Database, Transaction

log = logging.getLogger(__name__)

STEP_CHECKS = 50
"""How many checks one write job removes: bounds, with the next, how long a ping waits behind it."""
STEP_ALERTS = 50
PAUSES = 3
"""How many times as long as a step took the pause after it is: a quarter of the writer's time at most goes by."""
SHORTEST_PAUSE_SECONDS = 0.002
"""Several times as long as another process that wants to write looks away between two tries."""
POLL_SECONDS = 60.0
"""How soon it is taken up what another process revoked and did not remove, or what failed; no pause is longer."""


class Removal:
    """Removes the checks of revoked keys, their alerts and the keys, until none is left: now, and at each `wake`.

    `also` remove what else nobody needs any more. They are called after that, and every `POLL_SECONDS`.

    After each step it pauses for some times as long as that took, waiting for the writer included: so most of the
    writer's time is free for other work, and where there is much of that, more is. A step in which the process was
    suspended for hours is no reason to rest for days.
    """

    def __init__(
        self, database: Database, monotonic: Clock = time.monotonic, also: Iterable[Callable[[], object]] = ()
    ) -> None:
        self._database = database
        self._also = tuple(also)
        self._monotonic = monotonic
        self._woken = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="removal", daemon=True)

    def start(self) -> None:
        """Begin, first of all with what an earlier process left, in a thread. Raises `StartupError` without one."""
        threads.start(self._thread)

    def wake(self) -> None:
        """A key was revoked, and that is committed."""
        self._woken.set()

    def stop(self, seconds: float | None = None) -> bool:
        """End the thread after the step that it is in. What is left goes after the next start.

        False where that step takes longer than `seconds`.
        """
        self._stopping.set()
        self._woken.set()
        return threads.has_ended(self._thread, seconds)

    def finish(self) -> None:
        """Take steps until nothing is left or a stop. Raises `Unavailable` when the database can't be used."""
        while not self._stopping.is_set() and self._is_anything_left():
            started = self._monotonic()
            self._database.write(_step)
            self._stopping.wait(_pause_seconds(self._monotonic() - started))

    def _is_anything_left(self) -> bool:
        with self._database.read() as connection:
            return _oldest_revoked(connection) is not None

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self.finish()
                for remove in self._also:
                    remove()
            except Exception as error:
                log.warning(
                    "what nobody needs any more is not all removed: %s; trying again in %g s", error, POLL_SECONDS
                )
            self._woken.wait(POLL_SECONDS)
            # After the wait: what is set between two of them, by a stop too, ends the next at once.
            self._woken.clear()


def _pause_seconds(step_seconds: float) -> float:
    return min(max(SHORTEST_PAUSE_SECONDS, PAUSES * step_seconds), POLL_SECONDS)


def _step(transaction: Transaction) -> None:
    """Remove some alerts of some checks of one key, these checks if they have no more, or the key if it has none."""
    key_id = _oldest_revoked(transaction)
    rows = transaction.execute(
        "SELECT id FROM checks WHERE api_key_id = ? ORDER BY seq LIMIT ?", (key_id, STEP_CHECKS)
    ).fetchall()
    if not rows:
        transaction.execute("DELETE FROM keys WHERE id = ?", (key_id,))
        return
    ids = [row["id"] for row in rows]
    among = ", ".join("?" * len(ids))
    removed = transaction.execute(
        f"DELETE FROM alerts WHERE seq IN (SELECT seq FROM alerts WHERE check_id IN ({among}) LIMIT ?)",
        (*ids, STEP_ALERTS),
    ).rowcount
    if removed < STEP_ALERTS:
        # Another process that removes the same may have deleted the alerts found here: then some may be left.
        transaction.execute(
            f"DELETE FROM checks WHERE id IN ({among})"
            " AND NOT EXISTS (SELECT 1 FROM alerts WHERE check_id = checks.id)",
            ids,
        )


def _oldest_revoked(transaction: Transaction) -> str | None:
    row = transaction.execute("SELECT id FROM keys WHERE revoked_at IS NOT NULL ORDER BY seq LIMIT 1").fetchone()
    return row and str(row["id"])
