"""Work for other threads: a future, a fair queue, threads that do jobs, a thread that repeats.

Begin with `FairQueue`. `Workers` do the jobs of such a queue in a few threads, which may block.
"""

import logging
import threading
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from math import inf
from typing import Generic, TypeVar

from cardbeat.clock import Clock
from cardbeat.errors import Refusal, StartupError

log = logging.getLogger(__name__)

T = TypeVar("T")
Job = Callable[[], object]


class Future(Generic[T]):
    """A result or an error, set once by any thread.

    A callback runs in the thread that sets it, or at once if it is set already. It must be quick
    and raise nothing.

    `concurrent.futures.Future` makes a condition, a lock and a list for each. On the way of a ping
    it costs 11 to 16 µs more, which is 12 to 27 % of the pings a second.
    """

    __slots__ = ("_callbacks", "_error", "_result", "is_done")

    def __init__(self) -> None:
        # Appending and popping are atomic, so of two threads one calls each callback.
        self._callbacks: list[Job] = []
        self._result: T
        self._error: BaseException | None = None
        self.is_done = False

    def set_result(self, result: T) -> None:
        self._result = result
        self._settle()

    def set_error(self, error: BaseException) -> None:
        self._error = error
        self._settle()

    def result(self) -> T:
        """Return the result, or raise the error. Call it only when `is_done`."""
        if self._error is not None:
            raise self._error
        return self._result

    def wait(self) -> T:
        """Wait without a limit, then return the result or raise the error."""
        done = threading.Lock()
        done.acquire()
        self.when_done(done.release)
        done.acquire()
        return self.result()

    def when_done(self, callback: Job) -> None:
        self._callbacks.append(callback)
        # Looked at after the append: `_settle` sets it before it takes what is there.
        if self.is_done:
            self._call()

    def _settle(self) -> None:
        self.is_done = True
        self._call()

    def _call(self) -> None:
        while self._callbacks:
            try:
                callback = self._callbacks.pop()
            except IndexError:
                return
            callback()


class FairQueue(Generic[T]):
    """Items wait by client, and one of each client is taken in turn.

    Example: client a puts a1, a2, a3, and then client b puts b1. They are taken in the order
    a1, b1, a2, a3: b waits for one item of a, however many a has put. So it is among the items of
    one client that have different keys.

    With a limit `running_each` of 2, a third item of a client is not taken until `done` was called
    for one of the first two. Others go first.

    Not thread-safe: the owner holds a lock.
    """

    def __init__(self, running_each: float = inf) -> None:
        self._running_each = running_each
        self._waiting: OrderedDict[str, dict[str, deque[T]]] = (
            OrderedDict()
        )
        """By client, then by key. In both the one that is next stands first."""
        self._running = Counter[str]()
        self.count = 0
        """The number of items that wait."""

    def put(self, client: str, item: T, key: str = "") -> None:
        keys = self._waiting.setdefault(client, {})
        keys.setdefault(key, deque()).append(item)
        self.count += 1

    def take(self) -> tuple[str, T] | None:
        """Remove and return the next item and its client, None if none may run now.

        `done` must follow if there is a limit of running items.
        """
        for client, keys in self._waiting.items():
            if self._running[client] < self._running_each:
                return client, self._take_of(client, keys)
        return None

    def done(self, client: str) -> None:
        """Note that an item of this client has ended."""
        self._running[client] -= 1
        if not self._running[client]:
            del self._running[client]

    def _take_of(self, client: str, keys: dict[str, deque[T]]) -> T:
        key = next(iter(keys))
        items = keys.pop(key)
        item = items.popleft()
        if items:
            keys[key] = items
        self._waiting.move_to_end(client)
        if not keys:
            del self._waiting[client]
        if self._running_each != inf:
            self._running[client] += 1
        self.count -= 1
        return item


class Workers:
    """Some threads, and a fair queue of jobs by client.

    Of one client at most `running_each` jobs run at once, so that the other threads stay free.
    The threads are daemons: a job that hangs does not keep the program from ending.
    """

    def __init__(
        self, name: str, threads: int, running_each: int
    ) -> None:
        """Start the threads. Raises `StartupError` where the system grants none."""
        # All below is read and written under this condition's lock only.
        self._changed = threading.Condition(threading.Lock())
        self._queue: FairQueue[Job] = FairQueue(running_each)
        self._is_stopping = False
        for _ in range(threads):
            start_thread(
                threading.Thread(
                    target=self._work, name=name, daemon=True
                )
            )

    def submit(self, client: str, job: Job, key: str = "") -> None:
        """Have a job done for a client. Its jobs are served round robin by key."""
        with self._changed:
            self._queue.put(client, job, key)
            self._changed.notify()

    def stop(self) -> None:
        """Let each thread end when all jobs are done."""
        with self._changed:
            self._is_stopping = True
            self._changed.notify_all()

    def _work(self) -> None:
        while (taken := self._next()) is not None:
            client, job = taken
            try:
                job()
            except Exception:
                log.exception("a job failed")
            # Freed before the wait for the next job: it may hold a large answer.
            del taken, job
            with self._changed:
                self._queue.done(client)
                self._changed.notify()

    def _next(self) -> tuple[str, Job] | None:
        """Wait for the next job; None at the end."""
        with self._changed:
            while (taken := self._queue.take()) is None:
                if self._is_stopping and not self._queue.count:
                    self._changed.notify_all()
                    return None
                self._changed.wait()
            return taken


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
        at_end: Job = lambda: None,
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
        if seconds is None:
            return None
        return max(0, began + seconds - self._monotonic())


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
