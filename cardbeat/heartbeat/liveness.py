"""Whether alerts are worked on, by this process or by another one with the same database; a log line if not.

A single alert that is late tells nothing of that: it may wait in turn behind hundreds of silent receivers of its key.
What tells is that whoever has the lease goes on reading, planning and recording, as it does at least once a second with
threads to post with, whatever receivers do.
"""

import contextlib
import logging
import math
import threading
import time
from collections.abc import Callable

from cardbeat import threads
from cardbeat.clock import Clock
from cardbeat.database import Database
from cardbeat.errors import Refusal
from cardbeat.heartbeat.rounds import Rounds

log = logging.getLogger(__name__)

STALLED_SECONDS = 300
"""How long nobody may have worked on alerts before `/healthz` and the log tell it."""
NOTE_SECONDS = 30.0
"""How often the process that delivers tells the others so, which costs a write."""
LOOK_SECONDS = 10.0
"""How soon the log tells."""

HANGS = "the thread that sends them does not go on"
FAILS = "reading or storing them fails"
NO_THREADS = "no thread can be started to send them"
LOCKED_OUT = "another process holds the lease to send them (in a data folder, delivery.lock) and does not go on"


class Liveness:
    """When alerts were last worked on, by the clock `elapsed`, which only goes forward."""

    def __init__(self, database: Database, elapsed: Clock) -> None:
        self._database = database
        self._elapsed = elapsed
        # Written by the dispatcher's thread, read by any: the reason is a single value, whole at any time.
        self._rounds = Rounds(database, "delivery_rounds", elapsed)
        self.reason = HANGS
        # That thread's own.
        self._note_at = -math.inf

    def begin(self) -> None:
        """From now on somebody should work."""
        self._rounds.end()

    def worked(self) -> None:
        """This process has gone once round all that there is to do."""
        self.reason = HANGS
        self._rounds.end()
        if self._elapsed() >= self._note_at:
            self._note_at = self._elapsed() + NOTE_SECONDS
            # The database logs its own trouble.
            with contextlib.suppress(Refusal):
                self._database.write_later(self._rounds.count)

    def failed(self, reason: str) -> None:
        """This process should work and could not."""
        self.reason = reason

    def look_at_other(self) -> None:
        """Another process has the lease: see whether it has worked since the last look."""
        self.reason = LOCKED_OUT
        self._rounds.look()

    def age_seconds(self) -> float:
        """How long ago somebody worked, or began to; another process is seen to `NOTE_SECONDS` later."""
        return self._rounds.age_seconds()

    def healthy(self) -> bool:
        return self.age_seconds() <= STALLED_SECONDS


class LivenessLog:
    """Writes a line when nobody works on alerts any more, and one when somebody does again.

    From a thread of its own: that of the dispatcher may be what hangs. `oldest_due_seconds` may raise `Refusal`.
    """

    def __init__(self, liveness: Liveness, oldest_due_seconds: Callable[[], float]) -> None:
        self._liveness = liveness
        self._oldest_due_seconds = oldest_due_seconds
        self._stalled_seconds = 0.0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="alerts-liveness", daemon=True)

    def start(self) -> None:
        """Raises `StartupError` without a thread."""
        threads.start(self._thread)

    def stop(self) -> None:
        self._stopping.set()

    def look(self) -> None:
        """Write a line if that has changed since the last look."""
        if self._liveness.healthy():
            if self._stalled_seconds:
                log.warning("alerts go on; for %d s they were held up", self._stalled_seconds)
            self._stalled_seconds = 0.0
            return
        began, self._stalled_seconds = self._stalled_seconds, self._liveness.age_seconds()
        if not began:
            line = "alerts are held up: %s, for %d s now; the oldest that is due waits for %s"
            log.error(line, self._liveness.reason, self._stalled_seconds, self._oldest_due())

    def _oldest_due(self) -> str:
        try:
            return f"{self._oldest_due_seconds():.0f} s"
        except Refusal:
            return "a time that can't be read"

    def _run(self) -> None:
        began = time.monotonic()
        while not self._stopping.wait(LOOK_SECONDS):
            slept, began = time.monotonic() - began, time.monotonic()
            try:
                # A process that was itself suspended has not yet had time to work.
                if slept < 2 * LOOK_SECONDS:
                    self.look()
            except Exception:
                log.exception("it is not known whether alerts are sent")
