"""The clock of a database server, as all machines that share it know it."""

import time
from collections.abc import Callable
from typing import Final

from cardbeat.clock import Clock

SLOW_SECONDS: Final = 1.0
"""A sample that took longer, as while this process was suspended, only tells between which two the time was."""


class SampledClock:
    """Gives the server's Unix time without asking for it: by the monotonic clock since the last sample.

    `ask` asks the server, for the first sample. Whoever writes samples with each transaction: the server's clock may be
    set, and another machine may become the server. Any thread may read the clock, one samples.
    """

    def __init__(self, ask: Callable[[], float], monotonic: Clock = time.monotonic) -> None:
        self._monotonic = monotonic
        # Written by the thread that samples, read by any: a single value, whole at any time.
        self._offset: float | None = None
        self.sample(ask)

    def __call__(self) -> float:
        return self._monotonic() + (self._offset or 0.0)

    def sample(self, ask: Callable[[], float]) -> None:
        """Ask for the time now. It is taken for that in the middle between question and answer.

        After a slow answer it stays what it was before, as far as that can be. What `ask` raises is raised here.
        """
        asked_at = self._monotonic()
        now = ask()
        answered_at = self._monotonic()
        if answered_at - asked_at <= SLOW_SECONDS or self._offset is None:
            self._offset = now - (asked_at + answered_at) / 2
        else:
            self._offset = min(max(self._offset, now - answered_at), now - asked_at)
