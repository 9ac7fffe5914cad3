"""The rows of `alerts`, a transactional outbox: stored with the change that they tell of, sent after its commit."""

import secrets
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from cardbeat.clock import utc_text
from cardbeat.database import Database
from cardbeat.errors import TooMany
from cardbeat.heartbeat.alert import TEST, body_of
from cardbeat.heartbeat.check import Check

KEPT = 100
"""Alerts of a check in its history; finished ones beyond them are dropped."""
WAITING = 1000
"""Unfinished alerts of a check at the most, tests aside: a dead receiver must not fill the disk."""
WAITING_FOR_TESTS = 100
"""While a check has so many unfinished alerts, no test is taken."""
PAGE = 1000
"""Pending alerts read at once."""


@dataclass(frozen=True, slots=True)
class Pending:
    """An undelivered alert, as much of it as is kept in memory."""

    seq: int
    check_seq: int
    key_id: str
    webhook_url: str | None
    attempts: int
    next_attempt_at: int


@dataclass(frozen=True, slots=True)
class Message:
    """An alert with all that one attempt to deliver it needs. `webhook_url` is the check's present one."""

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


class Alerts:
    """The alerts of all checks; `base_url` stands in their bodies.

    What takes a connection belongs to the caller's transaction. It holds no state, so any thread may use it.
    """

    def __init__(self, database: Database, base_url: str) -> None:
        self._database = database
        self._base_url = base_url

    def record(self, connection: sqlite3.Connection, alert_type: str, checks: Sequence[Check], now: int) -> None:
        """Store one alert for each of up to 1,000 checks; `Delivery.wake` is to be called after the commit.

        Nothing is stored for a check without a webhook URL or one that is gone, nor a second alert of one outage and
        type.
        """
        alerts = [self._row(alert_type, check, now) for check in checks if check.webhook_url is not None]
        if alerts:
            _insert(connection, alerts)

    def record_test(self, connection: sqlite3.Connection, check: Check, now: int) -> None:
        """Store a test alert. Raises `TooMany` while the check has many alerts waiting."""
        if _waiting(connection, check.id) >= WAITING_FOR_TESTS:
            raise TooMany("Too many alerts are waiting for this receiver; test it when it answers again.", 60)
        self.record(connection, TEST, [check], now)

    def make_due(self, connection: sqlite3.Connection, check_id: str, now: int) -> None:
        """Let a check's unfinished alerts be due now, for another receiver; the attempts made still count.

        `Delivery.move` is to be called after the commit.
        """
        sql = "UPDATE alerts SET next_attempt_at = ? WHERE check_id = ? AND state NOT IN ('delivered', 'failed')"
        connection.execute(sql, (now, check_id))

    def pending_after(self, seq: int) -> list[Pending]:
        """The undelivered alerts created after the one with this `seq`, in that order, at most `PAGE` of them."""
        with self._database.read() as connection:
            rows = connection.execute(
                "SELECT alerts.seq, checks.seq, checks.api_key_id, checks.webhook_url, alerts.attempts,"
                " alerts.next_attempt_at"
                " FROM alerts JOIN checks ON checks.id = alerts.check_id"
                " WHERE alerts.state = 'pending' AND alerts.seq > ? ORDER BY alerts.seq LIMIT ?",
                (seq, PAGE),
            )
            return [Pending(*row) for row in rows]

    def message(self, seq: int) -> Message | None:
        """What the next attempt needs; None for an alert that is finished, or gone with its check."""
        with self._database.read() as connection:
            row = connection.execute(
                "SELECT alerts.id, alerts.body, alerts.attempts, checks.webhook_url, keys.webhook_secret"
                " FROM alerts JOIN checks ON checks.id = alerts.check_id JOIN keys ON keys.id = checks.api_key_id"
                " WHERE alerts.seq = ? AND alerts.state = 'pending'",
                (seq,),
            ).fetchone()
        return row and Message(row[0], row[1].encode(), *row[2:])

    def store(self, attempts: Iterable[Attempt]) -> None:
        """Record results, all in one transaction."""

        def store(connection: sqlite3.Connection) -> None:
            for attempt in attempts:
                _store(connection, attempt)

        self._database.write(store)

    def newest(self, check_id: str) -> list[dict[str, Any]]:
        """A check's newest alerts as `GET /checks/{id}/alerts` shows them, newest first, at most `KEPT`.

        A check's alerts go out in order, so the next attempt of one is not before that of the oldest unfinished one.
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

    def _row(self, alert_type: str, check: Check, now: int) -> tuple[object, ...]:
        # A test has no outage, so that the check may have any number of them.
        outage = None if alert_type == TEST else check.outage
        body = body_of(alert_type, check, self._base_url, now)
        return (f"msg_{secrets.token_hex(16)}", check.id, alert_type, outage, body, now)


def _insert(connection: sqlite3.Connection, alerts: Sequence[tuple[object, ...]]) -> None:
    """Store alerts in one statement.

    At each statement the interpreter switches to another thread, and in a large outage hundreds of couriers wait for
    one.
    """
    rows = ", ".join(["(?, ?, ?, ?, ?, ?)"] * len(alerts))
    connection.execute(
        f"WITH new (id, check_id, type, outage, body, now) AS (VALUES {rows})"
        " INSERT INTO alerts (id, check_id, type, outage, body, created_at, next_attempt_at)"
        " SELECT new.id, check_id, type, new.outage, body, now, now FROM new JOIN checks ON checks.id = check_id"
        " WHERE true ON CONFLICT (check_id, outage, type) DO NOTHING",
        [value for alert in alerts for value in alert],
    )


def _waiting(connection: sqlite3.Connection, check_id: str) -> int:
    """How many alerts of a check are not finished."""
    # Not `state = 'pending'`, for which SQLite takes the index of all pending alerts instead of the check's.
    sql = "SELECT count(*) FROM alerts WHERE check_id = ? AND state NOT IN ('delivered', 'failed')"
    (count,) = connection.execute(sql, (check_id,)).fetchone()
    return int(count)


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
    """Fail the oldest of more than `WAITING` unfinished alerts, except for the one just tried, whose seq is `after`."""
    connection.execute(
        "UPDATE alerts SET state = 'failed', last_error = ?, next_attempt_at = NULL"
        " WHERE check_id = ? AND seq > ? AND state NOT IN ('delivered', 'failed') AND type <> 'check.test' AND seq <="
        " (SELECT seq FROM alerts WHERE check_id = ? AND type <> 'check.test' ORDER BY seq DESC LIMIT 1 OFFSET ?)",
        (_TOO_MANY, check_id, after, check_id, WAITING),
    )


def _drop_oldest(connection: sqlite3.Connection, check_id: str) -> None:
    """Delete a check's finished alerts beyond the newest `KEPT` of all."""
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
