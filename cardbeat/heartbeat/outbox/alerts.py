"""The rows of `alerts`, a transactional outbox: stored with the change that they report, sent after its commit."""

import secrets
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from cardbeat.clock import time_or_none
from cardbeat.database import Database, Row, Transaction
from cardbeat.heartbeat.check import Check
from cardbeat.heartbeat.outbox import attempts
from cardbeat.heartbeat.outbox.alert import ALERTS_AN_HOUR, OVERDUE, RECOVERED, REMINDER, TEST, Facts, body_of
from cardbeat.heartbeat.outbox.attempts import KEPT, Attempt, drop_one_each
from cardbeat.heartbeat.quota import HOUR_SECONDS, take_test
from cardbeat.heartbeat.transitions import GIVEN_UP, Turned, note, subject_of

WAITING_ALERTS, WAITING_WHILE_LOW = 20, 2
"""Alerts of a check's outages that may wait one by one: a dead receiver must not fill the disk. The second is while the
disk is low, and beyond `ALERTS_AN_HOUR`."""

LINK_CHARACTERS = 8
"""Of a check's id in the link to the dashboard: enough for one person's checks, too few to ping with."""


class Message(NamedTuple):
    """The data that one attempt needs. `webhook_url` is the check's present one, each of `secrets` signs the post."""

    id: str
    body: bytes
    attempts: int
    webhook_url: str | None
    secrets: tuple[str, ...]


class Alerts:
    """The alerts of all checks.

    Methods with a transaction work inside the caller's. There is no state, so any thread may use it. `base_url` is
    where people reach the dashboard.
    """

    def __init__(self, database: Database, base_url: str) -> None:
        self.database = database
        self._base_url = base_url

    def record(self, transaction: Transaction, alert_type: str, checks: Sequence[Check | Turned], now: int) -> None:
        """Store one alert for each of up to 1,000 checks; call `Delivery.wake` after the commit.

        Nothing is stored for a check that is gone or whose key is revoked, nor a second alert of one outage and type.
        For a check without a webhook URL only the end of an outage is stored, and only while its begin still waits.

        No further one is added beyond `WAITING_ALERTS`, or `WAITING_WHILE_LOW`: the newest that waits then tells the
        new transition too, and how many outages it tells. While the disk of a database file is low, a new alert takes
        the place of the check's oldest finished one.

        A waiting reminder gives way to the next one and to the recovery, which thus never waits for its retries. No
        reminder is stored while another alert of the check's outages waits.
        """
        if not checks:
            return
        if alert_type in (RECOVERED, REMINDER):
            self.drop_reminders(transaction, [check.id for check in checks if check.repeat_seconds is not None])
        waiting = _waiting(transaction, [check.id for check in checks], alert_type == TEST)
        told = [
            check
            for check in checks
            if (check.webhook_url is not None and not (alert_type == REMINDER and check.id in waiting))
            or (alert_type == RECOVERED and check.outage in waiting.get(check.id, {}).values())
        ]
        alerts = [_New(check.id, f"msg_{secrets.token_hex(16)}", waiting.get(check.id, {})) for check in told]
        is_low = self.database.fence is None and self.database.reserve.is_low()
        if alert_type in (OVERDUE, RECOVERED):
            alerts = _merge(transaction, alert_type, alerts, now, is_low)
        if alerts:
            # Delivery reads the rows after the last `seq` it has seen, so they must be committed in order.
            self.database.hold(transaction, "alerts")
            _insert(transaction, alert_type, alerts, now)
            if is_low:
                drop_one_each(transaction, [alert.check_id for alert in alerts])

    def record_test(self, transaction: Transaction, check: Check, now: int) -> None:
        """Store a test alert; others that wait are due now, as the receiver may be repaired. Raises as `take_test`."""
        take_test(transaction, check, now)
        self.move(transaction, check.id, now, "AND outage IS NULL")
        self.record(transaction, TEST, [check], now)

    def move(self, transaction: Transaction, check_id: str, due_at: int | None, among: str = "") -> None:
        """Make a check's first unfinished alert and test due at this time, at its present webhook URL.

        Earlier attempts still count. `due_at` is None if the check has no URL now: its alerts wait for one. `among` is
        a further condition. Call `Delivery.wake` after the commit.
        """
        first = f"SELECT min(seq) FROM alerts WHERE check_id = ? AND state = 'pending' {among} GROUP BY outage IS NULL"
        sql = f"UPDATE alerts SET next_attempt_at = ? WHERE seq IN ({first})"
        if transaction.execute(sql, (due_at, check_id)).rowcount:
            self._note_moves(transaction, [check_id])

    def drop_reminders(self, transaction: Transaction, check_ids: Sequence[str]) -> None:
        """Delete the reminders of these checks that wait. One that is being sent now may still arrive."""
        if check_ids:
            rows = transaction.execute(
                "DELETE FROM alerts INDEXED BY alerts_waiting WHERE state = 'pending' AND type = 'check.reminder'"
                f" AND check_id IN ({', '.join('?' * len(check_ids))}) RETURNING check_id",
                check_ids,
            ).fetchall()
            if rows:
                self._note_moves(transaction, [row[0] for row in rows])

    def _note_moves(self, transaction: Transaction, check_ids: Sequence[str]) -> None:
        """Let delivery read again which alert of these checks is next, and where it goes."""
        self.database.hold(transaction, "alerts")
        checks = f"SELECT seq FROM checks WHERE id IN ({', '.join('?' * len(check_ids))})"
        # New rows instead of an update: their `seq` must be the highest.
        transaction.execute(f"DELETE FROM moves WHERE check_seq IN ({checks})", check_ids)
        transaction.execute(f"INSERT INTO moves (check_seq) {checks}", check_ids)

    def message(self, seq: int, now: int) -> Message | None:
        """What an attempt at this Unix second needs; None if the alert is finished or deleted, or its key revoked."""
        with self.database.read() as connection:
            row = connection.execute(
                f"SELECT {_ALERT_COLUMNS}, keys.webhook_secret AS secret,"
                " CASE WHEN keys.old_webhook_secret_until > ? THEN keys.old_webhook_secret END AS old_secret, checks.*"
                " FROM alerts JOIN checks ON checks.id = alerts.check_id JOIN keys ON keys.id = checks.api_key_id"
                " WHERE alerts.seq = ? AND alerts.state = 'pending' AND keys.revoked_at IS NULL",
                (now, seq),
            ).fetchone()
        return row and _message(row, now, self._base_url)

    def store(self, made: Sequence[Attempt], now: int) -> tuple[set[int], set[int]]:
        """Store results of attempts in one transaction, as `attempts.store` does.

        Returns the `seq` of each alert that failed at a URL which its check no longer has: it stays due at the new one.
        And the `seq` of each whose result is not stored now, because another session holds the row of its check.
        """

        def store(transaction: Transaction) -> tuple[set[int], set[int], list[str]]:
            # No other transaction may change a check's URL between the questions and the changes of this one.
            locked = self._lock_checks(transaction, [attempt.seq for attempt in made])
            free = [attempt for attempt in made if attempt.seq not in locked]
            moved, failed, hurried = attempts.store(transaction, free, now)
            if hurried:
                self._note_moves(transaction, hurried)
            return moved, locked, _subjects(transaction, failed)

        moved, locked, given_up = self.database.write(store)
        note(GIVEN_UP, given_up)
        return moved, locked

    def put_off(self, due_at: Mapping[int, int]) -> set[int]:
        """Store for each `seq` when an alert that waits for its turn is due. Returns those not stored, as `store`."""

        def put_off(transaction: Transaction) -> set[int]:
            locked = self._lock_checks(transaction, list(due_at))
            attempts.put_off(transaction, [(seq, time) for seq, time in due_at.items() if seq not in locked])
            return locked

        return self.database.write(put_off)

    def _lock_checks(self, transaction: Transaction, seqs: Sequence[int]) -> set[int]:
        """Lock these alerts and their checks, and return those that another session holds: it may do so for hours."""
        if self.database.fence is None:
            return set()
        sql = "SELECT alerts.seq FROM alerts JOIN checks ON checks.id = check_id WHERE alerts.seq IN"
        free = self.database.lock_free(transaction, f"{sql} ({', '.join('?' * len(seqs))})", seqs)
        if not (others := list(set(seqs).difference(free))):
            return set()
        # The others may be deleted.
        rows = transaction.execute(f"SELECT seq FROM alerts WHERE seq IN ({', '.join('?' * len(others))})", others)
        return {row[0] for row in rows}

    def newest(self, check_id: str) -> list[dict[str, Any]]:
        """The newest alerts of a check in the form of `GET /checks/{id}/alerts`, newest first, at most `KEPT`."""
        with self.database.read() as connection:
            rows = connection.execute(
                "SELECT id, type, state, attempts, last_status, last_error, created_at, next_attempt_at"
                " FROM alerts WHERE check_id = ? ORDER BY seq DESC LIMIT ?",
                (check_id, KEPT),
            ).fetchall()
        due_at: dict[bool, int | None] = {}
        # The oldest first: one that waits behind another has its time.
        return [_shown(row, due_at) for row in reversed(rows)][::-1]


_TOLD = ("type", "created_at", "outages", "reason", "late_seconds", "overdue_seconds")
_SEEN = ("last_ping_at", "deadline_at", "ping_count")
_ALERT_COLUMNS = ", ".join(f"alerts.{name} AS alert_{name}" for name in ("id", "attempts", *_TOLD, *_SEEN))
_STATUS_TOLD = {OVERDUE: "overdue", RECOVERED: "on_time"}
"""The status that a check had when an alert of this type was stored. A reminder is deleted when its outage ends."""


def _message(row: Row, now: int, base_url: str) -> Message:
    """The message of an alert, whose check is shown with the state that the alert tells."""
    check, told = Check.from_row(row), Facts(*(row[f"alert_{name}"] for name in _TOLD))
    seen = {name: row[f"alert_{name}"] for name in _SEEN}
    shown = check.as_of(now)._replace(status=_STATUS_TOLD.get(told.type, check.status), **seen)
    signed_with = tuple(filter(None, (row["secret"], row["old_secret"])))
    body = body_of(told, shown, f"{base_url}/dashboard#{check.id[:LINK_CHARACTERS]}")
    return Message(row["alert_id"], body, row["alert_attempts"], check.webhook_url, signed_with)


class _New(NamedTuple):
    """An alert that is to be stored, and those of its check that wait: the outage of each by its `seq`."""

    check_id: str
    id: str
    waiting: Mapping[int, int | None]


def _waiting(transaction: Transaction, check_ids: Sequence[str], is_test: bool) -> dict[str, dict[int, int | None]]:
    """The alerts of these checks that wait, or their tests: by the check's id the outage of each by its `seq`.

    One statement for all: where PostgreSQL has not counted the many that wait now, it reads them once for each.
    """
    rows = transaction.execute(
        "SELECT check_id, seq, outage FROM alerts INDEXED BY alerts_waiting WHERE state = 'pending'"
        f" AND outage IS {'' if is_test else 'NOT '}NULL AND check_id IN ({', '.join('?' * len(check_ids))})",
        check_ids,
    )
    found: dict[str, dict[int, int | None]] = {}
    for check_id, seq, outage in rows:
        found.setdefault(check_id, {})[seq] = outage
    return found


def _insert(transaction: Transaction, alert_type: str, alerts: Sequence[_New], now: int) -> None:
    """Store alerts. Each is due now, unless an older alert of its check waits, or there is no webhook URL.

    One statement for all: at each statement the interpreter may switch to one of hundreds of couriers.
    """
    new, values = _new(alert_type, alerts, now)
    transaction.execute(
        f"{new} INSERT INTO alerts"
        " (id, check_id, type, outage, last_ping_at, deadline_at, ping_count, reason, late_seconds, overdue_seconds,"
        " created_at, outages, next_attempt_at)"
        " SELECT new.id, new.check_id, type, new.outage, new.last_ping_at, new.deadline_at, new.ping_count, reason,"
        f" late_seconds, overdue_seconds, now, CASE type WHEN '{OVERDUE}' THEN 1 ELSE 0 END,"
        " CASE WHEN webhook_url IS NOT NULL AND waiting = 0 THEN now END"
        " FROM new JOIN keys ON keys.id = new.api_key_id WHERE revoked_at IS NULL"
        " ON CONFLICT (check_id, outage, type) WHERE type <> 'check.reminder' DO NOTHING",
        values,
    )


_OF_ALL = (
    "SELECT new_ids.id, check_id, newest, waiting, type, now, api_key_id, webhook_url, last_ping_at, deadline_at,"
    " ping_count"
)
_OF_OUTAGE = (
    "outage, coalesce(overdue_reason, 'late') AS reason,"
    # The clock may have been set back since.
    " CASE WHEN overdue_deadline_at < now THEN now - overdue_deadline_at ELSE 0 END AS late_seconds,"
    " CASE WHEN overdue_at < now THEN now - overdue_at ELSE 0 END AS overdue_seconds"
)
_OF_TEST = "CAST(NULL AS BIGINT) AS outage, 'late' AS reason, 0 AS late_seconds, 0 AS overdue_seconds"
"""What alerts tell of their checks. Tests are not unique, so their outage is NULL."""


def _new(alert_type: str, alerts: Sequence[_New], now: int) -> tuple[str, list[object]]:
    """The beginning of a statement that has alerts as the table `new`, and its values.

    `newest` is the `seq` of the last one that waits before it, `waiting` how many do.
    """
    rows = ", ".join(["(?, ?, CAST(? AS BIGINT), CAST(? AS BIGINT))"] * len(alerts))
    sql = (
        f"WITH new_ids (check_id, id, newest, waiting) AS (VALUES {rows}),"
        f" news AS (SELECT '{alert_type}' AS type, CAST(? AS BIGINT) AS now),"
        f" new AS ({_OF_ALL}, {_OF_TEST if alert_type == TEST else _OF_OUTAGE}"
        " FROM news, new_ids JOIN checks ON checks.id = check_id)"
    )
    told = [(alert.check_id, alert.id, max(alert.waiting, default=None), len(alert.waiting)) for alert in alerts]
    return sql, [*(value for row in told for value in row), now]


def _merge(transaction: Transaction, alert_type: str, alerts: Sequence[_New], now: int, is_low: bool) -> list[_New]:
    """Let the newest waiting alert of a check tell the new one too, where no further one may be stored.

    Never the only one that waits: it may be on its way. The others are not, because a check's alerts go out in order.
    A recovery that an outage is merged into tells that one alone: its own outage is told by an alert before it.
    Returns the alerts that were not merged.
    """
    many = [alert for alert in alerts if len(alert.waiting) >= WAITING_WHILE_LOW]
    if not many:
        return list(alerts)
    most = WAITING_WHILE_LOW if is_low else WAITING_ALERTS
    new, values = _new(alert_type, many, now)
    rows = transaction.execute(
        f"{new} UPDATE alerts SET type = new.type, outage = new.outage,"
        " outages = outages + CASE WHEN new.type = ? THEN 1 ELSE 0 END,"
        " created_at = CASE outages WHEN 0 THEN new.now ELSE created_at END,"
        " last_ping_at = new.last_ping_at, deadline_at = new.deadline_at, ping_count = new.ping_count,"
        " reason = new.reason, late_seconds = new.late_seconds, overdue_seconds = new.overdue_seconds"
        f" FROM new WHERE alerts.seq = newest AND {attempts.IS_PENDING} AND waiting >= CASE WHEN"
        " (SELECT created_at FROM alerts AS told WHERE told.check_id = new.check_id AND told.outage IS NOT NULL"
        " ORDER BY told.seq DESC LIMIT 1 OFFSET ?) > new.now - ? THEN ? ELSE ? END"
        " AND NOT EXISTS (SELECT 1 FROM alerts AS twin WHERE twin.check_id = new.check_id"
        " AND twin.outage = new.outage AND twin.type = new.type AND twin.type <> 'check.reminder')"
        " RETURNING alerts.check_id",
        (*values, OVERDUE, ALERTS_AN_HOUR - 1, HOUR_SECONDS, WAITING_WHILE_LOW, most),
    ).fetchall()
    merged = {row[0] for row in rows}
    return [alert for alert in alerts if alert.check_id not in merged]


def _subjects(transaction: Transaction, check_ids: Sequence[str]) -> list[str]:
    """The names of these checks in the log, without those of revoked keys."""
    if not check_ids:
        return []
    rows = transaction.execute(
        "SELECT checks.id, prefix FROM checks JOIN keys ON keys.id = checks.api_key_id"
        f" WHERE checks.id IN ({', '.join('?' * len(check_ids))}) AND revoked_at IS NULL",
        check_ids,
    ).fetchall()
    prefixes = {row[0]: row[1] for row in rows}
    return [subject_of(check_id, prefixes[check_id]) for check_id in check_ids if check_id in prefixes]


def _shown(row: Row, due_at: dict[bool, int | None]) -> dict[str, Any]:
    """An alert as it is shown. `due_at` has the times of older ones that wait, by whether they are tests."""
    shown = dict(row)
    if row["state"] == "pending":
        shown["next_attempt_at"] = due_at.setdefault(row["type"] == TEST, row["next_attempt_at"])
    for name in ("created_at", "next_attempt_at"):
        shown[name] = time_or_none(shown[name])
    return shown
