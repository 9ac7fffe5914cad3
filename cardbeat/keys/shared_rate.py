"""Limits of a rate per minute that all servers over one database keep together.

They pass what the limits of the module `rate` pass, counted in rows. Where the database can't be written, nothing does.
"""

import threading
import time
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from math import inf
from operator import attrgetter
from typing import Final, NamedTuple

from cardbeat.clock import Clock
from cardbeat.database import Database, Transaction
from cardbeat.keys.rate import MAX_NAMES, CountedLimit, Limit, RateLimit, StrictRateLimit, settled, used_of_burst
from cardbeat.later import Later

MOST_AT_ONCE: Final = 20
"""Takes in one write at the most: bounds how long a ping waits behind it."""
APART_SECONDS: Final = 1.0
"""Up to here servers differ in what time it is. A time that is further off is from before the clock was set back."""
ROUNDING_SECONDS: Final = 0.001
"""More than the rounding of Unix times adds up to over a burst."""

TakeOne = Callable[[Transaction, str, int, float], float]
"""Takes one, of a name with a rate per minute at a Unix time, and returns as `RateLimit.take`."""


class Limits(NamedTuple):
    """Of renders by key and of registrations by address; `forget_old` drops what counts no more, once a minute."""

    renders: CountedLimit
    registrations: Limit
    forget_old: Callable[[], object] = lambda: None


def limits_for(database: Database, clock: Clock) -> Limits:
    """In memory for each process, or kept together where the processes are on several machines."""
    if database.fence is None:
        return Limits(RateLimit(), StrictRateLimit())
    takes = Takes(database, clock)
    return Limits(SharedRateLimit(takes), SharedStrictRateLimit(takes), takes.forget_old)


class Take(Later[float]):
    """One that is asked for: 0 once it is taken, else the seconds until there is one left."""

    __slots__ = ("name", "per_minute", "take_one")

    def __init__(self, name: str, per_minute: int, take_one: TakeOne) -> None:
        super().__init__()
        self.name = name
        self.per_minute = per_minute
        self.take_one = take_one


class Takes:
    """Writes what is taken of all limits: at most one write of theirs waits at a time, with all that came meanwhile.

    Each takes its rows in the order of their names, so that no two servers wait for each other.
    """

    def __init__(self, database: Database, clock: Clock) -> None:
        self.database = database
        self.clock = clock
        self._lock = threading.Lock()
        # Both are read and written under the lock only.
        self._waiting: list[Take] = []
        self._is_writing = False

    def put(self, take: Take) -> None:
        with self._lock:
            self._waiting.append(take)
            if self._is_writing:
                return
            self._is_writing = True
        self._write()

    def _write(self) -> None:
        with self._lock:
            takes, self._waiting = self._waiting[:MOST_AT_ONCE], self._waiting[MOST_AT_ONCE:]
            self._is_writing = bool(takes)
        if takes:
            takes.sort(key=attrgetter("name"))
            written: Later[list[float]] = Later()
            written.then(partial(self._tell, takes))
            try:
                written.follow(self.database.write_later(partial(self._take_all, takes)))
            except Exception as error:
                written.fail(error)

    def _take_all(self, takes: list[Take], transaction: Transaction) -> list[float]:
        now = self.clock()
        return [take.take_one(transaction, take.name, take.per_minute, now) for take in takes]

    def _tell(self, takes: list[Take], written: Later[list[float]]) -> None:
        for place, take in enumerate(takes):
            take.settle(lambda place=place: written.result()[place])  # type: ignore[misc]
        self._write()

    def forget_old(self) -> None:
        """Remove the rows that count no more. Raises `Unavailable`."""
        now = self.clock()
        with self.database.read() as connection:
            found = [connection.execute(f"SELECT 1 {old} LIMIT 1", _past(now)).fetchone() for old in _OLD]
        if any(found):
            self.database.write(partial(self._forget, now))

    def _forget(self, now: float, transaction: Transaction) -> None:
        # Two servers that removed the same rows in different orders would wait for each other.
        self.database.hold(transaction, "old takes")
        for old in _OLD:
            transaction.execute(f"DELETE {old}", _past(now))


_OLD = (
    "FROM rates WHERE whole_again_at < ? OR whole_again_at > ?",
    "FROM registrations WHERE taken_at < ? OR taken_at > ?",
)


def _past(now: float) -> tuple[float, float]:
    """What is before the first and after the second of these times counts no more."""
    return now - 60 - APART_SECONDS, now + 60 + APART_SECONDS


class Refused:
    """Until when names are refused, so that who goes on asking costs no write. It knows `MAX_NAMES` at the most."""

    def __init__(self, monotonic: Clock = time.monotonic) -> None:
        self._monotonic = monotonic
        self._lock = threading.Lock()
        # Any thread may ask: read and written under the lock only.
        self._until: OrderedDict[tuple[str, int], float] = OrderedDict()

    def seconds_left(self, name: str, per_minute: int) -> float:
        with self._lock:
            return max(0, self._until.get((name, per_minute), -inf) - self._monotonic())

    def note(self, take: Take) -> None:
        """Remember what came of a take, if that is a refusal."""
        try:
            seconds = take.result()
        except Exception:
            return
        if seconds:
            self._put((take.name, take.per_minute), seconds)

    def _put(self, name: tuple[str, int], seconds: float) -> None:
        with self._lock:
            self._until[name] = self._monotonic() + seconds
            self._until.move_to_end(name)
            if len(self._until) > MAX_NAMES:
                self._until.popitem(last=False)


class SharedLimit(ABC):
    """What both have in common."""

    def __init__(self, takes: Takes, monotonic: Clock = time.monotonic) -> None:
        self._takes = takes
        self._refused = Refused(monotonic)

    def take_later(self, name: str, per_minute: int) -> Later[float]:
        """As `RateLimit.take_later`, settled once it is on disk. The result raises `Unavailable` where that fails."""
        if left := self._refused.seconds_left(name, per_minute):
            return settled(left)
        take = Take(name, per_minute, self._take)
        take.then(lambda _: self._refused.note(take))
        self._takes.put(take)
        return take

    @abstractmethod
    def _take(self, transaction: Transaction, name: str, per_minute: int, now: float) -> float:
        """As `TakeOne`."""


class SharedRateLimit(SharedLimit):
    """As `RateLimit`."""

    def used(self, name: str, per_minute: int) -> int:
        """As `RateLimit.used`. Raises `Unavailable`."""
        with self._takes.database.read() as connection:
            row = connection.execute("SELECT whole_again_at FROM rates WHERE name = ?", (name,)).fetchone()
        left = row["whole_again_at"] - self._takes.clock() - ROUNDING_SECONDS if row else 0
        return used_of_burst(left if 0 < left <= 60 + APART_SECONDS else 0, per_minute)

    def _take(self, transaction: Transaction, name: str, per_minute: int, now: float) -> float:
        interval = 60 / per_minute
        values = {"name": name, "now": now, "interval": interval, "latest": now + 60 + APART_SECONDS}
        taken = transaction.execute(
            "INSERT INTO rates (name, whole_again_at) VALUES (:name, :now + :interval) ON CONFLICT (name) DO UPDATE"
            " SET whole_again_at = :interval"
            " + CASE WHEN rates.whole_again_at BETWEEN :now AND :latest THEN rates.whole_again_at ELSE :now END"
            " WHERE rates.whole_again_at <= :last OR rates.whole_again_at > :latest",
            {**values, "last": now + 60 - interval + ROUNDING_SECONDS},
        ).rowcount
        if taken:
            return 0
        (whole_again_at,) = transaction.execute("SELECT whole_again_at FROM rates WHERE name = ?", (name,)).fetchone()
        return float(whole_again_at) + interval - now - 60


class SharedStrictRateLimit(SharedLimit):
    """As `StrictRateLimit`."""

    def _take(self, transaction: Transaction, name: str, per_minute: int, now: float) -> float:
        self._takes.database.hold(transaction, f"registrations {name}")
        taken, first_at = transaction.execute(
            "SELECT count(*), min(taken_at) FROM registrations WHERE network = ? AND taken_at > ? AND taken_at <= ?",
            (name, now - 60, now + APART_SECONDS),
        ).fetchone()
        if taken >= per_minute:
            return float(first_at) + 60 - now
        transaction.execute("INSERT INTO registrations (network, taken_at) VALUES (?, ?)", (name, now))
        return 0
