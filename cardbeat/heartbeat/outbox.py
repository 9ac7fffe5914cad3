"""The rows of `alerts`: what is to be sent, and what became of it."""

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from cardbeat.clock import utc_text
from cardbeat.database import Database

KEPT = 100
"""Alerts of a check in its history; finished ones beyond them are dropped."""
WAITING = 1000
"""Unfinished alerts of a check, tests aside: a dead receiver must not fill the disk."""
WAITING_FOR_TESTS = 100
"""Unfinished alerts of a check beside which no more tests are taken."""
PAGE = 1000


class NewAlert(NamedTuple):
    id: str
    check_id: str
    type: str
    outage: int | None
    body: str
    now: int


@dataclass(frozen=True, slots=True)
class Pending:
    """An undelivered alert, as much of it as is kept in memory."""

    seq: int
    check_seq: int
    webhook_url: str | None
    attempts: int
    next_attempt_at: int


@dataclass(frozen=True, slots=True)
class Letter:
    """All that one attempt needs. `webhook_url` is the check's present one."""

    id: str
    body: bytes
    attempts: int
    webhook_url: str | None
    webhook_secret: str


@dataclass(frozen=True, slots=True)
class Attempt:
    """The result of one attempt as it is stored; `next_attempt_at` is None for a finished alert."""

    seq: int
    state: str
    status: int | None
    error: str | None
    next_attempt_at: int | None


class Outbox:
    """Alerts stored in a transition's own transaction, and the results of sending them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, connection: sqlite3.Connection, alerts: Sequence[NewAlert]) -> None:
        """Store alerts once: nothing for a second one of an outage and type, or for a check that is gone.

        One statement, because each gives the interpreter away, and the couriers of a large outage are after it too.
        """
        rows = ", ".join(["(?, ?, ?, ?, ?, ?)"] * len(alerts))
        connection.execute(
            f"WITH new (id, check_id, type, outage, body, now) AS (VALUES {rows})"
            " INSERT INTO alerts (id, check_id, type, outage, body, created_at, next_attempt_at)"
            " SELECT new.id, check_id, type, new.outage, body, now, now FROM new JOIN checks ON checks.id = check_id"
            " WHERE true ON CONFLICT (check_id, outage, type) DO NOTHING",
            [value for alert in alerts for value in alert],
        )

    def waiting(self, connection: sqlite3.Connection, check_id: str) -> int:
        """How many alerts of a check are not finished."""
        sql = "SELECT count(*) FROM alerts WHERE check_id = ? AND state NOT IN ('delivered', 'failed')"
        (count,) = connection.execute(sql, (check_id,)).fetchone()
        return int(count)

    def make_due(self, connection: sqlite3.Connection, check_id: str, now: int) -> None:
        """What is not finished of a check is due now; the attempts made still count."""
        sql = "UPDATE alerts SET next_attempt_at = ? WHERE check_id = ? AND state NOT IN ('delivered', 'failed')"
        connection.execute(sql, (now, check_id))

    def pending_after(self, seq: int) -> list[Pending]:
        """The next undelivered alerts in the order of their creation, at most a page."""
        with self._database.read() as connection:
            rows = connection.execute(
                "SELECT alerts.seq, checks.seq, checks.webhook_url, alerts.attempts, alerts.next_attempt_at"
                " FROM alerts JOIN checks ON checks.id = alerts.check_id"
                " WHERE alerts.state = 'pending' AND alerts.seq > ? ORDER BY alerts.seq LIMIT ?",
                (seq, PAGE),
            )
            return [Pending(*row) for row in rows]

    def letter(self, seq: int) -> Letter | None:
        """None if the alert is gone, as when its check was deleted."""
        with self._database.read() as connection:
            row = connection.execute(
                "SELECT alerts.id, alerts.body, alerts.attempts, checks.webhook_url, keys.webhook_secret"
                " FROM alerts JOIN checks ON checks.id = alerts.check_id JOIN keys ON keys.id = checks.api_key_id"
                " WHERE alerts.seq = ? AND alerts.state = 'pending'",
                (seq,),
            ).fetchone()
        return row and Letter(row[0], row[1].encode(), *row[2:])

    def store(self, attempts: Iterable[Attempt]) -> None:
        """Record results, all in one transaction."""

        def store(connection: sqlite3.Connection) -> None:
            for attempt in attempts:
                _store(connection, attempt)

        self._database.write(store)

    def newest(self, check_id: str) -> list[dict[str, Any]]:
        """A check's history as the contract shows it, newest first.

        An alert goes out after those before it, so its next attempt is not before that of the first that waits.
        """
        with self._database.read() as connection:
            rows = connection.execute(
                "SELECT id, type, state, attempts, last_status, last_error, created_at, max(next_attempt_at,"
                " (SELECT next_attempt_at FROM alerts WHERE check_id = ?1 AND state NOT IN ('delivered', 'failed')"
                " ORDER BY seq LIMIT 1)) AS next_attempt_at"
                " FROM alerts WHERE check_id = ?1 ORDER BY seq DESC LIMIT ?2",
                (check_id, KEPT),
            ).fetchall()
        return [_shown(row) for row in rows]


def _store(connection: sqlite3.Connection, attempt: Attempt) -> None:
    row = connection.execute(
        "UPDATE alerts SET state = ?, attempts = attempts + 1, last_status = coalesce(?, last_status), last_error = ?,"
        " next_attempt_at = ? WHERE seq = ? RETURNING check_id",
        (attempt.state, attempt.status, attempt.error, attempt.next_attempt_at, attempt.seq),
    ).fetchone()
    if row is None:
        return
    if attempt.state != "delivered":
        _give_up_oldest(connection, row["check_id"], attempt.seq)
    if attempt.state != "pending":
        _drop_oldest(connection, row["check_id"])


def _give_up_oldest(connection: sqlite3.Connection, check_id: str, after: int) -> None:
    connection.execute(
        "UPDATE alerts SET state = 'failed', last_error = ?, next_attempt_at = NULL"
        " WHERE check_id = ? AND seq > ? AND state NOT IN ('delivered', 'failed') AND type <> 'check.test' AND seq <="
        " (SELECT seq FROM alerts WHERE check_id = ? AND type <> 'check.test' ORDER BY seq DESC LIMIT 1 OFFSET ?)",
        (_TOO_MANY, check_id, after, check_id, WAITING),
    )


def _drop_oldest(connection: sqlite3.Connection, check_id: str) -> None:
    connection.execute(
        "DELETE FROM alerts WHERE check_id = ? AND state <> 'pending' AND seq <="
        " (SELECT seq FROM alerts WHERE check_id = ? ORDER BY seq DESC LIMIT 1 OFFSET ?)",
        (check_id, check_id, KEPT),
    )


_TOO_MANY = f"It was never sent: {WAITING:,} newer alerts were waiting for the receiver."


def _shown(row: sqlite3.Row) -> dict[str, Any]:
    shown = dict(row)
    for name in ("created_at", "next_attempt_at"):
        shown[name] = None if shown[name] is None else utc_text(shown[name])
    return shown
