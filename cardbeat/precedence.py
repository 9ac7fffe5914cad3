"""Who goes first: threads that compute for one client begin nothing while a thread that serves all is at work."""

import contextlib
import threading
from collections import deque


class Precedence:
    """Of one thread, over those that `give_way` to it.

    The interpreter runs one thread at a time, and one that computes keeps it from all others for a while. A thread that
    serves everybody in short steps would wait that long for each step. So whoever computes lets it finish first.
    """

    __slots__ = ("_waiting", "has_work")

    def __init__(self) -> None:
        # Both may be changed by any thread, in one atomic operation each.
        self.has_work = False
        self._waiting: deque[threading.Lock] = deque()

    def begin(self) -> None:
        """The thread is at work, or was just woken for some. Safe in any thread."""
        self.has_work = True

    def end(self) -> None:
        """The thread is about to wait; to be called by that one."""
        self.has_work = False
        if self._waiting:
            # The last of them may have gone on by itself meanwhile.
            with contextlib.suppress(IndexError):
                while True:
                    self._waiting.popleft().release()

    def give_way(self, seconds: float) -> None:
        """Wait until the thread has nothing to do, at most so long."""
        if self.has_work and seconds > 0:
            ended = threading.Lock()
            ended.acquire()
            self._waiting.append(ended)
            # If the work has ended before that, nobody would release the lock.
            if self.has_work:
                ended.acquire(timeout=seconds)
            with contextlib.suppress(ValueError):
                self._waiting.remove(ended)
