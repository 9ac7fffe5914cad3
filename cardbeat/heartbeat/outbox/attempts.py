"""Stores the results of attempts to deliver alerts, and what follows from them.

Each statement stores up to 100 results: a statement costs a round trip to PostgreSQL, and the sweep waits for all.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from cardbeat.database import Transaction

AT_ONCE = 100
"""Most attempts in one statement."""
KEPT, KEPT_OF_MANY = 100, 20
"""Alerts that a check keeps; older finished ones are deleted. The second is for a key with more than `FEW_CHECKS`."""
FEW_CHECKS = 20


class Attempt(NamedTuple):
    """The result of one attempt as it is stored; `next_attempt_at` is None for a finished alert.

    `webhook_url` is where it was sent, `before` the number of attempts made earlier. `counted` is 0 for one that is not
    counted, and then the alert is due no earlier than `next_attempt_at`. `id` is the alert's: after a failover to a
    standby that lagged behind, another alert may have the same `seq`.
    """

    seq: int
    id: str
    state: str
    status: int | None
    error: str | None
    next_attempt_at: int | None
    webhook_url: str
    before: int
    counted: int = 1


def store(transaction: Transaction, attempts: Sequence[Attempt], now: int) -> tuple[set[int], list[str], list[str]]:
    """Store results, at most one for an alert, and with each its check's `delivery`.

    The alert behind a finished one is due `now`, and an outage that waits for a retry if a test was delivered. A result
    is ignored unless it is of the alert's next attempt: then another process has made that attempt too. Returns the
    `seq` of each alert that failed at a URL which its check no longer has, and the checks' ids of those that ended
    undelivered, and of outages that waited for a retry.
    """
    moved, failed, hurried = set[int](), list[str](), list[str]()
    for start in range(0, len(attempts), AT_ONCE):
        some = attempts[start : start + AT_ONCE]
        moved_now = _count_moved(transaction, [attempt for attempt in some if attempt.state != "delivered"])
        stored = _store(transaction, [attempt for attempt in some if attempt.seq not in moved_now])
        _note_delivery(transaction, stored)
        finished = {check_id for attempt, check_id in stored if attempt.state != "pending"}
        delivered = {check_id for attempt, check_id in stored if attempt.state == "delivered"}
        hurried += _make_due(transaction, finished, delivered, now)
        _drop_oldest(transaction, finished)
        moved |= moved_now
        failed += [check_id for attempt, check_id in stored if attempt.state == "failed"]
    return moved, failed, hurried


def _drop_oldest(transaction: Transaction, check_ids: Collection[str]) -> None:
    """Delete the finished alerts of these checks beyond the newest `KEPT` of all, or `KEPT_OF_MANY`."""
    if check_ids:
        beyond = "SELECT seq FROM alerts WHERE check_id = checks.id ORDER BY seq DESC LIMIT 1 OFFSET"
        transaction.execute(
            "WITH kept (check_id, beyond) AS MATERIALIZED ("
            f"SELECT id, CASE WHEN totals_by_key.checks > ? THEN ({beyond} ?) ELSE ({beyond} ?) END"
            " FROM checks JOIN totals_by_key ON totals_by_key.api_key_id = checks.api_key_id"
            f" WHERE id IN ({', '.join('?' * len(check_ids))}))"
            " DELETE FROM alerts WHERE seq IN (SELECT old.seq FROM kept JOIN alerts AS old"
            " ON old.check_id = kept.check_id AND old.seq <= kept.beyond WHERE old.state <> 'pending')",
            (FEW_CHECKS, KEPT_OF_MANY, KEPT, *check_ids),
        )


def drop_one_each(transaction: Transaction, check_ids: Collection[str]) -> None:
    """Delete the oldest finished alert of each of these checks, so that a new one takes no more room."""
    transaction.execute(
        "DELETE FROM alerts WHERE seq IN (SELECT min(seq + 0) FROM alerts WHERE state <> 'pending'"
        f" AND check_id IN ({', '.join('?' * len(check_ids))}) GROUP BY check_id)",
        (*check_ids,),
    )


_RESULT = "(CAST(? AS BIGINT), ?, ?, CAST(? AS BIGINT), ?, CAST(? AS BIGINT), ?, CAST(? AS BIGINT), CAST(? AS BIGINT))"
IS_PENDING = "alerts.state || '' = 'pending'"
"""Concatenation keeps PostgreSQL from using the index of pending alerts: its statistics may say that there are few,
and it would read all of a burst to find these."""
_IS_NEXT = f"alerts.seq = result.seq AND alerts.id = result.id AND {IS_PENDING} AND attempts = result.made_before"


def _update(transaction: Transaction, attempts: Sequence[Attempt], changes: str, among: str = "") -> dict[int, str]:
    """Count attempts, and change more of their alerts; returns the id of the check by the `seq` of each.

    `changes` and the further condition `among` are SQL, in which the attempts are the table `result`.
    """
    if not attempts:
        return {}
    names = "seq, id, state, status, error, next_attempt_at, webhook_url, made_before, counted"
    rows = transaction.execute(
        f"WITH result ({names}) AS (VALUES {', '.join([_RESULT] * len(attempts))})"
        " UPDATE alerts SET attempts = attempts + result.counted, last_status = coalesce(result.status, last_status),"
        f" last_error = result.error{changes} FROM result WHERE {_IS_NEXT}{among} RETURNING alerts.seq, check_id",
        [value for made in attempts for value in made],
    )
    return dict(rows.fetchall())


def _count_moved(transaction: Transaction, attempts: Sequence[Attempt]) -> set[int]:
    """Count the attempts that failed at a URL which the check no longer has; returns the `seq` of their alerts."""
    has_moved = (
        " AND EXISTS (SELECT 1 FROM checks WHERE checks.id = alerts.check_id"
        " AND (webhook_url IS NULL OR webhook_url <> result.webhook_url))"
    )
    return set(_update(transaction, attempts, "", has_moved))


def _store(transaction: Transaction, attempts: Sequence[Attempt]) -> list[tuple[Attempt, str]]:
    """Store results; returns those that were not ignored, in their order, each with the id of its check."""
    # What is not counted can only put the next attempt off.
    due = "WHEN counted = 0 AND alerts.next_attempt_at > result.next_attempt_at THEN alerts.next_attempt_at"
    changes = f", state = result.state, next_attempt_at = CASE {due} ELSE result.next_attempt_at END"
    checks = _update(transaction, attempts, changes)
    return [(attempt, checks[attempt.seq]) for attempt in attempts if attempt.seq in checks]


def _note_delivery(transaction: Transaction, stored: Iterable[tuple[Attempt, str]]) -> None:
    """Store the result of each check's last attempt as its `delivery`, unless it has another webhook URL by now."""
    last = {
        (check_id, attempt.webhook_url): "ok" if attempt.state == "delivered" else "failing"
        for attempt, check_id in stored
    }
    if last:
        transaction.execute(
            f"WITH result (check_id, webhook_url, delivery) AS (VALUES {', '.join(['(?, ?, ?)'] * len(last))})"
            " UPDATE checks SET delivery = result.delivery FROM result"
            " WHERE checks.id = result.check_id AND checks.webhook_url = result.webhook_url"
            " AND (checks.delivery IS NULL OR checks.delivery <> result.delivery)",
            [value for where, delivery in last.items() for value in (*where, delivery)],
        )


def _make_due(transaction: Transaction, finished: Collection[str], delivered: Collection[str], now: int) -> list[str]:
    """Make the first waiting alert of each of these checks due, and its first waiting test, but for one that was.

    If a test was delivered, also an outage that waits for a retry; returns the check's id of each such.
    """
    if not finished:
        return []
    rows = transaction.execute(
        "UPDATE alerts SET next_attempt_at = ? WHERE (next_attempt_at IS NULL OR next_attempt_at > ? AND attempts > 0"
        f" AND outage IS NOT NULL AND check_id IN ({', '.join('?' * len(delivered)) or 'NULL'})) AND seq IN ("
        "SELECT min(own.seq + 0) FROM alerts AS own INDEXED BY alerts_waiting JOIN checks ON checks.id = check_id"
        f" WHERE state = 'pending' AND check_id IN ({', '.join('?' * len(finished))})"
        " AND webhook_url IS NOT NULL GROUP BY check_id, own.outage IS NULL) RETURNING check_id, attempts",
        (now, now, *delivered, *finished),
    )
    return [check_id for check_id, attempts in rows if attempts]


def put_off(transaction: Transaction, alerts: Sequence[tuple[int, int]]) -> None:
    """Make alerts, each given by its `seq`, due no earlier than the given time. At most `AT_ONCE`."""
    rows = ", ".join(["(CAST(? AS BIGINT), CAST(? AS BIGINT))"] * len(alerts))
    transaction.execute(
        f"WITH result (seq, next_attempt_at) AS (VALUES {rows})"
        " UPDATE alerts SET next_attempt_at = result.next_attempt_at FROM result"
        f" WHERE alerts.seq = result.seq AND {IS_PENDING} AND alerts.next_attempt_at < result.next_attempt_at",
        [value for alert in alerts for value in alert],
    )
