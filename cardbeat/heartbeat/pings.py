"""Writes pings and failures to the table `checks`, all that wait for the same commit together."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from enum import Enum

from cardbeat.database import Database, Row, Transaction
from cardbeat.heartbeat.transitions import TURNED, Turned

_HAS_KEY = "EXISTS (SELECT 1 FROM keys WHERE keys.id = api_key_id AND revoked_at IS NULL)"
"""The key of a check is not revoked."""


class Signal(Enum):
    """What a job tells. `OTHER` changes nothing: that it starts, or a line of its log."""

    PING = "ping"
    FAILURE = "failure"
    OTHER = "other"


def in_order(signals: Sequence[tuple[str, Signal]]) -> Iterable[tuple[Signal, Sequence[int]]]:
    """Their places, by signal, in at most one part for each signal: in a part no check has two signals.

    All came at once, so those of a check may count in any order that ends with the last one: with equal ones together,
    a check turns at most twice, however many there are. Nearly always all are equal.
    """
    kinds = [signal for _, signal in signals]
    if kinds.count(kinds[0]) == len(kinds):
        return [(kinds[0], range(len(kinds)))]
    told = dict[str, list[Signal]]()
    for check_id, signal in signals:
        told[check_id] = [*(kind for kind in told.get(check_id, ()) if kind is not signal), signal]
    parts = [defaultdict[Signal, list[int]](list) for _ in Signal]
    for place, (check_id, signal) in enumerate(signals):
        parts[told[check_id].index(signal)][signal].append(place)
    return [each for part in parts for each in part.items()]


def lock(database: Database, transaction: Transaction, signals: Sequence[tuple[str, Signal]]) -> None:
    """Lock the checks that a group of signals changes, before the first of them is changed.

    All transactions lock rows of `checks` by `seq`, and those of the totals, which a check that turns changes, after
    them: else two nodes could wait for each other, and both stand still until the server notices, a second later.
    """
    unique = list(dict.fromkeys(check_id for check_id, signal in signals if signal is not Signal.OTHER))
    if len(unique) > 1:
        ids = _padded(unique)
        database.lock(transaction, f"SELECT seq FROM checks WHERE id IN ({_marks(ids)}) ORDER BY seq", ids)


def note_pings(transaction: Transaction, check_ids: Sequence[str], now: int) -> list[Row]:
    """Record pings at this Unix second; the rows `id`, `status`, `deadline_at` of the checks that exist.

    The status is the one before the ping. Call `lock` before, and `turn_back` for overdue checks.
    """
    unique = list(dict.fromkeys(check_ids))
    if len(unique) == len(check_ids):
        return _note(transaction, unique, 1, now)
    by_number = defaultdict(list)
    for check_id, number in Counter(check_ids).items():
        by_number[number].append(check_id)
    return [row for number, ids in by_number.items() for row in _note(transaction, ids, number, now)]


def note_failures(transaction: Transaction, check_ids: Sequence[str], now: int) -> list[Row]:
    """Record failures at this Unix second, as `note_pings` does. Call `turn_overdue` for checks that are on time."""
    ids = _padded(list(dict.fromkeys(check_ids)))
    return transaction.execute(
        f"UPDATE checks SET failed_at = ? WHERE id IN ({_marks(ids)}) AND {_HAS_KEY} RETURNING id, status, deadline_at",
        (now, *ids),
    ).fetchall()


def turn_overdue(transaction: Transaction, check_ids: Sequence[str], now: int) -> list[Turned]:
    """Turn checks overdue that failed and are not snoozed."""
    sql = (
        "UPDATE checks SET status = 'overdue', outage = outage + 1, overdue_at = ?, overdue_deadline_at = deadline_at,"
        " overdue_reason = 'failed', remind_at = ? + repeat_seconds"
        f" WHERE status = 'on_time' AND id IN ({_marks(check_ids)})"
        f" AND (snoozed_until IS NULL OR clock_from <= ? OR clock_from > snoozed_until) {TURNED}"
    )
    return [Turned(*row) for row in transaction.execute(sql, (now, now, *check_ids, now))]


def look_at(transaction: Transaction, check_ids: Sequence[str]) -> list[Row]:
    """The rows `id`, `status`, `deadline_at` of these checks."""
    sql = f"SELECT id, status, deadline_at FROM checks WHERE id IN ({_marks(check_ids)}) AND {_HAS_KEY}"
    return transaction.execute(sql, check_ids).fetchall()


def turn_back(transaction: Transaction, check_ids: Sequence[str]) -> list[Turned]:
    """Turn overdue checks to on time."""
    sql = (
        "UPDATE checks SET status = 'on_time', remind_at = NULL"
        f" WHERE status = 'overdue' AND id IN ({_marks(check_ids)}) {TURNED}"
    )
    return [Turned(*row) for row in transaction.execute(sql, check_ids)]


def _note(transaction: Transaction, check_ids: list[str], pings: int, now: int) -> list[Row]:
    """Record `pings` pings of each of these checks. A snooze goes on: the next ping is expected after it."""
    ids = _padded(check_ids)
    return transaction.execute(
        "UPDATE checks SET clock_from = CASE WHEN clock_from > ? AND clock_from <= snoozed_until THEN clock_from"
        " ELSE ? END,"
        " last_ping_at = ?, ping_count = ping_count + ?, failed_at = NULL"
        f" WHERE id IN ({_marks(ids)}) AND {_HAS_KEY} RETURNING id, status, deadline_at",
        (now, now, now, pings, *ids),
    ).fetchall()


def _padded(check_ids: list[str]) -> list[str]:
    """The ids, the last one repeated up to a power of two: so that few different statements have to be prepared."""
    return check_ids + check_ids[-1:] * ((1 << (len(check_ids) - 1).bit_length()) - len(check_ids))


def _marks(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))
