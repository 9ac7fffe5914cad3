"""The log on stderr, whose reader may be slow, stopped or gone."""

import logging
import threading
from queue import SimpleQueue
from typing import Final

QUEUED_RECORDS: Final = 1000
"""Past these, new ones are lost."""


class PatientHandler(logging.Handler):
    """Hands records to another handler in a thread of its own: whoever logs never waits for stderr's reader."""

    def __init__(self, target: logging.Handler) -> None:
        super().__init__()
        self._target = target
        self._records: SimpleQueue[logging.LogRecord | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="log", daemon=True)
        self._thread.start()

    def emit(self, record: logging.LogRecord) -> None:
        if self._records.qsize() < QUEUED_RECORDS:
            self._records.put(record)

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
        while (record := self._records.get()) is not None:
            self._target.handle(record)
