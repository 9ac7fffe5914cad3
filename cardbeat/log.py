"""The log on stderr. One thread writes it in batches, so no other thread waits for the reader of stderr."""

import contextlib
import logging
import threading
import time
from collections import Counter
from collections.abc import Sequence
from math import inf
from typing import Final, NamedTuple, TextIO

from cardbeat.clock import Clock
from cardbeat.concurrency.threads import BackgroundThread

BATCH_SECONDS: Final = 0.1
"""Time in which the lines of a `Kind` are gathered. One write for each would cost more than a request."""
SELDOM_SECONDS: Final = 10.0
"""Time between two lines with the same sentence of `Seldom`."""
SENTENCES: Final = 20
"""Most sentences that one `Seldom` remembers."""
SHOWN_WHOLE: Final = 12
"""Longest word that is not cut, in characters: a longer one may be a secret."""


class Kind(NamedTuple):
    """Lines that are gathered. A batch has at most `most` of them; `more` says how many others there were."""

    most: int
    more: str


RECORDS: Final = Kind(1000, "%d lines were dropped: stderr is too slow")
"""The kind of all records of the logging module that have none of their own."""


def cut(word: str) -> str:
    """A word as the log may show it: of an id or a key only the first four characters."""
    return word if len(word) <= SHOWN_WHOLE else word[:4] + "..."


class Seldom:
    """Logs trouble that each request meets: a sentence at once, and again with how often it came since then."""

    def __init__(self, log: logging.Logger, monotonic: Clock = time.monotonic) -> None:
        self._log = log
        self._monotonic = monotonic
        self._lock = threading.Lock()
        # Sentence -> when it was logged and how often it came since; the last one logged is last. Under the lock only.
        self._since: dict[str, tuple[float, int]] = {}

    def error(self, sentence: str) -> None:
        """Log this sentence, unless it was logged within `SELDOM_SECONDS`. Safe in any thread."""
        now = self._monotonic()
        with self._lock:
            logged_at, more = self._since.get(sentence, (-inf, 0))
            if now < logged_at + SELDOM_SECONDS:
                self._since[sentence] = logged_at, more + 1
                return
            self._since.pop(sentence, None)
            self._since[sentence] = now, 0
            if len(self._since) > SENTENCES:
                del self._since[next(iter(self._since))]
        self._log.error(f"%s (and {more} times since the last such line)" if more else "%s", sentence)


class BatchHandler(logging.Handler):
    """Writes to `stream` in a thread of its own. Lines that come too fast are dropped and counted.

    Lines given to `put`, and records with an attribute `kind` (`extra={"kind": ...}`), are gathered for up to
    `batch_seconds`; any other record is written at once. A record with an attribute `more` is not written: it
    counts as so many dropped lines. The constructor raises `StartupError` where the system grants no thread.
    """

    def __init__(self, stream: TextIO, batch_seconds: float = BATCH_SECONDS) -> None:
        super().__init__()
        self._stream = stream
        self._batch_seconds = batch_seconds
        self._gathering = threading.Lock()
        # These are read and written under that lock only.
        self._lines: list[str] = []
        self._kept: Counter[Kind] = Counter()
        self._dropped: Counter[Kind] = Counter()
        self._is_urgent = threading.Event()
        self._thread = BackgroundThread("log", self._gather, at_end=self._write)
        self._thread.start()

    def emit(self, record: logging.LogRecord) -> None:
        kind = getattr(record, "kind", RECORDS)
        try:
            more = getattr(record, "more", 0)
            self.put(kind, [] if more else [self._formatted(record)], more)
        except Exception:
            # It shows a trace as well: see `_formatted`.
            with contextlib.suppress(Exception):
                self.handleError(record)
        if kind is RECORDS:
            self._is_urgent.set()

    def _formatted(self, record: logging.LogRecord) -> str:
        """The record with its trace; without it if the artifact was replaced, from which a trace takes its lines."""
        try:
            return self.format(record)
        except Exception:
            told = logging.makeLogRecord({**record.__dict__, "exc_info": None, "exc_text": None})
            return f"{self.format(told)}: {record.exc_info[1] if record.exc_info else None!r}"

    def put(self, kind: Kind, lines: Sequence[str], more: int = 0) -> None:
        """Have these lines written within `batch_seconds`, and `more` counted as dropped. Safe in any thread."""
        with self._gathering:
            is_first = not self._kept
            kept = lines[: max(0, kind.most - self._kept[kind])]
            self._lines += kept
            self._kept[kind] += len(kept)
            self._dropped[kind] += len(lines) - len(kept) + more
        if is_first:
            self._thread.wake()

    def finish(self, seconds: float) -> bool:
        """End the thread, and return whether all earlier lines were written within these seconds."""
        self._is_urgent.set()
        return self._thread.stop(seconds)

    def close(self) -> None:
        """End the thread. The logging module calls this at the end of the program."""
        self.finish(seconds=1)
        super().close()

    def _gather(self) -> None:
        self._is_urgent.wait(self._batch_seconds)
        self._is_urgent.clear()
        self._write()

    def _write(self) -> None:
        with self._gathering:
            lines, self._lines = self._lines, []
            dropped, self._dropped = self._dropped, Counter()
            self._kept.clear()
        for kind, count in dropped.items():
            if count:
                more = {"msg": kind.more, "args": (count,), "levelname": "INFO"}
                lines.append(self.format(logging.makeLogRecord(more)))
        # An error of stderr can be told nowhere else.
        with contextlib.suppress(Exception):
            self._stream.write("\n".join([*lines, ""]))
            self._stream.flush()
