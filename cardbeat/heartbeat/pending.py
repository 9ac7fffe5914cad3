"""The rows of `alerts` that delivery has still to send, and the moves of their checks, as it reads them."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from operator import attrgetter

from cardbeat.database import Database, Row

PAGE = 1000
"""Rows read at once."""


@dataclass(frozen=True, slots=True)
class Pending:
    """An undelivered alert, as much of it as is kept in memory. `next_attempt_at` is None without a webhook URL."""

    seq: int
    check_seq: int
    key_id: str
    webhook_url: str | None
    attempts: int
    next_attempt_at: int | None
    is_test: bool


@dataclass(frozen=True, slots=True)
class Move:
    """A check's new webhook URL, given to it while it had undelivered alerts."""

    seq: int
    check_seq: int
    webhook_url: str | None


class PendingAlerts:
    """Any thread may use it. Everything raises `Unavailable` when the database can't be read."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def newest_seqs(self) -> tuple[int, int]:
        """The `seq` of the newest alert and of the newest move, each 0 if there is none."""
        with self._database.read() as connection:
            sql = "SELECT coalesce(max(seq), 0) FROM "
            (alert_seq,), (move_seq,) = (connection.execute(sql + table).fetchone() for table in ("alerts", "moves"))
        return alert_seq, move_seq

    def after(self, seq: int) -> list[Pending]:
        """The undelivered alerts created after the one with this `seq`, in that order, at most `PAGE` of them."""
        with self._database.read() as connection:
            rows = connection.execute(
                f"SELECT {_PENDING} FROM ("
                f"SELECT {_OF_ALERTS} FROM alerts WHERE state = 'pending' AND seq > ? ORDER BY seq LIMIT ?"
                ") AS alerts JOIN checks ON checks.id = alerts.check_id",
                (seq, PAGE),
            )
            return _in_order(rows)

    def between(self, after: int, before: int, from_newest: bool) -> list[Pending]:
        """The undelivered alerts between two that have these `seq`, in order: the last `PAGE` of them, or the first."""
        with self._database.read() as connection:
            rows = connection.execute(
                f"SELECT {_PENDING} FROM ("
                f"SELECT {_OF_ALERTS} FROM alerts WHERE state = 'pending' AND seq > ? AND seq < ?"
                f" ORDER BY seq {'DESC' if from_newest else 'ASC'} LIMIT ?"
                ") AS alerts JOIN checks ON checks.id = alerts.check_id",
                (after, before, PAGE),
            )
            return _in_order(rows)

    def of_checks(self, check_seqs: Collection[int], after: int, before: int) -> list[Pending]:
        """Of those between two, as `between` has them, all of some checks."""
        if not check_seqs:
            # For an empty list SQLite finds no way to use the index.
            return []
        with self._database.read() as connection:
            rows = connection.execute(
                f"SELECT {_PENDING} FROM checks JOIN alerts INDEXED BY alerts_waiting ON alerts.check_id = checks.id"
                f" WHERE checks.seq IN ({', '.join('?' * len(check_seqs))}) AND alerts.state = 'pending'"
                " AND alerts.seq > ? AND alerts.seq < ? ORDER BY alerts.seq",
                (*check_seqs, after, before),
            )
            return [Pending(*row) for row in rows]

    def gone(self, check_seqs: Collection[int]) -> set[int]:
        """Which of at most `PAGE` checks there are no more."""
        with self._database.read() as connection:
            sql = f"SELECT seq FROM checks WHERE seq IN ({', '.join('?' * len(check_seqs))})"
            return set(check_seqs) - {row["seq"] for row in connection.execute(sql, tuple(check_seqs))}

    def moves_after(self, seq: int) -> list[Move]:
        """The moves after the one with this `seq`, of each check the last, at most `PAGE` of them."""
        with self._database.read() as connection:
            rows = connection.execute(
                "SELECT moves.seq, check_seq, webhook_url"
                " FROM (SELECT seq, check_seq FROM moves WHERE seq > ? ORDER BY seq LIMIT ?) AS moves"
                " JOIN checks ON checks.seq = check_seq ORDER BY moves.seq",
                (seq, PAGE),
            )
            return [Move(*row) for row in rows]

    def first_due_at(self) -> int | None:
        """When the first of all is or was due, in Unix seconds; None where none waits for its time."""
        with self._database.read() as connection:
            sql = "SELECT min(next_attempt_at) FROM alerts INDEXED BY alerts_due WHERE state = 'pending'"
            (due_at,) = connection.execute(sql).fetchone()
        return None if due_at is None else int(due_at)


def _in_order(rows: Iterable[Row]) -> list[Pending]:
    return sorted((Pending(*row) for row in rows), key=attrgetter("seq"))


_PENDING = (
    "alerts.seq, checks.seq, checks.api_key_id, checks.webhook_url, alerts.attempts, alerts.next_attempt_at,"
    " alerts.outage IS NULL"
)
"""The columns of `Pending`. Of all that is pending a page is chosen first, and only that is joined with its checks."""
_OF_ALERTS = "seq, check_id, attempts, next_attempt_at, outage"
"""Those of `alerts` that they take."""
