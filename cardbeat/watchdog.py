"""Ends the process when a stop takes too long, whatever hangs: the main thread, a disk, a look-up of a name.

A signal's handler runs in the main thread alone, and not before that is back in Python. The system's part of it writes
a byte into a socket at once; that is what the thread here waits for.
"""

import contextlib
import logging
import os
import socket
import threading
import time
from collections.abc import Callable

from cardbeat import threads
from cardbeat.system import STOP_SIGNALS, wake_on_signals

log = logging.getLogger(__name__)

LAST_LINE_SECONDS = 0.25
"""What the last line of the log may take: its reader may be what hangs."""


class Watchdog:
    """Watches from its start on for a signal that asks for a stop; `seconds` after it the process is ended, status 0.

    `on_signal` is called for every signal, in the watchdog's thread. In the main thread only.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._signals, self._sender = socket.socketpair()
        self._sender.setblocking(False)
        # Written by the main thread, read by this one.
        self.on_signal: Callable[[], None] = lambda: None
        self._thread = threading.Thread(target=self._run, name="stop-watchdog", daemon=True)

    def start(self) -> None:
        """Raises `StartupError` without a thread."""
        threads.start(self._thread)
        wake_on_signals(self._sender)

    def end(self) -> None:
        """Watch no more: the process is about to end."""
        wake_on_signals(None)

    def _run(self) -> None:
        while self._next_signal() not in STOP_SIGNALS:
            pass
        ends = time.monotonic() + self._seconds
        with contextlib.suppress(TimeoutError):
            while (left := ends - time.monotonic()) > 0:
                self._signals.settimeout(left)
                self._next_signal()
        end_now()

    def _next_signal(self) -> int:
        (number,) = self._signals.recv(1)
        self.on_signal()
        return number


def end_now() -> None:
    """End the process at once, with a line that names the threads that still run, if the log takes it in time."""
    names = sorted(thread.name for thread in threading.enumerate())
    line = threading.Thread(target=log.warning, args=("the stop waits no longer; running: %s", ", ".join(names)))
    line.daemon = True
    with contextlib.suppress(RuntimeError):
        line.start()
        line.join(LAST_LINE_SECONDS)
    os._exit(0)
