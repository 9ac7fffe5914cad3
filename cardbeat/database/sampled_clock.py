"""The clock of a database server, as all machines that share it know it."""

import time
from collections.abc import Callable
from typing import Final

from cardbeat.clock import Clock

SAMPLE_SECONDS: Final = 10.0
"""From one sample to the next: the server's clock may be set, and another machine may become the server."""


class SampledClock:
    """Gives the server's Unix time without asking for it: by the monotonic clock since the last sample.

    `ask` asks the server; what it raises is raised by `sample`. Any thread may read the clock, one samples.
    """

    def __init__(self, ask: Callable[[], float], monotonic: Clock = time.monotonic) -> None:
        self._ask = ask
        self._monotonic = monotonic
        # Written by the thread that samples, read by any: single values, each whole at any time.
        self._offset = 0.0
        self._sampled_at = 0.0
        self.sample()

    def __call__(self) -> float:
        return self._monotonic() + self._offset

    def is_old(self) -> bool:
        """Whether it is time for the next sample."""
        return self._monotonic() >= self._sampled_at + SAMPLE_SECONDS

    def sample(self) -> None:
        """Ask for the time now. It is taken for that in the middle between question and answer."""
        asked_at = self._monotonic()
        now = self._ask()
        self._sampled_at = self._monotonic()
        self._offset = now - (asked_at + self._sampled_at) / 2
