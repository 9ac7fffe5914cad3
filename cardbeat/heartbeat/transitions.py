"""Turns checks overdue and back: in one transaction the status, the row of the outage, the alert.

It also stores the alerts that tell of no transition: reminders and tests. All that calls `record`
has locked the rows of the checks by then, because it changes a check before its alerts.
"""

import secrets
from collections.abc import Sequence

from cardbeat.database import Row, Transaction, marks
from cardbeat.heartbeat.alerts.message import (
    OVERDUE,
    RECOVERED,
    REMINDER,
    TEST,
)
from cardbeat.heartbeat.alerts.target import host_of
from cardbeat.heartbeat.check import COLUMNS, Check

KEPT_OUTAGES = 1000
"""Of one check."""
WAITING_ALERTS = 20
"""While so many alerts of a check wait, outages behind them get none of their own."""
URL_REMOVED = "The webhook URL was removed."


def turn_overdue(
    transaction: Transaction,
    reason: str,
    where: str,
    values: Sequence[object],
    now: int,
) -> list[Check]:
    """Turn checks overdue that are on time, and store their outages and alerts.

    `where` ends the statement that finds them, `values` are those of its `?`. Returns the checks
    that were turned; on PostgreSQL others may have changed since they were found.
    """
    rows = transaction.execute(
        "UPDATE checks SET status = 'overdue', outage = outage + 1, overdue_at = ?,"
        " overdue_deadline_at = deadline_at, overdue_reason = ?, remind_at = ? + repeat_seconds"
        f" WHERE status = 'on_time' AND {where} RETURNING {COLUMNS}",
        (now, reason, now, *values),
    )
    checks = [Check(*row) for row in rows]
    if checks:
        _begin(transaction, checks)
        record(transaction, OVERDUE, checks, now)
    return checks


def turn_back(
    transaction: Transaction, ids: Sequence[str], now: int
) -> list[Check]:
    """Turn overdue checks back, end their outages and store alerts of that; those turned."""
    rows = transaction.execute(
        "UPDATE checks SET status = 'on_time', remind_at = NULL"
        f" WHERE status = 'overdue' AND id IN ({marks(ids)}) RETURNING {COLUMNS}",
        ids,
    )
    checks = [Check(*row) for row in rows]
    if checks:
        _end(transaction, checks, now)
        record(transaction, RECOVERED, checks, now)
    return checks


def record(
    transaction: Transaction,
    alert_type: str,
    checks: Sequence[Check],
    now: int,
) -> None:
    """Store one alert for each check that has a webhook; call `Delivery.wake` after the commit.

    `checks` are as their change left them, up to 1,000. No outage gets a second alert of one
    type, but for reminders. A waiting reminder gives way to the next one and to the recovery; none
    is stored while another alert of an outage waits. While `WAITING_ALERTS` wait for a check, an
    outage that ends untold is taken back: its alert is deleted, it gets no recovery, and the first
    alert that waits counts it.
    """
    checks = [check for check in checks if check.webhook_url is not None]
    if not checks:
        return
    ids = [check.id for check in checks]
    if alert_type in (RECOVERED, REMINDER):
        drop_reminders(transaction, ids)
    waiting = _waiting(transaction, ids, alert_type == TEST)
    firsts = []
    alerts = []
    for check in checks:
        before = waiting.get(check.id, [])
        if alert_type == REMINDER and before:
            continue
        if alert_type == RECOVERED and _take_back(
            transaction, check, before
        ):
            continue
        if before:
            firsts.append(before[0]["seq"])
        alerts.append(_alert(alert_type, check, bool(before), now))
    _hurry(transaction, firsts, now)
    if alerts:
        row = f"({marks(alerts[0])})"
        transaction.execute(
            f"INSERT INTO alerts ({', '.join(alerts[0])}) VALUES {', '.join([row] * len(alerts))}"
            " ON CONFLICT (check_id, outage, type) WHERE type <> 'check.reminder' DO NOTHING",
            [value for alert in alerts for value in alert.values()],
        )


def drop_reminders(
    transaction: Transaction, check_ids: Sequence[str]
) -> None:
    """Delete the reminders of these checks that wait. A running post may still arrive."""
    transaction.execute(
        "DELETE FROM alerts WHERE state = 'pending' AND type = 'check.reminder'"
        f" AND check_id IN ({marks(check_ids)})",
        check_ids,
    )


def move(
    transaction: Transaction,
    check_id: str,
    webhook_url: str | None,
    now: int,
) -> None:
    """Let a changed webhook URL get what waits, at once; a removed one ends it as failed.

    Attempts made before still count. Call `Delivery.wake` after the commit.
    """
    if webhook_url is None:
        transaction.execute(
            "UPDATE alerts SET state = 'failed', last_error = ?, next_attempt_at = NULL"
            " WHERE check_id = ? AND state = 'pending'",
            (URL_REMOVED, check_id),
        )
    else:
        transaction.execute(
            "UPDATE alerts SET receiver = ?, is_new = 1, asked_until = NULL,"
            " next_attempt_at = CASE WHEN next_attempt_at IS NULL THEN NULL ELSE ? END"
            " WHERE check_id = ? AND state = 'pending'",
            (host_of(webhook_url), now, check_id),
        )


def _begin(transaction: Transaction, checks: Sequence[Check]) -> None:
    transaction.execute(
        "INSERT INTO outages (check_id, key_id, outage, began_at, noticed_at, reason)"
        " SELECT id, api_key_id, outage, CASE overdue_reason"
        " WHEN 'late' THEN overdue_deadline_at ELSE overdue_at END, overdue_at, overdue_reason"
        f" FROM checks WHERE id IN ({marks(checks)})",
        [check.id for check in checks],
    )
    for check in checks:
        # They are numbered without gaps, so this is nearly always nothing.
        if check.outage > KEPT_OUTAGES:
            sql = "DELETE FROM outages WHERE check_id = ? AND outage <= ?"
            transaction.execute(
                sql, (check.id, check.outage - KEPT_OUTAGES)
            )


def _end(
    transaction: Transaction, checks: Sequence[Check], now: int
) -> None:
    values: list[object] = []
    for check in checks:
        values += [check.id, check.outage]
    rows = ", ".join(["(?, CAST(? AS BIGINT))"] * len(checks))
    # Not `WHERE (check_id, outage) IN`: for that SQLite would read the whole table.
    transaction.execute(
        f"WITH ended (check_id, outage) AS (VALUES {rows})"
        " UPDATE outages SET ended_at = ? FROM ended"
        " WHERE outages.check_id = ended.check_id AND outages.outage = ended.outage",
        [*values, now],
    )


def _waiting(
    transaction: Transaction, check_ids: Sequence[str], is_test: bool
) -> dict[str, list[Row]]:
    """The alerts of these checks that wait, or their tests: by the check's id, the oldest first."""
    rows = transaction.execute(
        "SELECT check_id, seq, outage FROM alerts"
        f" WHERE state = 'pending' AND check_id IN ({marks(check_ids)}) ORDER BY seq",
        check_ids,
    )
    found: dict[str, list[Row]] = {}
    for row in rows:
        if (row["outage"] is None) == is_test:
            found.setdefault(row["check_id"], []).append(row)
    return found


def _take_back(
    transaction: Transaction, check: Check, waiting: Sequence[Row]
) -> bool:
    """Take back an outage that ends untold behind many waiting alerts; whether it did."""
    if (
        len(waiting) < WAITING_ALERTS
        or waiting[-1]["outage"] != check.outage
    ):
        return False
    transaction.execute(
        "DELETE FROM alerts WHERE seq = ?", (waiting[-1]["seq"],)
    )
    transaction.execute(
        "UPDATE alerts SET outages = outages + 1 WHERE seq = ?",
        (waiting[0]["seq"],),
    )
    return True


def _hurry(
    transaction: Transaction, seqs: Sequence[int], now: int
) -> None:
    """Let alerts that wait for a retry be tried soon, at no cost to their schedule.

    That is now, or at `asked_until`. Example: an alert was tried at noon, and is to be tried at 2
    p.m.; with a new alert at 12.03 it is tried at 12.10. A test does not wait for that, and has its
    cost: who sends it looks whether its attempts have grown.
    """
    if seqs:
        soon = "CASE WHEN outage IS NOT NULL AND asked_until > ? THEN asked_until ELSE ? END"
        transaction.execute(
            f"UPDATE alerts SET next_attempt_at = {soon},"
            " attempts = attempts - CASE WHEN outage IS NULL THEN 0 ELSE 1 END"
            f" WHERE seq IN ({marks(seqs)}) AND attempts > 0 AND next_attempt_at > {soon}",
            (now, now, *seqs, now, now),
        )


def _alert(
    alert_type: str, check: Check, waits: bool, now: int
) -> dict[str, object]:
    """The row of a new alert, due now unless it waits for an older one of its check.

    A test alert tells of no outage.
    """
    alert = {
        "id": f"msg_{secrets.token_hex(16)}",
        "check_id": check.id,
        "key_id": check.api_key_id,
        "receiver": host_of(check.webhook_url or ""),
        "is_new": int(check.delivery != "ok"),
        "type": alert_type,
        "created_at": now,
        "next_attempt_at": None if waits else now,
        "last_ping_at": check.last_ping_at,
        "deadline_at": check.deadline_at,
        "ping_count": check.ping_count,
    }
    if alert_type == TEST:
        return alert
    return alert | {
        "outage": check.outage,
        "reason": check.overdue_reason or "late",
        # The clock may have been set back since.
        "late_seconds": max(0, now - (check.overdue_deadline_at or now)),
        "overdue_seconds": max(0, now - (check.overdue_at or now)),
    }
