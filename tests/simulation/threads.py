"""Threads in the place of those of `threading`: greenlets that belong to a simulated process."""

from collections.abc import Callable
from typing import Any

from greenlet import greenlet

from tests.simulation import scheduler
from tests.simulation.locks import Event
from tests.simulation.scheduler import Process


def spawn(process: Process, work: Callable[[], None], name: str) -> None:
    """Start a thread of a process from outside it."""
    Thread(target=work, name=name).begin(process)


class Thread:
    """As `threading.Thread`."""

    def __init__(
        self,
        group: None = None,
        target: Callable[..., None] | None = None,
        name: str | None = None,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
        *,
        daemon: bool | None = None,
    ) -> None:
        self.name = name or "thread"
        self.daemon = daemon
        self._work = lambda: target and target(*args, **(kwargs or {}))
        self._started, self._ended = Event(), Event()
        self.is_begun = False

    def start(self) -> None:
        self.begin(scheduler.SCHEDULER.own_thread().process)

    def begin(self, process: Process) -> None:
        self.process = process
        self.is_begun = True
        self.greenlet = greenlet(self._run, scheduler.SCHEDULER.hub)
        process.threads[self] = None
        scheduler.SCHEDULER.start(self)
        self._started.set()

    def run(self) -> None:
        self._work()

    def is_alive(self) -> bool:
        return self.is_begun and not self._ended.is_set()

    def join(self, timeout: float | None = None) -> None:
        self._ended.wait(timeout)

    def _run(self, *_: Any) -> None:
        try:
            self.run()
        except BaseException as error:
            if not self.process.is_dead:
                scheduler.SCHEDULER.failure = scheduler.SCHEDULER.failure or error
        finally:
            self.process.threads.pop(self, None)
            if not self.process.is_dead:
                self._ended.set()


class Timer(Thread):
    """As `threading.Timer`."""

    def __init__(self, interval: float, function: Callable[[], None]) -> None:
        super().__init__(target=self._wait, name="timer")
        self._interval = interval
        self._function = function
        self._cancelled = Event()

    def cancel(self) -> None:
        self._cancelled.set()

    def _wait(self) -> None:
        if not self._cancelled.wait(self._interval):
            self._function()
