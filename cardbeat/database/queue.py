"""What both engines share: one thread that makes writes in groups, and a pool of connections to read with.

Many callers wait for one commit, because a commit costs a sync of the disk. Within it each write has a savepoint, so
that one that fails undoes only itself. Writes that are many and equal, such as pings, are made many in one call of
`work`, one of each network in turn. The others are single. Those of clients have their turns by key and network, and
every second turn is for the service's own, such as the renewal of a lease: a client with hundreds of writes keeps
nobody waiting.
"""

import logging
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from itertools import groupby
from operator import attrgetter
from typing import Any, ClassVar, Final, Generic, Protocol, TypeVar

from cardbeat.concurrency import threads
from cardbeat.concurrency.fair_queue import FairQueue
from cardbeat.concurrency.later import Later, Precedence, served
from cardbeat.concurrency.turns import Turns
from cardbeat.errors import Unavailable

log = logging.getLogger(__name__)

READ_CONNECTIONS: Final = 8
CALL_SECONDS: Final = 0.004
"""How long a call of `work` should take, for which all others wait."""
WAITING_OF_NETWORK: Final = 200
"""Most single writes of a network's clients that wait: each keeps its connection."""
SLOW_COMMIT_SECONDS: Final = 0.01
GROUP_SECONDS: Final = 0.001
"""A group takes writes for this time from its begin, or for the duration of the last commit if that was longer: pings
wait for few other writes, and a slow disk gets enough in each commit."""


class EngineConnection(Protocol):
    """The methods of an engine's connection that are used here."""

    def execute(self, sql: str, /) -> Any: ...

    def close(self) -> None: ...


C = TypeVar("C", bound=EngineConnection)
Item = TypeVar("Item")
T = TypeVar("T")


class Write(Later[T]):
    """One write, settled by the writer's thread when it is on disk or has failed.

    `work` gets the items of several writes and returns a result for each. Single ones have no item.
    """

    __slots__ = ("came_at", "error", "item", "stores", "value", "work")

    def __init__(self, work: Callable[[Any, list[Item]], Sequence[T]], item: Item, *, stores: bool = True) -> None:
        super().__init__()
        self.work = work
        self.item = item
        self.stores = stores
        self.came_at = time.monotonic()
        self.value: T
        self.error: BaseException | None = None

    def tell(self) -> None:
        try:
            self.succeed(self.value) if self.error is None else self.fail(self.error)
        except Exception:
            # A callback has a defect. The writer's thread must go on.
            log.exception("what was written could not be told")


class WriteQueue(ABC, Generic[C]):
    """Takes writes from any thread, and makes them in a thread of its own, in groups. An engine says how.

    The constructor starts the thread, so an engine calls it last. `read` lends one of the `readers`.
    """

    MOST_SINGLE: ClassVar[int] = 500
    """Most single writes in one transaction. If it is 1, the transaction has no others."""
    AT_ONCE: ClassVar[tuple[int, int]] = 16, 64
    """Most writes in one call of `work`: between these, as many as took `CALL_SECONDS` the last time. Plain pings take
    1 ms for 64, pings that each store an alert 20 ms."""
    TOGETHER_SECONDS: ClassVar[float] = 0.005
    """The longest time for which a group takes more writes of `write_together`: enough for hundreds of quick ones.
    Longer where commits are slow, by as much as they take longer than `SLOW_COMMIT_SECONDS`."""

    def __init__(self, readers: "Readers[C]") -> None:
        self._readers = readers
        # Callers and the writer's thread use these under the condition's lock only.
        self._queued = threading.Condition()
        self._together = Turns[Write[Any]]()
        """Writes of `write_together`: they are many and quick, and go before the single ones."""
        self._own: deque[Write[Any]] = deque()
        self._clients: FairQueue[Write[Any]] = FairQueue(sys.maxsize)
        self._of_network = Counter[str]()
        """Single writes: the service's own, and those of requests, whose number is counted by network."""
        self._closing = False
        # Only the writer's thread uses these.
        self._was_own = self._only_single = False
        """Whether the last single write was the service's own, and whether the next group has single ones alone: after
        one that had no time for any, though some waited."""
        self._single = 0
        """The single writes that waited at the begin of this group, as far as it may have more of them."""
        self._at_once = max(self.AT_ONCE)
        self._commit_seconds = self._made_seconds = 0.0
        self.heard: Callable[[bool], None] = lambda _: None
        self._failed_at: float | None = None
        """Since when no group could be written, None while it works."""
        self.precedence = Precedence()
        self._thread = threading.Thread(target=self._write_queued, name="database-writer", daemon=True)
        threads.start(self._thread)

    def read(self) -> AbstractContextManager[C]:
        return self._readers.read()

    def write(self, work: Callable[[C], T]) -> T:
        return self.write_later(work).wait()

    def write_later(self, work: Callable[[C], T]) -> Later[T]:
        return self._put(Write(lambda connection, _: (work(connection),), None), self._add_single)

    def write_together(
        self, work: Callable[[C, list[Item]], Sequence[T]], item: Item, network: str = "", *, stores: bool = True
    ) -> Later[T]:
        return self._put(Write(work, item, stores=stores), lambda write: self._together.add(write, network))

    def _put(self, write: Write[T], add: Callable[[Write[T]], object]) -> Write[T]:
        with self._queued:
            if self._closing:
                raise Unavailable("stopping")
            add(write)
            self.precedence.has_work = True
            self._queued.notify()
        return write

    def _add_single(self, write: Write[Any]) -> None:
        if not (payers := served.get()):
            self._own.append(write)
        elif self._of_network[payers[-1]] < WAITING_OF_NETWORK:
            self._of_network[payers[-1]] += 1
            self._clients.put(" ".join(payers), write, payers)
        else:
            raise Unavailable("busy", retry_after_seconds=1)

    @abstractmethod
    def _commit(self, group: list[Write[Any]]) -> bool:
        """Make the writes of a group by `_make` in one transaction, and commit it. An error fails all of them.

        False if they changed nothing: such a transaction is committed also on a disk that can't be written.
        """

    @abstractmethod
    def _translated(self, error: Exception) -> Exception:
        """The error that the caller of a failed write gets. Raises `error` if the whole transaction has failed."""

    def _after_commit(self) -> None:
        """Do what can wait until the callers of a group were told."""

    def _finish(self, seconds: float | None) -> bool:
        """Take no more writes. Returns whether all that were taken are made within these seconds."""
        with self._queued:
            self._closing = True
            self._queued.notify()
        return threads.has_ended(self._thread, seconds)

    def _write_queued(self) -> None:
        while group := self._next_group():
            began, self._made_seconds = time.monotonic(), 0.0
            try:
                has_changed = self._commit(group)
                self._commit_seconds = time.monotonic() - began - self._made_seconds
                if has_changed and self._failed_at is not None:
                    seconds = time.monotonic() - self._failed_at
                    log.warning("the database can be written again; for %d s it could not", seconds)
                    self._failed_at = None
            except BaseException as error:
                if isinstance(error, Unavailable):
                    self._failed_at = self._failed_at or began
                # The failure may be that of single writes, which then must not have the next group for themselves.
                self._only_single = False
                for write in group:
                    write.error = error
            for write in group:
                write.tell()
            try:
                self._hear([write for write in group if write.item is not None and write.stores])
                self._after_commit()
            except Exception:
                # The writer's thread must go on.
                log.exception("what can wait until writes were told has failed")

    def _hear(self, together: list[Write[Any]]) -> None:
        # Without an error and a result it was of nothing that there is.
        is_stored = any(write.error is None and write.value is not None for write in together)
        if is_stored or any(write.error is not None for write in together):
            self.heard(is_stored)

    def _next_group(self) -> list[Write[Any]]:
        """Wait for writes and return those of the next group; none after `_finish`."""
        with self._queued:
            while not self._together.waiting and not self._own and not self._clients.waiting and not self._closing:
                self.precedence.has_work = False
                self._queued.wait()
            self._single = min(len(self._own) + self._clients.waiting, self.MOST_SINGLE)
            if self._together.waiting and not (self._only_single and self._single):
                self._only_single = self._single > 0
                if self.MOST_SINGLE == 1:
                    self._single = 0
                return self._take_together()
            return [self._take_single()] if self._single else []

    def _take_together(self) -> list[Write[Any]]:
        taken: list[Write[Any]] = []
        with self._queued:
            while self._together.waiting and len(taken) < self._at_once:
                taken.append(self._together.take())
        return taken

    def _take_single(self) -> Write[Any]:
        """The next single write: the service's and the clients' in turn, because of either some may always wait."""
        self._single, self._only_single = self._single - 1, False
        taken = self._clients.take() if self._was_own or not self._own else None
        self._was_own = taken is None
        if taken is None:
            return self._own.popleft()
        name, write = taken
        self._clients.done(name)
        network = name.rpartition(" ")[2]
        self._of_network[network] -= 1
        if not self._of_network[network]:
            del self._of_network[network]
        return write

    def _make(self, connection: C, group: list[Write[Any]]) -> None:
        """Make writes in the open transaction, in their order, neighbours with the same `work` in one call.

        While there is time, others that wait are added. A transaction that is made again has them from its begin.
        """
        began = time.monotonic()
        seconds = max(GROUP_SECONDS, self._commit_seconds)
        together_until = began + min(
            seconds, self.TOGETHER_SECONDS * max(1, self._commit_seconds / SLOW_COMMIT_SECONDS)
        )
        writes = group[:]
        while writes:
            called, most = time.monotonic(), self._at_once
            for work, neighbours in groupby(writes, attrgetter("work")):
                self._make_together(connection, work, list(neighbours))
            now = time.monotonic()
            is_full = len(writes) == most
            if is_full:
                least, highest = self.AT_ONCE
                self._at_once = sorted((least, int(most * CALL_SECONDS / max(now - called, 1e-6)), highest))[1]
            # If they were fewer, no other waited. Those that have come since would put their commit off.
            writes = self._take_together() if is_full and now < together_until else []
            group += writes
        while self._single and time.monotonic() <= began + seconds:
            with self._queued:
                group.append(self._take_single())
            self._make_together(connection, group[-1].work, group[-1:])
        self._made_seconds = time.monotonic() - began

    def _make_together(
        self, connection: C, work: Callable[[C, list[Any]], Sequence[Any]], writes: list[Write[Any]]
    ) -> None:
        """Make writes within one savepoint. If one of several fails, each is made again within its own."""
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


class Readers(Generic[C]):
    """Up to `READ_CONNECTIONS` connections to read with, each used by one thread at a time.

    `connect` opens one. `errors` translates the engine's errors. One that is not usable any more is replaced.
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
        # Only the holder of a slot takes from `_idle` or adds to it.
        self._slots = threading.BoundedSemaphore(READ_CONNECTIONS)
        self._idle: deque[C] = deque()
        self._used: set[C] = set()
        self._is_closed = False

    @contextmanager
    def read(self) -> Iterator[C]:
        with self._slots, self._errors():
            connection = self._take()
            self._used.add(connection)
            try:
                yield connection
            finally:
                self._used.remove(connection)
                self._idle.append(connection)
                if self._is_closed:
                    self.close()

    def require_one(self) -> None:
        """Open a connection if there is none. Raises as `connect` does."""
        if not self._used and self._slots.acquire(blocking=False):
            try:
                self._idle.append(self._take())
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

    def close(self) -> None:
        """Close the idle connections. One in use is closed by its thread."""
        self._is_closed = True
        self.drop_idle()

    def drop_idle(self) -> None:
        with suppress(IndexError):
            while True:
                self._idle.pop().close()
