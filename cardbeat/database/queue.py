"""What engines share: writes that one thread makes in groups, and a pool of connections to read with."""

import logging
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from itertools import groupby
from operator import attrgetter
from typing import Any, Final, Generic, Protocol, TypeVar

from cardbeat import threads
from cardbeat.errors import Unavailable
from cardbeat.later import Later, Precedence

log = logging.getLogger(__name__)

RETRY_AFTER_SECONDS: Final = 5
READ_CONNECTIONS: Final = 8
GROUP_SIZE: Final = 500
"""Writes in one commit at the most, and in one call of `work`."""
GROUP_SECONDS: Final = 0.001
"""After so long no other write begins in a group, so that pings wait for few of them; or after as long as committing
took the last time, so that a slow disk has enough in each commit."""


def database_unavailable() -> Unavailable:
    """What a caller is told of trouble that may pass."""
    sentence = "The database can't be used now; try again soon."
    return Unavailable("database_unavailable", sentence, RETRY_AFTER_SECONDS)


class Connection(Protocol):
    """Of an engine's driver, as much of it as is used here."""

    def execute(self, sql: str, /) -> Any: ...

    def close(self) -> None: ...


C = TypeVar("C", bound=Connection)
Item = TypeVar("Item")
T = TypeVar("T")


class Write(Later[T]):
    """One write, settled by the writer's thread once it is on disk or has failed.

    `work` makes those of several items at once, each of them a write like this one, and gives a result for each. It
    waits in `queue`.
    """

    __slots__ = ("came_at", "error", "item", "queue", "value", "work")

    def __init__(self, queue: "deque[Write[Any]]", work: Callable[[Any, list[Item]], Sequence[T]], item: Item) -> None:
        super().__init__()
        self.queue = queue
        self.work = work
        self.item = item
        self.came_at = time.monotonic()
        self.value: T
        self.error: BaseException | None = None

    def tell(self) -> None:
        try:
            self.succeed(self.value) if self.error is None else self.fail(self.error)
        except Exception:
            # A defect of whoever is called back; it must not keep everybody from writing.
            log.exception("what was written could not be told")


class WriteQueue(ABC, Generic[C]):
    """Takes writes from any thread, and has one of its own make them, in groups. An engine says how.

    The thread starts with the constructor, so an engine calls that last.
    """

    def __init__(self) -> None:
        # Read and written by callers and the writer's thread, under this condition's lock only.
        self._queued = threading.Condition()
        self._queue: deque[Write[Any]] = deque()
        self._together: deque[Write[Any]] = deque()
        """Those that are made together: they are quick and many, and go before the others."""
        self._all = (self._together, self._queue)
        self._closing = False
        # Used by the writer's thread alone.
        self._turn: tuple[deque[Write[Any]], ...] = self._all
        """What the next group is taken from. Others have a turn of their own after one that had no time for them."""
        self._commit_seconds = self._made_seconds = 0.0
        self._failed_at: float | None = None
        """Since when no group could be written for trouble that may pass; None while it can."""
        self._ends_group = False
        """Set in a write that is to be the last of its transaction."""
        self.precedence = Precedence()
        self._thread = threading.Thread(target=self._write_queued, name="database-writer", daemon=True)
        threads.start(self._thread)

    def write(self, work: Callable[[C], T]) -> T:
        return self.write_later(work).wait()

    def write_later(self, work: Callable[[C], T]) -> Later[T]:
        return self._put(Write(self._queue, lambda connection, _: (work(connection),), None))

    def write_together(self, work: Callable[[C, list[Item]], Sequence[T]], item: Item) -> Later[T]:
        return self._put(Write(self._together, work, item))

    def _put(self, write: Write[T]) -> Write[T]:
        with self._queued:
            if self._closing:
                raise Unavailable("stopping", "The server is stopping; try again in a moment.", RETRY_AFTER_SECONDS)
            write.queue.append(write)
            self.precedence.has_work = True
            self._queued.notify()
        return write

    @abstractmethod
    def _commit(self, group: list[Write[Any]]) -> None:
        """Make the writes of a group in one transaction by `_make`, and commit it. What this raises fails them all."""

    @abstractmethod
    def _translated(self, error: Exception) -> Exception:
        """What a write that failed tells of it. Raises `error` where the whole transaction has failed with it."""

    @abstractmethod
    def _after_commit(self) -> None:
        """Do what can wait until the writes of a group were told."""

    def _finish(self, seconds: float | None) -> bool:
        """Take no more writes; whether all that were taken are made within these seconds."""
        with self._queued:
            self._closing = True
            self._queued.notify()
        return threads.has_ended(self._thread, seconds)

    def _write_queued(self) -> None:
        while group := self._next_group():
            began, self._made_seconds = time.monotonic(), 0.0
            try:
                self._commit(group)
                self._commit_seconds = time.monotonic() - began - self._made_seconds
                self._tell_of_end()
            except BaseException as error:
                if isinstance(error, Unavailable):
                    self._failed_at = self._failed_at or began
                # Others that fail with all that is in their transaction must not keep the turn.
                self._turn = self._all
                for write in group:
                    write.error = error
            for write in group:
                write.tell()
            try:
                self._after_commit()
            except Exception:
                # It must not keep everybody from writing.
                log.exception("what can wait until writes were told has failed")

    def _tell_of_end(self) -> None:
        if self._failed_at is not None:
            log.warning("the database can be written again; for %d s it could not", time.monotonic() - self._failed_at)
            self._failed_at = None

    def _next_group(self) -> list[Write[Any]]:
        """All that wait, as soon as there are any; none at the end."""
        with self._queued:
            while not self._queue and not self._together and not self._closing:
                self.precedence.has_work = False
                self._queued.wait()
            turn = self._turn if self._queue else self._all
            return [queue.popleft() for queue in turn for _ in range(min(len(queue), GROUP_SIZE))]

    def _make(self, connection: C, group: list[Write[Any]]) -> None:
        """Make writes in the transaction that is open, in their order; neighbours of the same work in one go.

        Those that would take it too long, or come behind one that must be the last, leave the group, for the next one.
        """
        began, made, self._ends_group = time.monotonic(), 0, False
        ends_at = began + max(GROUP_SECONDS, self._commit_seconds)
        for work, neighbours in groupby(group, _work_of):
            if made and (self._ends_group or time.monotonic() > ends_at):
                break
            writes = list(neighbours)
            self._make_together(connection, work, writes)
            made += len(writes)
        self._turn = (self._queue,) if made < len(group) and self._turn is self._all else self._all
        with self._queued:
            for write in reversed(group[made:]):
                write.queue.appendleft(write)
        del group[made:]
        self._made_seconds = time.monotonic() - began

    def _make_together(
        self, connection: C, work: Callable[[C, list[Any]], Sequence[Any]], writes: list[Write[Any]]
    ) -> None:
        """With a savepoint of their own. Where one of several fails, each is made again by itself."""
        self._set_savepoint(connection)
        try:
            values = work(connection, [write.item for write in writes])
            for write, value in zip(writes, values, strict=True):
                write.value = value
        except Exception as error:
            told = self._translated(error)
            self._undo(connection)
            if len(writes) == 1:
                writes[0].error = told
            else:
                for write in writes:
                    self._make_together(connection, work, [write])
        self._release_savepoint(connection)

    def _set_savepoint(self, connection: C) -> None:
        connection.execute("SAVEPOINT job")

    def _undo(self, connection: C) -> None:
        connection.execute("ROLLBACK TO job")

    def _release_savepoint(self, connection: C) -> None:
        connection.execute("RELEASE job")


_work_of = attrgetter("work")


class Readers(Generic[C]):
    """Up to `READ_CONNECTIONS` connections to read with, each with one thread at a time.

    `connect` opens one, and within `errors` the engine's errors are translated. One that is no longer usable makes way
    for another.
    """

    def __init__(
        self,
        connect: Callable[[], C],
        errors: Callable[[], AbstractContextManager[None]],
        is_usable: Callable[[C], bool] = lambda _: True,
    ) -> None:
        self._connect = connect
        self._errors = errors
        self._is_usable = is_usable
        # For any thread that holds one of the slots. These are taken behind the gate, so that nobody begins to read
        # while it is shut.
        self._gate = threading.Lock()
        self._slots = threading.BoundedSemaphore(READ_CONNECTIONS)
        self._idle: deque[C] = deque()
        self._is_closed = False

    @contextmanager
    def read(self) -> Iterator[C]:
        with self._gate:
            self._slots.acquire()
        try:
            with self._errors():
                connection = self._take()
                try:
                    yield connection
                finally:
                    self._idle.append(connection)
                    if self._is_closed:
                        self.close()
        finally:
            self._slots.release()

    def _take(self) -> C:
        with suppress(IndexError):
            while True:
                connection = self._idle.pop()
                if self._is_usable(connection):
                    return connection
                connection.close()
        return self._connect()

    @contextmanager
    def kept_out(self, seconds: float) -> Iterator[None]:
        """Let nobody begin to read; wait for those who do, but no longer than this."""
        ends_at, taken = time.monotonic() + seconds, 0
        with self._gate:
            try:
                while taken < READ_CONNECTIONS and self._slots.acquire(timeout=max(0, ends_at - time.monotonic())):
                    taken += 1
                yield
            finally:
                if taken:
                    self._slots.release(taken)

    def close(self) -> None:
        """Close the connections that nobody reads from. One that is in use is closed by its thread."""
        self._is_closed = True
        with suppress(IndexError):
            while True:
                self._idle.pop().close()
