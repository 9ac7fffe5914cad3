"""The rows of `alerts`, a transactional outbox: stored with the change that they tell of, sent after its commit."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cardbeat.clock import utc_text
from cardbeat.database import Database, Row, Transaction
from cardbeat.heartbeat import attempts
from cardbeat.heartbeat.alert import OVERDUE, RECOVERED, TEST, body_of
from cardbeat.heartbeat.attempts import KEPT, Attempt, drop_oldest
from cardbeat.heartbeat.check import Check
from cardbeat.heartbeat.quota import take_test
from cardbeat.heartbeat.transitions import GIVEN_UP, TransitionLog, subject_of

WAITING_OUTAGES = 10
"""The newest outages of a check whose alerts may wait, beside the one that is tried now: a receiver that is dead must
not fill the disk. Each outage has an alert of its begin and one of its end."""


@dataclass(frozen=True, slots=True)
class Message:
    """An alert with all that one attempt to deliver it needs. `webhook_url` is the check's present one."""

    id: str
    body: bytes
    attempts: int
    webhook_url: str | None
    webhook_secret: str
    old_secret: str | None
    old_secret_until: int | None

    def secrets_at(self, now: int) -> tuple[str, ...]:
        """What signs an attempt at this Unix second: the key's secret and, for a while, the one before it."""
        if self.old_secret is None or self.old_secret_until is None or now >= self.old_secret_until:
            return (self.webhook_secret,)
        return self.webhook_secret, self.old_secret


class Alerts:
    """The alerts of all checks; `base_url` stands in their bodies.

    `transitions` is the log that tells the operator what alerts tell the checks' owners, and of alerts given up.

    What takes a connection belongs to the caller's transaction. It holds no state, so any thread may use it.
    """

    def __init__(self, database: Database, base_url: str, transitions: TransitionLog) -> None:
        self._database = database
        self._base_url = base_url
        self.transitions = transitions

    @property
    def database(self) -> Database:
        return self._database

    def record(self, transaction: Transaction, alert_type: str, checks: Sequence[Check], now: int) -> list[str]:
        """Store one alert for each of up to 1,000 checks; `Delivery.wake` is to be called after the commit.

        Nothing is stored for a check that is gone or whose key is revoked, nor a second alert of one outage and type.
        Without a webhook URL nothing is stored either, but for the end of an outage whose begin still waits. A new
        outage of a check that has many waiting gives the oldest of them up: their checks are returned, as the log
        names them.
        """
        told = [check for check in checks if check.webhook_url is not None or _waits(transaction, alert_type, check)]
        alerts = [self._row(alert_type, check, now) for check in told]
        if alerts:
            # Delivery reads on from the last number that it has seen.
            self._database.hold(transaction, "alerts")
            _insert(transaction, alerts)
        if alert_type != OVERDUE:
            return []
        return _give_up_oldest(transaction, [check.seq for check in checks if check.outage > WAITING_OUTAGES])

    def record_test(self, transaction: Transaction, check: Check, now: int) -> None:
        """Store a test alert. Raises `TooMany` where too many are waiting for the check, or were taken for its key."""
        take_test(transaction, check, now)
        self.record(transaction, TEST, [check], now)

    def move(self, transaction: Transaction, check_id: str, due_at: int | None) -> None:
        """Let a check's unfinished alerts be due then, at another receiver; the attempts made still count.

        None for a check that has no receiver now: its alerts wait until it has one.

        `Delivery.wake` is to be called after the commit.
        """
        sql = "UPDATE alerts SET next_attempt_at = ? WHERE check_id = ? AND state NOT IN ('delivered', 'failed')"
        if transaction.execute(sql, (due_at, check_id)).rowcount:
            self._database.hold(transaction, "alerts")
            # Another row, with a number behind all others.
            transaction.execute(
                "DELETE FROM moves WHERE check_seq = (SELECT seq FROM checks WHERE id = ?)", (check_id,)
            )
            transaction.execute("INSERT INTO moves (check_seq) SELECT seq FROM checks WHERE id = ?", (check_id,))

    def message(self, seq: int) -> Message | None:
        """What the next attempt needs; None for an alert that is finished, gone with its check, or a revoked key's."""
        with self._database.read() as connection:
            row = connection.execute(
                "SELECT alerts.id, alerts.body, alerts.attempts, checks.webhook_url, keys.webhook_secret,"
                " keys.old_webhook_secret, keys.old_webhook_secret_until"
                " FROM alerts JOIN checks ON checks.id = alerts.check_id JOIN keys ON keys.id = checks.api_key_id"
                " WHERE alerts.seq = ? AND alerts.state = 'pending' AND keys.revoked_at IS NULL",
                (seq,),
            ).fetchone()
        return row and Message(row[0], row[1].encode(), *row[2:])

    def store(self, made: Sequence[Attempt]) -> set[int]:
        """Record what came of attempts, one of an alert, and with each its check's `delivery`, in one transaction.

        An alert that was not delivered at a URL which its check no longer has is due at the one it has, whatever the
        earlier receiver said: the `seq` of these. Nothing is stored of an attempt that is not the next one of its
        alert: another process has sent that too, after this one could not tell that it goes on.
        """

        def store(transaction: Transaction) -> tuple[set[int], list[str]]:
            # Nobody is to give a check another URL between what is asked of it here and what is stored.
            among = ", ".join("?" * len(made))
            checks = f"SELECT seq FROM checks WHERE id IN (SELECT check_id FROM alerts WHERE seq IN ({among}))"
            self._database.lock(transaction, f"{checks} ORDER BY seq", [attempt.seq for attempt in made])
            stored = attempts.store(transaction, made)
            return stored.moved, _subjects(transaction, stored.failed)

        moved, given_up = self._database.write(store)
        self.transitions.note(GIVEN_UP, given_up)
        return moved

    def newest(self, check_id: str) -> list[dict[str, Any]]:
        """A check's newest alerts as `GET /checks/{id}/alerts` shows them, newest first, at most `KEPT`."""
        with self._database.read() as connection:
            rows = connection.execute(
                "SELECT id, type, state, attempts, last_status, last_error, created_at, next_attempt_at"
                " FROM alerts WHERE check_id = ? ORDER BY seq DESC LIMIT ?",
                (check_id, KEPT),
            ).fetchall()
        return [_shown(row) for row in rows]

    def _row(self, alert_type: str, check: Check, now: int) -> tuple[object, ...]:
        # A test has no outage, so that the check may have any number of them.
        outage = None if alert_type == TEST else check.outage
        body = body_of(alert_type, check, self._base_url, now)
        return (f"msg_{secrets.token_hex(16)}", check.id, alert_type, outage, body, now)


def _waits(transaction: Transaction, alert_type: str, check: Check) -> bool:
    """Whether this is a recovery from an outage of which the receiver has not heard yet, but will."""
    if alert_type != RECOVERED:
        return False
    sql = "SELECT 1 FROM alerts WHERE check_id = ? AND outage = ? AND state = 'pending'"
    return transaction.execute(sql, (check.id, check.outage)).fetchone() is not None


def _insert(transaction: Transaction, alerts: Sequence[tuple[object, ...]]) -> None:
    """Store alerts in one statement, each due when those before it of its check are, or now; without a URL never.

    The sum with 0 keeps PostgreSQL from looking for the latest of all alerts that wait, and then for the check's.
    At each statement the interpreter switches to another thread, and in a large outage hundreds of couriers wait for
    one.
    """
    rows = ", ".join(["(?, ?, ?, CAST(? AS INTEGER), ?, ?)"] * len(alerts))
    transaction.execute(
        f"WITH new (id, check_id, type, outage, body, now) AS (VALUES {rows})"
        " INSERT INTO alerts (id, check_id, type, outage, body, created_at, next_attempt_at)"
        " SELECT new.id, new.check_id, type, new.outage, body, now, CASE WHEN webhook_url IS NOT NULL THEN coalesce(("
        "SELECT max(next_attempt_at + 0) FROM alerts AS old INDEXED BY alerts_waiting WHERE old.check_id = new.check_id"
        " AND old.state = 'pending' AND (old.outage IS NULL) = (new.outage IS NULL) AND next_attempt_at > now"
        "), now) END FROM new"
        " JOIN checks ON checks.id = new.check_id JOIN keys ON keys.id = checks.api_key_id WHERE revoked_at IS NULL"
        " ON CONFLICT (check_id, outage, type) DO NOTHING",
        [value for alert in alerts for value in alert],
    )


def _give_up_oldest(transaction: Transaction, check_seqs: Sequence[int]) -> list[str]:
    """Fail the waiting alerts of all but a check's newest `WAITING_OUTAGES` outages and the oldest one that waits.

    That one may be on its way now. Of any other outage both alerts are given up, and the newest are kept: in the end
    the receiver knows the check's present state. The check of each is returned as the log names it.
    """
    if not check_seqs:
        return []
    given_up = transaction.execute(
        "UPDATE alerts SET state = 'failed', body = '', last_error = ?, next_attempt_at = NULL WHERE seq IN ("
        " SELECT old.seq FROM checks JOIN alerts AS old INDEXED BY alerts_waiting ON old.check_id = checks.id"
        f" WHERE checks.seq IN ({', '.join('?' * len(check_seqs))}) AND old.state = 'pending'"
        " AND old.outage <= checks.outage - ? AND old.outage >"
        " (SELECT min(outage) FROM alerts INDEXED BY alerts_waiting WHERE check_id = checks.id AND state = 'pending')"
        ") RETURNING check_id",
        (_TOO_MANY, *check_seqs, WAITING_OUTAGES),
    ).fetchall()
    check_ids = [row["check_id"] for row in given_up]
    drop_oldest(transaction, set(check_ids))
    return _subjects(transaction, check_ids)


def _subjects(transaction: Transaction, check_ids: Sequence[str]) -> list[str]:
    """Each of these checks as the log names it, but none of a revoked key."""
    if not check_ids:
        return []
    rows = transaction.execute(
        "SELECT checks.id, prefix FROM checks JOIN keys ON keys.id = checks.api_key_id"
        f" WHERE checks.id IN ({', '.join('?' * len(check_ids))}) AND revoked_at IS NULL",
        check_ids,
    ).fetchall()
    prefixes = {row[0]: row[1] for row in rows}
    return [subject_of(check_id, prefixes[check_id]) for check_id in check_ids if check_id in prefixes]


_TOO_MANY = f"It was given up: alerts of {WAITING_OUTAGES} newer outages were waiting for the receiver."


def _shown(row: Row) -> dict[str, Any]:
    shown = dict(row)
    for name in ("created_at", "next_attempt_at"):
        shown[name] = None if shown[name] is None else utc_text(shown[name])
    return shown
