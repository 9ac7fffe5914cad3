"""Writes pings to the table `checks`, all that wait for the same commit together."""

from collections import Counter, defaultdict
from collections.abc import Sequence

from cardbeat.database import Database, Row, Transaction
from cardbeat.heartbeat.transitions import KEY_PREFIX


def note_pings(database: Database, transaction: Transaction, check_ids: Sequence[str], now: int) -> list[Row]:
    """Record pings at this Unix second; the rows `id`, `status`, `deadline_at` of the checks that exist.

    The status is the one before the ping; this transaction now holds the row. Call `turn_back` for overdue checks.
    """
    unique = list(dict.fromkeys(check_ids))
    if len(unique) > 1:
        ids = _padded(unique)
        database.lock(transaction, f"SELECT seq FROM checks WHERE id IN ({_marks(ids)}) ORDER BY seq", ids)
    if len(unique) == len(check_ids):
        return _note(transaction, unique, 1, now)
    by_number = defaultdict(list)
    for check_id, number in Counter(check_ids).items():
        by_number[number].append(check_id)
    return [row for number, ids in by_number.items() for row in _note(transaction, ids, number, now)]


def turn_back(transaction: Transaction, check_ids: Sequence[str]) -> list[Row]:
    """Turn overdue checks to on time; their rows, each with the column `KEY_PREFIX`."""
    return transaction.execute(
        f"UPDATE checks SET status = 'on_time' WHERE status = 'overdue' AND id IN ({_marks(check_ids)})"
        f" RETURNING *, {KEY_PREFIX}",
        check_ids,
    ).fetchall()


def _note(transaction: Transaction, check_ids: list[str], pings: int, now: int) -> list[Row]:
    """Record `pings` pings of each of these checks."""
    ids = _padded(check_ids)
    return transaction.execute(
        "UPDATE checks SET clock_from = ?, last_ping_at = ?, ping_count = ping_count + ?"
        f" WHERE id IN ({_marks(ids)})"
        " AND EXISTS (SELECT 1 FROM keys WHERE keys.id = api_key_id AND revoked_at IS NULL)"
        " RETURNING id, status, deadline_at",
        (now, now, pings, *ids),
    ).fetchall()


def _padded(check_ids: list[str]) -> list[str]:
    """The ids, the last one repeated up to a power of two: so that few different statements have to be prepared."""
    return check_ids + check_ids[-1:] * ((1 << (len(check_ids) - 1).bit_length()) - len(check_ids))


def _marks(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))
