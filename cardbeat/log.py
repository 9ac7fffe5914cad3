"""The log on stderr. One thread writes it in batches, so no other thread waits for its reader."""

import contextlib
import logging
import threading
import time
from collections.abc import Sequence
from math import inf
from typing import Final, TextIO

from cardbeat.clock import Clock, utc_text
from cardbeat.jobs import BackgroundThread

BATCH_SECONDS: Final = 0.1
"""Time in which lines are gathered. One write for each line would cost more than a request."""
MOST_LINES: Final = 20_000
"""Most lines that wait to be written: those of 0.1 s, or more for a slow reader."""
SELDOM_SECONDS: Final = 10.0
"""Time between two lines with the same sentence of `Seldom`."""
SENTENCES: Final = 20
"""Most sentences that one `Seldom` remembers."""
SHOWN_WHOLE: Final = 12
"""Longest word that is not cut, in characters: a longer one may be a secret."""


def cut(word: str) -> str:
    """A word as the log may show it: of an id or a key only the first four characters."""
    if len(word) <= SHOWN_WHOLE:
        return word
    return word[:4] + "..."


class Seldom:
    """Logs trouble that each request meets: each sentence once in `SELDOM_SECONDS`."""

    def __init__(
        self, log: logging.Logger, monotonic: Clock = time.monotonic
    ) -> None:
        self._log = log
        self._monotonic = monotonic
        self._logged_at: dict[str, float] = {}

    def error(self, sentence: str) -> None:
        """Log this sentence, unless it was logged just now. Two threads at once may both do so."""
        now = self._monotonic()
        if now >= self._logged_at.get(sentence, -inf) + SELDOM_SECONDS:
            if len(self._logged_at) >= SENTENCES:
                self._logged_at.clear()
            self._logged_at[sentence] = now
            self._log.error("%s", sentence)


class BatchHandler(logging.Handler):
    """Writes to `stream` in a thread of its own. Lines that come too fast are dropped and counted.

    The constructor raises `StartupError` where the system grants no thread.
    """

    def __init__(
        self, stream: TextIO, most_lines: int = MOST_LINES
    ) -> None:
        super().__init__()
        self._stream = stream
        self._most_lines = most_lines
        self._gathering = threading.Lock()
        # These two are read and written under that lock only.
        self._lines: list[str] = []
        self._dropped = 0
        self._thread = BackgroundThread(
            "log", self._gather, at_end=self._write
        )
        self._thread.start()

    def emit(self, record: logging.LogRecord) -> None:
        try:
            line = self.format(record)
        except Exception:
            # An artifact that was replaced has no lines for a trace.
            line = f"{record.levelname} {record.msg} {record.args} {record.exc_info}"
        self.put([line])

    def put(self, lines: Sequence[str]) -> None:
        """Have these lines written soon, as many as there is room for. Never waits."""
        with self._gathering:
            is_first = not self._lines
            room = max(0, self._most_lines - len(self._lines))
            self._lines += lines[:room]
            self._dropped += len(lines[room:])
        if is_first:
            self._thread.wake()

    def finish(self, seconds: float) -> bool:
        """End the thread, and return whether all earlier lines were written in these seconds."""
        return self._thread.stop(seconds)

    def close(self) -> None:
        """End the thread. The logging module calls this at the end of the program."""
        self.finish(seconds=1)
        super().close()

    def _gather(self) -> None:
        self._thread.stopping.wait(BATCH_SECONDS)
        self._write()

    def _write(self) -> None:
        with self._gathering:
            lines = self._lines
            dropped = self._dropped
            self._lines = []
            self._dropped = 0
        if dropped:
            now = utc_text(time.time())
            lines.append(
                f"{now} WARNING {dropped} lines were dropped: stderr is too slow"
            )
        if lines:
            # An error of stderr can be told nowhere else.
            with contextlib.suppress(Exception):
                self._stream.write("\n".join([*lines, ""]))
                self._stream.flush()
