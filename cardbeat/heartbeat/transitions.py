"""Log lines for checks that turn overdue or recover and for alerts that are given up."""

import logging
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from typing import Final

from cardbeat import threads
from cardbeat.log import cut

log = logging.getLogger(__name__)

LINES: Final = 20
"""Lines of a kind in one batch; of what is beyond them only the number is told."""
BATCH_SECONDS: Final = 0.2
"""For how long lines are gathered: a sweep that marks thousands of checks takes a part of it for each step."""

OVERDUE: Final = "{} is overdue"
RECOVERED: Final = "{} has recovered"
GIVEN_UP: Final = "an alert of {} was given up"
_MORE: Final = {
    OVERDUE: "%d more checks are overdue",
    RECOVERED: "%d more checks have recovered",
    GIVEN_UP: "%d more alerts were given up",
}

KEY_PREFIX: Final = "(SELECT prefix FROM keys WHERE keys.id = CAST(api_key_id AS TEXT)) AS key_prefix"
"""A column for the RETURNING of a statement that changes checks. There, without the cast, SQLite uses no index."""


class TransitionLog:
    """Takes note of transitions from any thread, and writes their lines from one of its own.

    So stderr's reader holds up neither the thread that serves nor the one that sweeps. Names are not in the lines:
    whoever chose one could write there what they like.
    """

    def __init__(self, write: Callable[..., None] = log.info) -> None:
        self._write = write
        # Written and read under the lock only.
        self._lock = threading.Lock()
        self._shown: defaultdict[str, list[str]] = defaultdict(list)
        self._counts: Counter[str] = Counter()
        self._noted = threading.Event()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="transition-log", daemon=True)

    def start(self) -> None:
        """Raises `StartupError` without a thread."""
        threads.start(self._thread)

    def stop(self, seconds: float | None = None) -> bool:
        """End the thread, and write what it has left. False where stderr's reader keeps it from that for so long."""
        self._stopped.set()
        self._noted.set()
        if not threads.has_ended(self._thread, seconds):
            return False
        self._write_noted()
        return True

    def note(self, kind: str, subjects: Iterable[str]) -> None:
        """Take in transitions of one kind, once they are committed; each check as `subject_of` has it."""
        with self._lock:
            for subject in subjects:
                self._counts[kind] += 1
                if self._counts[kind] <= LINES:
                    self._shown[kind].append(subject)
        self._noted.set()

    def _run(self) -> None:
        while not self._stopped.is_set():
            self._noted.wait()
            self._stopped.wait(BATCH_SECONDS)
            self._noted.clear()
            self._write_noted()

    def _write_noted(self) -> None:
        with self._lock:
            shown, self._shown = self._shown, defaultdict(list)
            counts, self._counts = self._counts, Counter()
        for kind, count in counts.items():
            for subject in shown[kind]:
                self._write("%s", kind.format(subject))
            if count > LINES:
                self._write(_MORE[kind], count - LINES)


def subject_of(check_id: str, key_prefix: str) -> str:
    """How a check stands in a line: both its id and its key are secrets, so they are cut."""
    return f"check {cut(check_id)} of key {key_prefix}..."
