"""The log on stderr, whose reader may be slow, stopped or gone."""

import logging
import threading
from queue import SimpleQueue
from typing import Final

from cardbeat import threads

QUEUED_RECORDS: Final = 1000
"""Past these, new ones are lost."""
STALL_SECONDS: Final = 0.25
"""How long the first to log waits for a reader that does not read; nobody after it waits at all."""


SHOWN_WHOLE: Final = 12
"""Characters of what is not cut: all that is longer may be a secret."""


def cut(word: str) -> str:
    """A word as a line of the log may show it: of a check's id or a key's value just enough to recognise it."""
    return word if len(word) <= SHOWN_WHOLE else word[:4] + "..."


class QueuedHandler(logging.Handler):
    """Hands records to another handler in a thread of its own, so that nobody waits long for stderr's reader.

    As long as that reads, a record is written when the call that logs it returns. The constructor raises `StartupError`
    where the system grants no thread.
    """

    def __init__(self, target: logging.Handler) -> None:
        self._target = target
        self._records: SimpleQueue[tuple[logging.LogRecord, threading.Event] | None] = SimpleQueue()
        # Set by whoever logs and unset by the thread that writes, without a lock: at worst one more caller waits.
        self._stalled = False
        self._thread = threading.Thread(target=self._run, name="log", daemon=True)
        threads.start(self._thread)
        # Last: the logging module ends whatever handler it knows.
        super().__init__()

    def emit(self, record: logging.LogRecord) -> None:
        if self._records.qsize() < QUEUED_RECORDS:
            written = threading.Event()
            self._records.put((record, written))
            self._stalled = self._stalled or not written.wait(STALL_SECONDS)

    def finish(self, seconds: float) -> bool:
        """Whether what is left could be written in this time."""
        self._records.put(None)
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def close(self) -> None:
        """What the logging module does at the end of the program."""
        self.finish(seconds=1)
        super().close()

    def _run(self) -> None:
        while (next_one := self._records.get()) is not None:
            record, written = next_one
            self._target.handle(record)
            self._stalled = False
            written.set()
