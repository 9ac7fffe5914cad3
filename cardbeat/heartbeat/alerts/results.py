"""Stores the results of posts, and what follows from them."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from cardbeat.database import Row, Transaction
from cardbeat.heartbeat.alerts.recording import marks

KEPT = 100
"""Alerts that a check keeps; older finished ones are deleted."""


class Message(NamedTuple):
    """What one attempt needs. `subject` names the check in the log, each of `secrets` signs."""

    seq: int
    id: str
    check_id: str
    subject: str
    webhook_url: str
    body: bytes
    secrets: tuple[str, ...]
    attempts: int
    outages: int
    created_at: int


class Result(NamedTuple):
    """The result of an attempt, as it is stored. The times are None for a finished alert."""

    message: Message
    status: int | None
    error: str | None
    state: str
    next_attempt_at: int | None = None
    asked_until: int | None = None


def store(transaction: Transaction, results: Sequence[Result], now: int) -> list[Result]:
    """Store results of checks whose rows are locked; those that count, as they are stored.

    1. A result counts only for the attempt that it is of. One that failed at a URL which the check
    no longer has changes neither state nor time. 2. The check shows the last result. 3. Behind an
    alert that ended the next one is due, and a delivered test lets an outage that waits for its
    retry be tried. 4. Finished alerts beyond `KEPT` go.
    """
    checks = rows_by(transaction, "checks", "id", {one.message.check_id for one in results})
    alerts = rows_by(transaction, "alerts", "seq", [one.message.seq for one in results])
    counted = [one for one in results if _is_next(one, alerts.get(one.message.seq))]
    stored = [_as_stored(one, alerts, checks) for one in counted]
    if stored:
        _store(transaction, stored)
        _note_delivery(transaction, stored, checks)
        _go_on(transaction, stored, alerts, now)
    return stored


def rows_by(
    connection: Transaction, table: str, name: str, values: Iterable[object]
) -> dict[Any, Row]:
    """The rows of a table with one of these values in this column, by that value."""
    values = list(values)
    if not values:
        return {}
    sql = f"SELECT * FROM {table} WHERE {name} IN ({marks(values)})"
    return {row[name]: row for row in connection.execute(sql, values).fetchall()}


def _is_next(result: Result, alert: Row | None) -> bool:
    """Whether a result is of the next attempt at the alert as it is stored."""
    message = result.message
    return (
        alert is not None
        and alert["id"] == message.id
        and alert["state"] == "pending"
        and alert["attempts"] == message.attempts
    )


def _is_at_present_url(result: Result, checks: dict[Any, Row]) -> bool:
    check = checks.get(result.message.check_id)
    return check is not None and check["webhook_url"] == result.message.webhook_url


def _as_stored(result: Result, alerts: dict[Any, Row], checks: dict[Any, Row]) -> Result:
    """The result, without effect on state and time if it failed at a URL that is gone."""
    if result.state == "delivered" or _is_at_present_url(result, checks):
        return result
    due_at = alerts[result.message.seq]["next_attempt_at"]
    return result._replace(state="pending", next_attempt_at=due_at, asked_until=None)


def _store(transaction: Transaction, results: Sequence[Result]) -> None:
    row = (
        "(CAST(? AS BIGINT), CAST(? AS BIGINT), CAST(? AS TEXT), CAST(? AS TEXT),"
        " CAST(? AS BIGINT), CAST(? AS BIGINT))"
    )
    values: list[object] = []
    for result in results:
        values += (result.message.seq, *result[1:])
    transaction.execute(
        "WITH made (seq, status, error, state, due_at, asked) AS"
        f" (VALUES {', '.join([row] * len(results))})"
        " UPDATE alerts SET attempts = attempts + 1,"
        " last_status = coalesce(made.status, last_status), last_error = made.error,"
        " state = made.state, next_attempt_at = made.due_at, asked_until = made.asked"
        " FROM made WHERE alerts.seq = made.seq",
        values,
    )


def _note_delivery(
    transaction: Transaction, results: Sequence[Result], checks: dict[Any, Row]
) -> None:
    """Store the last result of each check as its `delivery`, and what follows for its alerts."""
    last = {}
    for result in results:
        if _is_at_present_url(result, checks):
            last[result.message.check_id] = "ok" if result.state == "delivered" else "failing"
    for delivery, is_new in (("ok", 0), ("failing", 1)):
        changed = [
            check_id
            for check_id, told in last.items()
            if told == delivery and checks[check_id]["delivery"] != delivery
        ]
        if changed:
            among = marks(changed)
            sql = f"UPDATE checks SET delivery = ? WHERE id IN ({among})"
            transaction.execute(sql, (delivery, *changed))
            sql = f"UPDATE alerts SET is_new = ? WHERE check_id IN ({among}) AND state = 'pending'"
            transaction.execute(sql, (is_new, *changed))


def _go_on(
    transaction: Transaction, results: Sequence[Result], alerts: dict[Any, Row], now: int
) -> None:
    """Make due what waits behind finished alerts, and delete the oldest finished ones."""
    ended = list({one.message.check_id for one in results if one.state != "pending"})
    if not ended:
        return
    firsts = transaction.execute(
        "SELECT check_id, seq, outage, attempts, next_attempt_at FROM alerts WHERE seq IN ("
        f"SELECT min(seq) FROM alerts WHERE state = 'pending' AND check_id IN ({marks(ended)})"
        " GROUP BY check_id, outage IS NULL)",
        ended,
    ).fetchall()
    tested = {
        one.message.check_id
        for one in results
        if one.state == "delivered" and alerts[one.message.seq]["outage"] is None
    }
    due = [
        first["seq"]
        for first in firsts
        if first["next_attempt_at"] is None
        or (first["attempts"] and first["outage"] is not None and first["check_id"] in tested)
    ]
    if due:
        sql = f"UPDATE alerts SET next_attempt_at = ? WHERE seq IN ({marks(due)})"
        transaction.execute(sql, (now, *due))
    _pass_on_outages(transaction, results, alerts, firsts)
    _drop_oldest(transaction, ended)


def _pass_on_outages(
    transaction: Transaction,
    results: Sequence[Result],
    alerts: dict[Any, Row],
    firsts: Iterable[Row],
) -> None:
    """Let the next alert of a check tell the outages that a finished one has not told."""
    next_of = {first["check_id"]: first["seq"] for first in firsts if first["outage"] is not None}
    for result in results:
        message = result.message
        told = message.outages if result.state == "delivered" else 0
        untold = alerts[message.seq]["outages"] - told
        if untold > 0 and result.state != "pending" and message.check_id in next_of:
            transaction.execute(
                "UPDATE alerts SET outages = outages + ? WHERE seq = ?",
                (untold, next_of[message.check_id]),
            )


def _drop_oldest(transaction: Transaction, check_ids: Sequence[str]) -> None:
    """Delete the finished alerts of these checks beyond the newest `KEPT`."""
    rows = transaction.execute(
        "SELECT id, (SELECT seq FROM alerts WHERE check_id = checks.id"
        " ORDER BY seq DESC LIMIT 1 OFFSET ?) AS beyond"
        f" FROM checks WHERE id IN ({marks(check_ids)})",
        (KEPT, *check_ids),
    ).fetchall()
    for row in rows:
        if row["beyond"] is not None:
            transaction.execute(
                "DELETE FROM alerts WHERE check_id = ? AND seq <= ? AND state <> 'pending'",
                (row["id"], row["beyond"]),
            )
