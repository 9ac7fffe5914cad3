"""The database, as all others see it: what they may ask of it, and how it is opened. It knows no table.

An engine answers to the protocols below and keeps to itself what is its own: its driver, its files, its errors, and
the schema in `cardbeat/schema`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol, TypeVar

from cardbeat.database.sqlite import SqliteDatabase
from cardbeat.disk import Reserve
from cardbeat.later import Later, Precedence

Item = TypeVar("Item")
T = TypeVar("T")


class Row(Protocol):
    """One row of a result: its values in order, each also by its place or by its column's name."""

    def __getitem__(self, column: Any, /) -> Any: ...

    def __iter__(self) -> Iterator[Any]: ...

    def keys(self) -> list[str]: ...


class Result(Protocol):
    """What a statement found or did; to be read before the next one."""

    @property
    def rowcount(self) -> int:
        """How many rows it has changed."""

    def fetchone(self) -> Any:
        """The next `Row`, None behind the last."""

    def fetchall(self) -> list[Any]:
        """The rows that are left."""

    def __iter__(self) -> Iterator[Any]: ...


class Transaction(Protocol):
    """A connection of an engine's driver, for the time of a job or of a read."""

    def execute(self, sql: str, values: Sequence[Any] | Mapping[str, Any] = (), /) -> Result:
        """Run one statement, in the SQL that all engines have in common.

        Values stand in it as `?` in order or as `:name`, never both. What looks common and is not: scalar `max` and
        `min` (`CASE` is), `iif`, `IS NOT ?`, a subquery in FROM without a name, and a column of parameters that may all
        be NULL without a `CAST`. `INDEXED BY` may stand behind a table: an engine that counts its rows drops it.
        """


class Lease(Protocol):
    """What one process at a time holds, of all that have the database open; it ends with its process."""

    def take(self) -> bool:
        """Whether this process holds it now. Raises `Unavailable` where that can't be found out."""

    def release(self) -> None:
        """Let another process take it. This one can't any more."""


class Database(Protocol):
    """Many readers, and one writer that makes one commit for all who wait. Any thread may use it."""

    reserve: Reserve
    """Whether the disk of the data folder has room for anything new."""
    precedence: Precedence
    """Of the writer's thread, over those that compute meanwhile."""

    def read(self) -> AbstractContextManager[Transaction]:
        """A connection that can't write, for a few statements; never hold it across the network.

        Raises `Unavailable` when the database can't be read.
        """

    def write(self, work: Callable[[Transaction], T]) -> T:
        """Run `work` in a transaction and return its result once that is on disk.

        `work` must be quick: it shares its commit with whatever else is queued. What it raises undoes its own
        changes only, and is raised here. Raises `Unavailable` when the database can't be written.
        """

    def write_later(self, work: Callable[[Transaction], T]) -> Later[T]:
        """As `write`, without waiting; the writer's thread settles the result. Raises `Unavailable` at a stop."""

    def write_together(self, work: Callable[[Transaction, list[Item]], Sequence[T]], item: Item) -> Later[T]:
        """As `write_later`, for what many ask at once: `work` gets all the items that wait for it.

        These go before what waits there, which has a turn of its own where they leave it no time. `work` gives a result
        for each item, in their order. Where it raises, it is called again for each item alone.
        """

    def create_later(self, work: Callable[[Transaction], T]) -> Later[T]:
        """As `write_later`, for what stores something new. Raises `Unavailable` also while the disk is low."""

    def lease(self, name: str) -> Lease:
        """What processes ask for by this name, not taken yet. Raises `StartupError` where none can be."""

    def close(self, seconds: float | None = None) -> bool:
        """Finish what is queued, then close every connection. False, with none closed, where that takes longer."""


def open_database(folder: Path) -> Database:
    """The database of a data folder, made if it is missing.

    Raises `StartupError` for a folder or file that can't be used: unwritable, damaged, someone else's, or made by a
    newer version. A file that exists is never replaced.
    """
    return SqliteDatabase(folder)
