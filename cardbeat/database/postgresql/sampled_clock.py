"""The clock of a database server, which all machines that share the database use."""

import time
from collections.abc import Callable
from typing import Final

from cardbeat.clock import Clock

SLOW_SECONDS: Final = 1.0
"""A sample that took longer, for example because the process was suspended, gives only the limits of the time."""


class SampledClock:
    """The server's Unix time, computed from the monotonic clock and the last sample, without asking the server.

    `ask` asks the server for the first sample. The writer then samples with each transaction, because the clock of the
    server may be set, and another machine may become the server. One thread samples, any thread may read.
    """

    def __init__(self, ask: Callable[[], float], monotonic: Clock = time.monotonic) -> None:
        self._monotonic = monotonic
        # Written by the thread that samples, read by any.
        self._offset: float | None = None
        self.sample(ask)

    def __call__(self) -> float:
        return self._monotonic() + (self._offset or 0.0)

    def sample(self, ask: Callable[[], float]) -> None:
        """Ask for the time, which is taken as that of the middle between question and answer.

        A slow answer moves the clock only as far as its limits demand. What `ask` raises is raised here.
        """
        asked_at = self._monotonic()
        now = ask()
        answered_at = self._monotonic()
        if answered_at - asked_at <= SLOW_SECONDS or self._offset is None:
            self._offset = now - (asked_at + answered_at) / 2
        else:
            self._offset = min(max(self._offset, now - answered_at), now - asked_at)
