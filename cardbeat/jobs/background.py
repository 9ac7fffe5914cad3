"""A thread that calls a function again and again."""

import logging
import threading
import time
from collections.abc import Callable

from cardbeat.clock import Clock
from cardbeat.errors import Refusal, StartupError

log = logging.getLogger(__name__)


class BackgroundThread:
    """Calls `work` in a thread of its own, again and again, from `start` until `stop`.

    The first call begins at the start, each other one `seconds` after the previous one began, or
    after the number of seconds that the previous one returned. None means: at the next `wake`. A
    `wake` begins the next call at once. An error is logged, and the loop goes on. `at_end` is
    called in the thread, after the last call.
    """

    def __init__(
        self,
        name: str,
        work: Callable[[], float | None],
        seconds: float | None = None,
        *,
        at_end: Callable[[], object] = lambda: None,
        monotonic: Clock = time.monotonic,
    ) -> None:
        self._work = work
        self._seconds = seconds
        self._at_end = at_end
        self._monotonic = monotonic
        self._woken = threading.Event()
        self.stopping = threading.Event()
        """Set by `stop`. Long work looks at it, and waits for it instead of sleeping."""
        self._thread = threading.Thread(
            target=self._run, name=name, daemon=True
        )

    def start(self) -> None:
        """Raises `StartupError` where the system grants no more threads."""
        start_thread(self._thread)

    def wake(self) -> None:
        """Begin the next call now, or right after the present one. Safe in any thread."""
        self._woken.set()

    def stop(self, seconds: float | None = None) -> bool:
        """Begin no more calls. Returns whether the thread ends within these seconds."""
        self.stopping.set()
        self._woken.set()
        return has_ended(self._thread, seconds)

    def _run(self) -> None:
        while not self.stopping.is_set():
            self._woken.wait(self._call())
            # Cleared after the wait, so that a wake or a stop during the call is not lost.
            self._woken.clear()
        self._at_end()

    def _call(self) -> float | None:
        """Call `work` once, and return the seconds that are left until the next call."""
        began = self._monotonic()
        seconds = None
        try:
            seconds = self._work()
        except (Refusal, OSError) as error:
            # The sentence names the cause; a trace would add nothing.
            log.error("%s failed: %s", self._thread.name, error)
        except Exception:
            log.exception("%s failed", self._thread.name)
        if seconds is None:
            seconds = self._seconds
        return (
            None
            if seconds is None
            else max(0, began + seconds - self._monotonic())
        )


def start_thread(thread: threading.Thread) -> None:
    """Start a thread. Raises `StartupError` where the system grants no more threads."""
    try:
        thread.start()
    except RuntimeError:
        raise StartupError(
            f"the system grants no thread for {thread.name}; raise its limit (ulimit -u and -v, a "
            "service's TasksMax=, a container's --pids-limit) or end other programs"
        ) from None


def has_ended(thread: threading.Thread, seconds: float | None) -> bool:
    """Whether the thread does not run, or ends within these seconds; None is no limit."""
    if thread.is_alive():
        thread.join(seconds)
    return not thread.is_alive()
