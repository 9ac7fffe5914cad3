"""The log on stderr. One thread writes it in batches, so no other thread waits for the reader of stderr."""

import contextlib
import logging
import threading
from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple, TextIO

from cardbeat.concurrency.threads import BackgroundThread

BATCH_SECONDS: Final = 0.1
"""Time in which the lines of a `Kind` are gathered. One write for each would cost more than a request."""
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


class BatchHandler(logging.Handler):
    """Writes to `stream` in a thread of its own. Lines that come too fast are dropped and counted.

    Lines given to `put`, and records with an attribute `kind` (`extra={"kind": ...}`), are gathered for up to
    `batch_seconds`; any other record is written at once. The constructor raises `StartupError` where the system grants
    no thread.
    """

    def __init__(self, stream: TextIO, batch_seconds: float = BATCH_SECONDS) -> None:
        super().__init__()
        self._stream = stream
        self._batch_seconds = batch_seconds
        self._gathering = threading.Lock()
        # Both are read and written under that lock only.
        self._lines: list[str] = []
        self._counts: Counter[Kind] = Counter()
        self._is_urgent = threading.Event()
        self._thread = BackgroundThread("log", self._gather, at_end=self._write)
        self._thread.start()

    def emit(self, record: logging.LogRecord) -> None:
        kind = getattr(record, "kind", RECORDS)
        try:
            self.put(kind, [self.format(record)])
        except Exception:
            self.handleError(record)
        if kind is RECORDS:
            self._is_urgent.set()

    def put(self, kind: Kind, lines: Sequence[str]) -> None:
        """Have these lines written within `batch_seconds`. Safe in any thread."""
        with self._gathering:
            is_first = not self._counts
            room = max(0, kind.most - self._counts[kind])
            self._counts[kind] += len(lines)
            self._lines += lines[:room]
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
            counts, self._counts = self._counts, Counter()
        for kind, count in counts.items():
            if count > kind.most:
                more = {"msg": kind.more, "args": (count - kind.most,), "levelname": "INFO"}
                lines.append(self.format(logging.makeLogRecord(more)))
        # An error of stderr can be told nowhere else.
        with contextlib.suppress(Exception):
            self._stream.write("".join(f"{line}\n" for line in lines))
            self._stream.flush()
