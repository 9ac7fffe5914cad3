"""Results that come after a time."""

import contextlib
import heapq
import threading
import time
from itertools import count

from cardbeat.later import Later


def after(seconds: float) -> Later[None]:
    """Settled when so much time has passed, by a thread that all who wait share: its callbacks must be quick."""
    return _alarms.set(time.monotonic() + seconds)


class _Alarms:
    """Settles each `Later` at its time, in one thread, which is started when it is first needed."""

    def __init__(self) -> None:
        # All is read and written under this condition's lock only.
        self._changed = threading.Condition()
        self._alarms: list[tuple[float, int, Later[None]]] = []
        self._numbers = count()
        self._is_started = False

    def set(self, at: float) -> Later[None]:
        alarm: Later[None] = Later()
        with self._changed:
            is_kept = self._is_started or self._start()
            if is_kept:
                heapq.heappush(self._alarms, (at, next(self._numbers), alarm))
                self._changed.notify()
        if not is_kept:
            # The system grants no more threads: too early is better than never.
            alarm.succeed(None)
        return alarm

    def _start(self) -> bool:
        with contextlib.suppress(RuntimeError):
            threading.Thread(target=self._run, name="alarms", daemon=True).start()
            self._is_started = True
        return self._is_started

    def _run(self) -> None:
        while True:
            self._next().succeed(None)

    def _next(self) -> Later[None]:
        """The first alarm, once its time has come."""
        with self._changed:
            while not self._alarms or self._alarms[0][0] > time.monotonic():
                self._changed.wait(self._alarms[0][0] - time.monotonic() if self._alarms else None)
            return heapq.heappop(self._alarms)[2]


_alarms = _Alarms()
