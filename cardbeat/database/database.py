"""What the rest of the program may ask of a database, and what both engines share.

One thread makes all writes in groups, because a commit costs a sync of the disk. What comes during
a commit is the next group: up to `MOST_PINGS` pings, one of each client in turn, and then up to
`MOST_OTHERS` other writes in their order. So a single client waits for its own commit, and 256
clients share one.

Pings are many and equal, so neighbours with the same work are made by one call. A write that fails
undoes only itself: its group is made again in parts, and its part write by write.
"""

import contextlib
import logging
import queue
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import (
    Callable,
    Collection,
    Iterator,
    Mapping,
    Sequence,
)
from itertools import groupby
from pathlib import Path
from typing import Any, Protocol, TypeVar

from cardbeat.errors import MaybeDone, Unavailable
from cardbeat.host.disk import Reserve
from cardbeat.jobs import FairQueue, Future, has_ended, start_thread
from cardbeat.log import Seldom

log = logging.getLogger(__name__)

READERS = 8
MOST_PINGS = 256
MOST_OTHERS = 16


Row = Any
"""One row of a result: its values in order. `row[n]` and `row["name"]` give one of them."""


class Transaction(Protocol):
    """A connection of an engine's driver, while a write or a read uses it."""

    def execute(
        self, sql: str, values: Sequence[Any] | Mapping[str, Any] = (), /
    ) -> Any:
        """Run one statement, in the SQL that both engines understand; returns the driver's cursor.

        Values are `?` in order or `:name`, never both in one statement. Only one engine takes
        scalar `max` and `min` (use `CASE`), `iif`, `IS NOT ?`, a subquery in FROM without a name,
        and a column of parameters that may all be NULL without a `CAST`.
        """


Item = TypeVar("Item")
T = TypeVar("T")


class Write(Future[T]):
    """One write, settled by the writer's thread when it is on disk or has failed.

    `work` gets the items of several writes and returns a result for each.
    """

    __slots__ = ("is_ping", "item", "work")

    def __init__(
        self,
        work: Callable[[Any, list[Any]], Sequence[T]],
        item: object = None,
        *,
        is_ping: bool = False,
    ) -> None:
        super().__init__()
        self.work = work
        self.item = item
        self.is_ping = is_ping

    def refuse(self, error: BaseException) -> None:
        if self.is_ping and isinstance(error, MaybeDone):
            # A ping may be sent again, whether the first one was stored or not.
            error = Unavailable("database_unavailable")
        self.set_error(error)


Made = list[tuple[Write[Any], Any]]
"""Writes, each with its result."""


class Database(ABC):
    """Many readers, and one writer. Any thread may use it. An engine says how to read and commit.

    An engine calls the constructor last: it starts the writer's thread.
    """

    errors_of_one: tuple[type[Exception], ...] = ()
    """Trouble with the database that concerns one write only."""
    fence: Any = None
    """The `Lease`, where several machines share the database. None for a file."""
    row_lock = ""
    """The end of a SELECT that locks rows. A file has one writer, which locks all of it.

    With it each call of a group is a transaction of its own: two calls in one could lock rows in
    the opposite order to another server's."""

    def __init__(self, folder: Path) -> None:
        self.reserve = Reserve(folder)
        """Whether the disk of the data folder has room for anything new."""
        self.ping_listeners: list[Callable[[list[Any]], None]] = []
        """Called in the writer's thread with the results of pings after their commit."""
        self.call_next: Callable[[Callable[[], None]], object] = _call
        """Calls what wakes the writer for pings. That of a server does so when it has answered all
        that have come: else the first of them has a commit of its own."""
        self.pings_refused = False
        """Set when pings could not be stored because a commit failed. The sweep clears it."""
        self._told = Seldom(log)
        self._idle: queue.LifoQueue[Any] = queue.LifoQueue()
        for _ in range(READERS):
            self._idle.put(None)
        # Used under the condition's lock.
        self._changed = threading.Condition()
        self._pings = FairQueue[Write[Any]]()
        self._others = deque[Write[Any]]()
        self._is_closing = False
        self._thread = threading.Thread(
            target=self._run, name="database-writer", daemon=True
        )
        start_thread(self._thread)

    @contextlib.contextmanager
    def read(self) -> Iterator[Transaction]:
        """A connection that can't write, for a few statements. Do not hold it during network I/O.

        Raises `Unavailable` if the database can't be read.
        """
        connection = self._idle.get()
        try:
            connection = self._reader(connection)
            yield connection
        except Exception as error:
            refusal = self._translated(error)
            if refusal is error:
                raise
            self._log_trouble("read", error)
            raise refusal from error
        finally:
            self._idle.put(connection)

    def write(self, work: Callable[[Transaction], T]) -> T:
        """Run `work` in a transaction and return its result once that is on disk.

        `work` must be quick: other writes share its commit. It may be called again, so it must be
        repeatable. What it raises undoes its own changes only, and is raised here. Raises
        `Unavailable` if the database can't be written or is being closed, `MaybeDone` if it may
        have been written.
        """
        write: Write[T] = Write(lambda connection, _: (work(connection),))
        with self._changed:
            self._require_open()
            self._others.append(write)
            self._changed.notify()
        return write.wait()

    def create(self, work: Callable[[Transaction], T]) -> T:
        """As `write`, for what is new or longer. `Unavailable` also while the disk is low."""
        if self.fence is None:
            # It is stored on the disk of the data folder.
            self.reserve.require()
        return self.write(work)

    def write_ping(
        self,
        work: Callable[[Transaction, list[Item]], Sequence[T]],
        item: Item,
        client: str,
    ) -> Future[T]:
        """As `write`, without waiting. `work` gets the items of many pings that wait for it.

        It returns a result for each item, in their order. If it raises, it is called for each item
        alone. A ping may be sent again, so its result never raises `MaybeDone`, but `Unavailable`.
        """
        write = Write(work, item, is_ping=True)
        with self._changed:
            self._require_open()
            is_first = not self._pings.count
            self._pings.put(client, write)
        if is_first:
            self.call_next(self._wake_writer)
        return write

    @abstractmethod
    def clock(self) -> float:
        """The Unix time, the same for all that have the database open. Never waits."""

    @abstractmethod
    def claim(self) -> None:
        """Call before serving. Raises `StartupError` if another server has the same file."""

    def lock(
        self, transaction: Transaction, sql: str, values: Sequence[Any], /
    ) -> None:
        """Keep others from changing the rows that a SELECT finds, until this transaction has ended.

        The rows are locked in its order. To change several rows of `checks`, lock them by `seq`
        first: then no two transactions wait for each other.
        """
        if self.row_lock:
            transaction.execute(f"{sql} {self.row_lock}", values)

    def lock_free(
        self, transaction: Transaction, sql: str, values: Sequence[Any], /
    ) -> list[Any]:
        """As `lock`, only for rows that are not locked yet; returns the first column of each."""
        if self.row_lock:
            sql = f"{sql} {self.row_lock} SKIP LOCKED"
        return [row[0] for row in transaction.execute(sql, values)]

    def close(self, seconds: float | None = None) -> bool:
        """Make all writes that were taken, then close all connections.

        Returns False, with none closed, if that takes longer than these seconds.
        """
        with self._changed:
            self._is_closing = True
            self._changed.notify()
        if not has_ended(self._thread, seconds):
            return False
        # One that is in use is closed when it is dropped.
        while not self._idle.empty():
            connection = self._idle.get()
            if connection is not None:
                connection.close()
        self._close_writer()
        return True

    @abstractmethod
    def _reader(self, connection: Any) -> Any:
        """A connection that can't write: this one if there is one and it can be used."""

    def _log_trouble(self, deed: str, error: BaseException) -> None:
        # A `MemoryError` has no text.
        found = " ".join(str(error).split()) or "out of memory"
        self._told.error(f"the database can't {deed}: {found}")

    @abstractmethod
    def _translated(self, error: BaseException) -> BaseException:
        """A refusal for trouble with the database; any other error unchanged."""

    @abstractmethod
    def _commit(self, group: list[Write[Any]]) -> Made:
        """Make the writes of a group in one transaction, or raise an error and make none."""

    @abstractmethod
    def _close_writer(self) -> None: ...

    def _wake_writer(self) -> None:
        with self._changed:
            self._changed.notify()

    def _require_open(self) -> None:
        if self._is_closing:
            raise Unavailable("stopping")

    def _run(self) -> None:
        while group := self._next_group():
            for part in by_work(group) if self.row_lock else [group]:
                self._make(part)

    def _make(self, group: list[Write[Any]]) -> None:
        """Make the writes of a group, and settle each."""
        try:
            made = self._commit(group)
        except BaseException as error:
            self._fail(group, error)
            return
        for write, result in made:
            _call(write.set_result, result)
        stored = [result for write, result in made if write.is_ping]
        if stored:
            for listener in self.ping_listeners:
                _call(listener, stored)

    def _fail(
        self, group: list[Write[Any]], error: BaseException
    ) -> None:
        """Settle the writes of a group that could not be made.

        Trouble with the database fails all. Any other error fails one write, so the group is made
        again in smaller ones. Example: with pings p1, p2 and updates a, b, of which b fails, the
        next are (p1, p2), (a) and (b).
        """
        refusal = self._translated(error)
        if refusal is not error and not isinstance(
            error, self.errors_of_one
        ):
            self._log_trouble("write", error)
            self.pings_refused |= any(write.is_ping for write in group)
        elif len(group) > 1:
            parts = by_work(group)
            if len(parts) == 1:
                parts = [[write] for write in group]
            for part in parts:
                self._make(part)
            return
        for write in group:
            _call(write.refuse, refusal)

    def _next_group(self) -> list[Write[Any]]:
        """Wait for writes, and return those of the next group; none at the end."""
        group: list[Write[Any]] = []
        with self._changed:
            self._changed.wait_for(
                lambda: (
                    self._pings.count or self._others or self._is_closing
                )
            )
            while len(group) < MOST_PINGS and (
                taken := self._pings.take()
            ):
                group.append(taken[1])
            most = min(MOST_OTHERS, len(self._others))
            group.extend(self._others.popleft() for _ in range(most))
        return group


def marks(values: Collection[object]) -> str:
    """The `?` of so many values."""
    return ", ".join("?" * len(values))


def lock_checks(
    database: Database, transaction: Transaction, check_ids: Sequence[str]
) -> None:
    """Lock these rows of `checks`, by `seq` as all transactions do."""
    sql = f"SELECT seq FROM checks WHERE id IN ({marks(check_ids)}) ORDER BY seq"
    database.lock(transaction, sql, check_ids)


def numbers(transaction: Transaction) -> dict[str, int]:
    """What the service remembers over a restart, in the table `monitor`: each under its name."""
    return dict(
        transaction.execute("SELECT name, value FROM monitor").fetchall()
    )


def set_numbers(transaction: Transaction, **values: int) -> None:
    """Replace the numbers of these names, inside the caller's transaction."""
    for name, value in values.items():
        transaction.execute(
            "INSERT INTO monitor (name, value) VALUES (?, ?)"
            " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            (name, value),
        )


def _call(callback: Callable[..., object], *values: object) -> None:
    """Call it. The writer's thread must go on if it has a defect."""
    try:
        callback(*values)
    except Exception:
        log.exception("what was written could not be told")


def by_work(group: list[Write[Any]]) -> list[list[Write[Any]]]:
    """The writes of a group that one call can make: neighbours with the same work."""
    return [
        list(neighbours)
        for _, neighbours in groupby(group, lambda write: write.work)
    ]


def make_all(connection: Transaction, group: list[Write[Any]]) -> Made:
    """Make the writes of a group, those with the same work by one call."""
    made: Made = []
    for writes in by_work(group):
        items = [write.item for write in writes]
        results = writes[0].work(connection, items)
        made += zip(writes, results, strict=True)
    return made
