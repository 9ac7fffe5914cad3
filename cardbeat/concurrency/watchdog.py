"""Ends the process when a stop takes too long, even if the main thread, a disk or a look-up of a name hangs.

Python runs a signal's handler in the main thread, after that has returned to Python code. But it writes the signal's
number to a socket at once (`signal.set_wakeup_fd`), and the thread here reads that.
"""

import contextlib
import logging
import os
import socket
import threading
import time
from collections.abc import Callable

from cardbeat.concurrency import threads
from cardbeat.host.system import STOP_SIGNALS, wake_on_signals

log = logging.getLogger(__name__)

LAST_LINE_SECONDS = 0.25
"""Longest wait for the log to write its last line: its reader may hang too."""


class Watchdog:
    """Waits for a signal that asks for a stop, and ends the process `seconds` after it, with status 0.

    `on_signal` is called for every signal, in the watchdog's thread. Use the methods in the main thread only.
    """

    def __init__(self, seconds: float, on_signal: Callable[[], None]) -> None:
        self._seconds = seconds
        self._on_signal = on_signal
        self._signals, self._sender = socket.socketpair()
        self._sender.setblocking(False)
        self._thread = threading.Thread(target=self._run, name="stop-watchdog", daemon=True)

    def start(self) -> None:
        """Begin to watch. Raises `StartupError` where the system grants no thread."""
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
        self._on_signal()
        return number


def end_now() -> None:
    """End the process now, with a line in the log that names the threads which still run."""
    names = sorted(thread.name for thread in threading.enumerate())
    line = threading.Thread(target=_log_last_line, args=(names,), daemon=True)
    with contextlib.suppress(RuntimeError):
        line.start()
        line.join(LAST_LINE_SECONDS)
    os._exit(0)


def _log_last_line(names: list[str]) -> None:
    log.warning("the stop waits no longer; running: %s", ", ".join(names))
    logging.shutdown()
