"""The clock of a database server, as all machines that share it know it."""

import time
from collections.abc import Callable
from math import inf
from typing import Final

from cardbeat.clock import Clock

SAMPLE_SECONDS: Final = 10.0
"""From one sample to the next: the server's clock may be set, and another machine may become the server."""
SLOW_SECONDS: Final = 1.0
"""A sample that took longer, as while this process was suspended, tells less than the one before and the monotonic
clock since then."""


class SampledClock:
    """Gives the server's Unix time without asking for it: by the monotonic clock since the last sample.

    `ask` asks the server; what it raises is raised by `sample`. Any thread may read the clock, one samples.
    """

    def __init__(self, ask: Callable[[], float], monotonic: Clock = time.monotonic) -> None:
        self._ask = ask
        self._monotonic = monotonic
        # Written by the thread that samples, read by any: single values, each whole at any time.
        self._offset = 0.0
        self._sampled_at = -inf
        self.sample()

    def __call__(self) -> float:
        return self._monotonic() + self._offset

    def is_old(self) -> bool:
        """Whether it is time for the next sample."""
        return self._monotonic() >= self._sampled_at + SAMPLE_SECONDS

    def sample(self) -> None:
        """Ask for the time now. It is taken for that in the middle between question and answer.

        A slow answer counts only where there was none before. Then `is_old` remains.
        """
        asked_at = self._monotonic()
        now = self._ask()
        answered_at = self._monotonic()
        is_quick = answered_at - asked_at <= SLOW_SECONDS
        if is_quick or self._sampled_at == -inf:
            self._offset = now - (asked_at + answered_at) / 2
            self._sampled_at = answered_at if is_quick else asked_at - SAMPLE_SECONDS
