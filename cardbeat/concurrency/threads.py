"""Background threads: how one starts and ends, and the loop that most of them run."""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable

from cardbeat.clock import Clock
from cardbeat.errors import Refusal, StartupError

log = logging.getLogger(__name__)

BEGIN_SECONDS = 5.0
"""Longest wait for the first step of a new thread."""


class BackgroundThread:
    """Calls `work` in a thread of its own, again and again, from `start` until `stop`.

    The first call begins `first_after` seconds after the start, each other one `seconds` after the previous one began,
    or after the number of seconds that the previous one returned. None means: at the next `wake`. A `wake` begins the
    next call at once. An error is logged, and the loop goes on. `at_end` is called in the thread, after the last call.
    """

    def __init__(
        self,
        name: str,
        work: Callable[[], float | None],
        seconds: float | None = None,
        *,
        at_end: Callable[[], object] = lambda: None,
        monotonic: Clock = time.monotonic,
        first_after: float = 0,
    ) -> None:
        self._work = work
        self._seconds = seconds
        self._at_end = at_end
        self._monotonic = monotonic
        self._first_after = first_after
        self._woken = threading.Event()
        self.stopping = threading.Event()
        """Set by `stop`. Long work looks at it, and waits for it instead of sleeping."""
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Raises `StartupError` where the system grants no more threads."""
        start(self._thread)

    def wake(self) -> None:
        """Begin the next call now, or right after the present one. Safe in any thread."""
        self._woken.set()

    def stop(self, seconds: float | None = None) -> bool:
        """Begin no more calls, and return whether the thread has ended within these seconds; None is no limit."""
        self.stopping.set()
        self._woken.set()
        return has_ended(self._thread, seconds)

    def _run(self) -> None:
        if self._first_after:
            self._woken.wait(self._first_after)
        while not self.stopping.is_set():
            self._woken.wait(self._call())
            # Cleared after the wait, so that a wake or a stop during the call is not lost.
            self._woken.clear()
        self._at_end()

    def _call(self) -> float | None:
        """Call `work` once, and return the seconds that are left until the next call."""
        began, seconds = self._monotonic(), None
        try:
            seconds = self._work()
        except (Refusal, OSError) as error:
            # The sentence names the cause; a trace would add nothing.
            log.error("%s failed, next try in %s s: %s", self._thread.name, self._seconds, error)
        except Exception:
            log.exception("%s failed, next try in %s s", self._thread.name, self._seconds)
        if seconds is None:
            seconds = self._seconds
        return None if seconds is None else max(0, began + seconds - self._monotonic())


class Afterwards:
    """Calls what it is given after always the same number of seconds, in one thread that runs while something waits."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._lock = threading.Lock()
        self._waiting: deque[tuple[float, Callable[[], object]]] = deque()

    def call(self, work: Callable[[], object]) -> None:
        """Call `work` later; at once, with all that waits, if the system grants no thread. Safe in any thread."""
        with self._lock:
            self._waiting.append((time.monotonic() + self._seconds, work))
            if len(self._waiting) > 1:
                return
        try:
            DaemonThread(self._run, "afterwards").start()
        except RuntimeError:
            self._run(lambda _: None)

    def _run(self, sleep: Callable[[float], object] = time.sleep) -> None:
        is_last = False
        while not is_last:
            due_at, work = self._waiting[0]
            sleep(max(0, due_at - time.monotonic()))
            try:
                work()
            except Exception:
                log.exception("what was to be done afterwards has failed")
            with self._lock:
                self._waiting.popleft()
                is_last = not self._waiting


class DaemonThread(threading.Thread):
    """A thread for which nobody waits. `start` raises `RuntimeError` where the system grants none, or none begins."""

    def __init__(self, work: Callable[[], object], name: str) -> None:
        super().__init__(target=work, name=name, daemon=True)
        # Python waits for it without a limit: for ever if the thread had no memory for its first step.
        self._started = _Begin()
        self._may_run = threading.Lock()

    def start(self) -> None:
        try:
            super().start()
        except (RuntimeError, MemoryError):
            # It may run though there was no memory to wait for it.
            if self._may_run.acquire(blocking=False):
                raise
            return
        if not self._started.is_set() and self._may_run.acquire(blocking=False):
            raise RuntimeError(f"the thread {self.name} has not begun within {BEGIN_SECONDS:g} s")

    def run(self) -> None:
        if self._may_run.acquire(blocking=False):
            super().run()


class _Begin(threading.Event):
    def wait(self, timeout: float | None = None) -> bool:
        return super().wait(BEGIN_SECONDS if timeout is None else timeout)


def start(thread: threading.Thread) -> None:
    """Start a thread. Raises `StartupError` where the system grants no more threads."""
    try:
        thread.start()
    except RuntimeError:
        raise StartupError(
            f"the system grants no thread for {thread.name}; raise its limit (ulimit -u and -v, a service's TasksMax=, "
            "a container's --pids-limit) or end other programs"
        ) from None


def has_ended(thread: threading.Thread, seconds: float | None) -> bool:
    """Whether the thread does not run, or ends within these seconds; None is no limit."""
    if thread.is_alive():
        thread.join(seconds)
    return not thread.is_alive()
