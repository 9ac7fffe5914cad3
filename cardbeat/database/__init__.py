"""The database, as all others see it: what they may ask of it, and how it is opened. It knows no table.

An engine answers to the protocols below and keeps to itself what is its own: its driver, its files, its errors, and
the schema in `cardbeat/schema`.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

from cardbeat.database.sqlite import SqliteDatabase
from cardbeat.disk import Reserve
from cardbeat.errors import StartupError
from cardbeat.later import Later, Precedence
from cardbeat.stopping import RequireGoing

Item = TypeVar("Item")
T = TypeVar("T")

OLDEST_DRIVER: Final = (3, 2, 11)
"""Of psycopg. With the compiled part of older ones no time limit holds: they keep control while they wait."""


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
    """What one process at a time holds, of all that have the database open, so as to be the one that sends alerts."""

    def take(self) -> bool:
        """Whether this process holds it now: taken where it is free, renewed where it is its own.

        To be called every second. False also once where another process has held it meanwhile, so that nothing that was
        known before holds any more. Raises `Unavailable` where that can't be found out.
        """

    def held(self) -> bool:
        """Whether this process may act as its holder at this moment, as far as that is known without asking."""

    def release(self) -> None:
        """Let another process take it at once. This one can't any more."""


class Fence(Protocol):
    """Keeps apart those who would sweep over one database on several machines, by the lease that one of them holds."""

    @property
    def gap_seconds(self) -> float:
        """How long it takes at most until another process has the lease after its holder was killed."""

    @property
    def epoch(self) -> int:
        """Another number whenever another process has held the lease: of one process, so of one monotonic clock."""

    def held(self) -> bool:
        """As `Lease.held`."""

    def confirm(self, transaction: Transaction) -> None:
        """Keep others from taking the lease until the end of a transaction. Raises `LeaseLost` where one has it."""


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

    def clock(self) -> float:
        """Unix time as all know it who have the database open. Never waits."""

    def server(self) -> str:
        """Another text once another server has the database, or the same one was started again. Raises `Unavailable`.

        The other may lack what was written last. Where there is no server, the text is always the same.
        """

    @property
    def fence(self) -> Fence | None:
        """What lets one process at a time sweep.

        None where all who have the database open run on one machine: they share its clocks and write one after another,
        so each of them may.
        """

    def lease(self) -> Lease:
        """Not taken yet. Raises `StartupError` where none can be."""

    def hold(self, transaction: Transaction, name: str, /) -> None:
        """Keep all other transactions that ask for the same name waiting from here until this one's end.

        Rows of a table that are inserted behind it have numbers in the order of their commits.
        """

    def lock(self, transaction: Transaction, sql: str, values: Sequence[Any], /) -> None:
        """Keep others from changing the rows that a SELECT finds, from here until the end of this transaction.

        They are locked in its order. Who is to change several rows of `checks` locks them by `seq` first: so no two
        transactions wait for each other.
        """

    def lock_free(self, transaction: Transaction, sql: str, values: Sequence[Any], /) -> list[Any]:
        """As `lock`, of those rows that nobody else has locked; the first column of each. It waits for none."""

    def close(self, seconds: float | None = None) -> bool:
        """Finish what is queued, then close every connection, if that is not done yet.

        False, with none closed, where that takes longer.
        """


def open_database(folder: Path, url: str | None = None, *, stores_cards: bool = True) -> Database:
    """The database of a data folder, made if it is missing; or with a URL the PostgreSQL database that it names.

    With a URL the folder is made too, unless no cards are to be stored in it: then it need not be usable either.
    Raises `StartupError` for a folder or file that can't be used: unwritable, damaged, someone else's, or made by a
    newer version. A file that exists is never replaced. Likewise for a server that can't be reached or used.
    """
    return SqliteDatabase(folder) if url is None else _postgresql(folder, url, stores_cards=stores_cards)


def open_to_look(url: str) -> AbstractContextManager[Transaction]:
    """A connection that can't write, to a PostgreSQL database as it is: of any schema, or of none yet.

    Raises `StartupError` where it can't be reached, also for a statement that fails.
    """
    _require_driver()
    from cardbeat.database.postgresql import looking  # noqa: PLC0415

    return looking(url)


def back_up_server(url: str, folder: Path, target: Path, require_going: RequireGoing) -> None:
    """Copy a PostgreSQL database to a SQLite file, as of one moment, as `sqlite_backup.back_up` copies a file.

    `folder` is that of the stored cards.
    """
    _require_driver()
    from cardbeat.database.postgresql_backup import back_up  # noqa: PLC0415

    back_up(url, folder, target, require_going)


def restore_server(url: str, folder: Path, source: Path, require_going: RequireGoing) -> tuple[str, int, int, int]:
    """Bring a backup into an empty PostgreSQL database.

    Gives its URL without secrets, how many keys and checks it has, and when these were last served, in Unix seconds; 0
    if never. Raises `StartupError`, with nothing changed, where that can't be done. `folder` is that of the cards.
    """
    _require_driver()
    from cardbeat.database.postgresql_backup import restore  # noqa: PLC0415

    return restore(url, folder, source, require_going)


def _postgresql(folder: Path, url: str, *, stores_cards: bool) -> Database:
    _require_driver()
    from cardbeat.database.postgresql import PostgresqlDatabase  # noqa: PLC0415

    return PostgresqlDatabase(folder, url, stores_cards=stores_cards)


def _require_driver() -> None:
    oldest = ".".join(map(str, OLDEST_DRIVER))
    how = f"run: pip install 'psycopg[binary]>={oldest}'"
    try:
        import psycopg  # noqa: PLC0415 - only for those who ask for it
    except ImportError:
        raise StartupError(f"PostgreSQL needs psycopg {oldest} or newer; {how}") from None
    if _is_too_old(psycopg.__version__):
        raise StartupError(f"psycopg {psycopg.__version__} is too old, {oldest} or newer is needed; {how}")


def _is_too_old(version: str) -> bool:
    """Whether a version of psycopg is, by its leading numbers: "3.2.11.dev1" is taken for 3.2.11."""
    numbers = re.match(r"\d+(\.\d+)*", version)
    found = tuple(map(int, numbers[0].split("."))) if numbers else ()
    # A copy without the metadata of its package says 0.0.0.0.
    return any(found) and found < OLDEST_DRIVER
