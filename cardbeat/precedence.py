"""Who goes first: threads that compute for one client begin nothing while a thread that serves all is at work."""

import time
from typing import Final

LOOK_SECONDS: Final = 0.0005


class Precedence:
    """Of one thread, over those that `give_way` to it.

    The interpreter runs one thread at a time, and one that computes keeps it from all others for a while. A thread that
    serves everybody in short steps would wait that long for each step. So whoever computes lets it finish first.
    """

    __slots__ = ("has_work",)

    def __init__(self) -> None:
        self.has_work = False
        """Set by the thread before and after it waits, and by whoever wakes it. A plain value, as it is set often."""

    def give_way(self, until: float) -> None:
        """Wait until the thread has nothing to do, at most until that time on the monotonic clock."""
        while self.has_work and (left := until - time.monotonic()) > 0:
            time.sleep(min(LOOK_SECONDS, left))
