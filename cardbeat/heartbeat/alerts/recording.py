"""Stores alerts with the changes that they report, in the transactions of these.

The rows of the checks are locked by then: each transaction changes its check before its alerts.
"""

import secrets
from collections.abc import Collection, Sequence

from cardbeat.database import Row, Transaction
from cardbeat.heartbeat.alerts.message import RECOVERED, REMINDER, TEST
from cardbeat.heartbeat.alerts.target import host_of
from cardbeat.heartbeat.check import Check

WAITING_ALERTS = 20
"""While so many alerts of a check wait, outages behind them get none of their own."""
URL_REMOVED = "The webhook URL was removed."


def record(
    transaction: Transaction,
    alert_type: str,
    checks: Sequence[Check],
    now: int,
) -> None:
    """Store one alert for each check that has a webhook; call `Delivery.wake` after the commit.

    `checks` are as their change left them, up to 1,000. No outage gets a second alert of one
    type. A waiting reminder gives way to the next one and to the recovery; none is stored while
    another alert of an outage waits. While `WAITING_ALERTS` wait for a check, an outage that
    ends untold is taken back: its alert is deleted, it gets no recovery, and the first alert
    that waits counts it.
    """
    checks = [check for check in checks if check.webhook_url is not None]
    ids = [check.id for check in checks]
    if alert_type in (RECOVERED, REMINDER):
        drop_reminders(transaction, ids)
    waiting = _waiting(transaction, ids, alert_type == TEST)
    if alert_type == REMINDER:
        checks = [check for check in checks if check.id not in waiting]
    if alert_type == RECOVERED:
        taken_back = _take_back(transaction, checks, waiting)
        checks = [check for check in checks if check.id not in taken_back]
    firsts = [
        waiting[check.id][0]["seq"]
        for check in checks
        if check.id in waiting
    ]
    _hurry(transaction, firsts, now)
    alerts = [
        _alert(alert_type, check, check.id in waiting, now)
        for check in checks
    ]
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
    if check_ids:
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


def marks(values: Collection[object]) -> str:
    """The `?` of so many values."""
    return ", ".join("?" * len(values))


def _waiting(
    transaction: Transaction, check_ids: Sequence[str], is_test: bool
) -> dict[str, list[Row]]:
    """The alerts of these checks that wait, or their tests: by the check's id, the oldest first."""
    if not check_ids:
        return {}
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
    transaction: Transaction,
    checks: Sequence[Check],
    waiting: dict[str, list[Row]],
) -> set[str]:
    """Take back the outages that end untold behind many waiting alerts; the ids of their checks."""
    taken_back = set()
    for check in checks:
        alerts = waiting.get(check.id, [])
        if len(alerts) < WAITING_ALERTS:
            continue
        own = alerts[-1]
        if own["outage"] == check.outage:
            transaction.execute(
                "DELETE FROM alerts WHERE seq = ?", (own["seq"],)
            )
            transaction.execute(
                "UPDATE alerts SET outages = outages + 1 WHERE seq = ?",
                (alerts[0]["seq"],),
            )
            taken_back.add(check.id)
    return taken_back


def _hurry(
    transaction: Transaction, seqs: Sequence[int], now: int
) -> None:
    """Let alerts that wait for a retry be tried now, at no cost to their schedule.

    Not before `asked_until`. A test does not wait for that, and has its cost: who sends it looks
    whether its attempts have grown.
    """
    if seqs:
        transaction.execute(
            "UPDATE alerts SET next_attempt_at = ?,"
            " attempts = attempts - CASE WHEN outage IS NULL THEN 0 ELSE 1 END"
            f" WHERE seq IN ({marks(seqs)}) AND attempts > 0 AND next_attempt_at > ?"
            " AND (outage IS NULL OR coalesce(asked_until, 0) <= ?)",
            (now, *seqs, now, now),
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
