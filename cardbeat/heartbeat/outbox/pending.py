"""The rows of `alerts` that are still to be sent, as delivery reads them."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from cardbeat.database import Database, Row
from cardbeat.heartbeat.outbox.alert import REMINDER

PAGE = 1000
"""Rows read at once."""


class Pending(NamedTuple):
    """An undelivered alert. `webhook_url` is None while its check has none, and once its key is revoked.

    `is_first` tells whether no older alert of its check waits; tests and outages do not wait for each other.
    `is_granted` tells whether the operator chose the tier of its key.
    """

    seq: int
    id: str
    check_seq: int
    key_id: str
    webhook_url: str | None
    attempts: int
    last_error: str | None
    next_attempt_at: int | None
    is_test: bool
    is_reminder: bool
    is_granted: bool
    key_created_at: int
    is_first: bool


class PendingAlerts:
    """Reads. Any thread may use it; every method raises `Unavailable` when the database can't be read."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def newest_seqs(self) -> tuple[int, int]:
        """The `seq` of the newest alert and of the newest move, each 0 if there is none."""
        alerts, moves = (f"(SELECT coalesce(max(seq), 0) FROM {table})" for table in ("alerts", "moves"))
        ((alert_seq, move_seq),) = self._read(f"SELECT {alerts}, {moves}")
        return alert_seq, move_seq

    def after(self, seq: int) -> list[Pending]:
        """The oldest undelivered alerts after the one with this `seq`, oldest first, at most `PAGE`."""
        return self._page("seq > ? ORDER BY seq", seq)

    def before(self, seq: int) -> list[Pending]:
        """The newest undelivered alerts before the one with this `seq`, oldest first, at most `PAGE`."""
        return self._page("seq < ? ORDER BY seq DESC", seq)

    def _page(self, condition: str, seq: int) -> list[Pending]:
        # The page is chosen first: PostgreSQL would join all pending alerts with their checks before it counts.
        rows = self._read(
            f"SELECT checks.seq AS check_seq, {_COLUMNS} FROM ("
            "SELECT seq, id, check_id, type, attempts, last_error, next_attempt_at, outage FROM alerts"
            f" WHERE state = 'pending' AND {condition} LIMIT ?"
            f") AS alerts {_CHECKS} ORDER BY alerts.seq",
            (seq, PAGE),
        )
        firsts = self._firsts({row["check_seq"] for row in rows})
        return [Pending._make((*alert, alert[0] in firsts)) for _, *alert in rows]

    def of_checks(self, check_seqs: Collection[int]) -> list[Pending]:
        """The first undelivered alerts of some checks, at most `PAGE` checks."""
        if not (firsts := self._firsts(check_seqs)):
            return []
        sql = f"SELECT {_COLUMNS} FROM alerts {_CHECKS} WHERE alerts.seq IN ({', '.join('?' * len(firsts))})"
        return [Pending._make((*alert, True)) for alert in self._read(sql, list(firsts))]

    def _firsts(self, check_seqs: Collection[int]) -> set[int]:
        """The `seq` of the first undelivered alert and of the first such test of each of these checks.

        One statement for all: where PostgreSQL has not counted the many alerts that wait now, it reads all of them once
        for each. `+ 0` keeps it from looking for the smallest in the index of all that wait.
        """
        if not check_seqs:
            return set()
        rows = self._read(
            "SELECT min(alerts.seq + 0) FROM checks"
            " JOIN alerts INDEXED BY alerts_waiting ON alerts.check_id = checks.id"
            f" WHERE alerts.state = 'pending' AND checks.seq IN ({', '.join('?' * len(check_seqs))})"
            " GROUP BY alerts.check_id, alerts.outage IS NULL",
            list(check_seqs),
        )
        return {row[0] for row in rows}

    def moves_after(self, seq: int) -> list[tuple[int, int]]:
        """The oldest moves after the one with this `seq`, at most `PAGE`: of each its `seq` and its check's.

        A move is a new webhook URL of a check that had undelivered alerts, or a change of which is next, and when.
        """
        rows = self._read("SELECT seq, check_seq FROM moves WHERE seq > ? ORDER BY seq LIMIT ?", (seq, PAGE))
        return [(row[0], row[1]) for row in rows]

    def first_due_at(self) -> int | None:
        """When the first of all undelivered alerts is or was due, in Unix seconds; None if there is none."""
        # Earlier versions gave times also to those that wait behind another of their check.
        rows = self._read(
            "SELECT next_attempt_at FROM alerts INDEXED BY alerts_due"
            " WHERE state = 'pending' AND next_attempt_at IS NOT NULL AND NOT EXISTS ("
            "SELECT 1 FROM alerts AS older INDEXED BY alerts_waiting WHERE older.check_id = alerts.check_id"
            " AND older.state = 'pending' AND older.seq < alerts.seq"
            " AND (older.outage IS NULL) = (alerts.outage IS NULL)) ORDER BY next_attempt_at LIMIT 1"
        )
        return rows[0][0] if rows else None

    def _read(self, sql: str, values: Sequence[int] = ()) -> list[Row]:
        with self._database.read() as connection:
            return connection.execute(sql, values).fetchall()


_COLUMNS = (
    "alerts.seq, alerts.id, checks.seq, checks.api_key_id, CASE WHEN keys.revoked_at IS NULL THEN webhook_url END,"
    f" alerts.attempts, alerts.last_error, alerts.next_attempt_at, alerts.outage IS NULL, alerts.type = '{REMINDER}',"
    " keys.tier <> 'free', keys.created_at"
)
"""The columns of `Pending` but the last."""
_CHECKS = "JOIN checks ON checks.id = alerts.check_id JOIN keys ON keys.id = checks.api_key_id"
