"""The protocols of the database: what the rest of the program may ask of it. Both engines implement them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

from cardbeat.concurrency.later import Later, Precedence
from cardbeat.host.disk import Reserve

Item = TypeVar("Item")
T = TypeVar("T")


class Row(Protocol):
    """One row of a result: its values in order. `row[n]` and `row["name"]` give one of them."""

    def __getitem__(self, column: Any, /) -> Any: ...
    def __iter__(self) -> Iterator[Any]: ...
    def keys(self) -> list[str]: ...


class Cursor(Protocol):
    """The rows that a statement found. Read them before the next statement."""

    @property
    def rowcount(self) -> int:
        """How many rows the statement changed."""

    def fetchone(self) -> Any:
        """The next `Row`, None after the last."""

    def fetchall(self) -> list[Any]:
        """All remaining rows."""

    def __iter__(self) -> Iterator[Any]: ...


class Transaction(Protocol):
    """A connection of an engine's driver, while a write or a read uses it."""

    def execute(self, sql: str, values: Sequence[Any] | Mapping[str, Any] = (), /) -> Cursor:
        """Run one statement, in the SQL that both engines understand.

        Values are `?` in order or `:name`, never both in one statement. Only one engine takes scalar `max` and `min`
        (use `CASE`), `iif`, `IS NOT ?`, a subquery in FROM without a name, and a column of parameters that may all be
        NULL without a `CAST`. `INDEXED BY` may follow a table: for PostgreSQL it is left out.
        """


class Lease(Protocol):
    """Held by one process at a time, of all that have the database open: the holder sends the alerts."""

    def take(self) -> bool:
        """Take the lease if it is free, renew it if this process holds it, and return whether it does now.

        Call it once a second. It also returns False once after another process has held the lease, so that the caller
        forgets what it knew before. Raises `Unavailable` if the database does not tell.
        """

    def held(self) -> bool:
        """Whether this process holds the lease, without asking the database."""

    def release(self) -> None:
        """Free the lease for other processes. This one can't take it again."""


class Fence(Lease, Protocol):
    """Keeps several machines with one database from sweeping at the same time: only the holder of the lease may."""

    gap_seconds: float
    """The longest time without a holder after the last one was killed."""

    @property
    def epoch(self) -> int:
        """A number that no other holder ever has, so that it belongs to one monotonic clock; 0 without the lease."""

    def confirm(self, transaction: Transaction) -> None:
        """Keep others from taking the lease until the transaction ends. Raises `LeaseLost` if another one has it."""


class Database(Protocol):
    """Many readers, and one writer that commits the writes of many callers together. Any thread may use it."""

    reserve: Reserve
    """Whether the disk of the data folder has room for anything new."""
    precedence: Precedence
    """Lets the writer's thread run before threads that compute."""

    def read(self) -> AbstractContextManager[Transaction]:
        """A connection that can't write, for a few statements. Never hold it while you wait for a network.

        Raises `Unavailable` if the database can't be read.
        """

    def write(self, work: Callable[[Transaction], T]) -> T:
        """Run `work` in a transaction and return its result once that is on disk.

        `work` must be quick, because other writes share its commit. What it raises undoes its own changes only, and is
        raised here. Raises `Unavailable` if the database can't be written, `MaybeDone` if it may have been.
        """

    heard: Callable[[bool], None]
    """Called after each commit that had writes of `write_together` that store: whether any did, or all failed."""

    def write_later(self, work: Callable[[Transaction], T]) -> Later[T]:
        """As `write`, without waiting; for a client (`served`) in its turn. Raises `Unavailable` during a stop."""

    def write_together(
        self,
        work: Callable[[Transaction, list[Item]], Sequence[T]],
        item: Item,
        network: str = "",
        *,
        stores: bool = True,
    ) -> Later[T]:
        """As `write_later`, for requests that are many and equal: `work` gets many items that wait for it.

        One of each `network` in turn, those of one in their order. It returns a result for each item, in their order.
        If it raises, it is called again for each item alone. These writes go before those of `write_later`, which get
        every second commit if there is no time for both.
        """

    def create_later(self, work: Callable[[Transaction], T]) -> Later[T]:
        """As `write_later`, to store something new or longer. Raises `Unavailable` also while the disk is low."""

    def clock(self) -> float:
        """The Unix time, the same for all that have the database open. Never waits."""

    def server(self) -> str:
        """A text that changes when another server has the database, or the server was started or its tables made again.

        The last writes may be lost then. A file has no server, so its text never changes. Raises `Unavailable`.
        """

    @property
    def fence(self) -> Fence | None:
        """The fence of sweeps. None for a file: all its processes share one machine's clocks and write in sequence."""

    def lease(self) -> Lease:
        """The lease, not taken yet. Raises `StartupError` if there can be none."""

    def hold(self, transaction: Transaction, name: str, /) -> None:
        """Let other transactions that ask for this name wait until this one has ended.

        So rows that they insert into a table are numbered in the order of their commits.
        """

    def lock(self, transaction: Transaction, sql: str, values: Sequence[Any], /) -> None:
        """Keep others from changing the rows that a SELECT finds, until this transaction has ended.

        The rows are locked in its order. To change several rows of `checks`, lock them by `seq` first: then no two
        transactions wait for each other.
        """

    def lock_free(self, transaction: Transaction, sql: str, values: Sequence[Any], /) -> list[Any]:
        """As `lock`, only for rows that are not locked yet; returns the first column of each. Does not wait."""

    def close(self, seconds: float | None = None) -> bool:
        """Make all writes that were taken, then close all connections.

        Returns False, with none closed, if that takes longer than these seconds.
        """
