"""How many test alerts are taken: a stranger chooses where they go, so their number is small."""

from cardbeat.database import Transaction
from cardbeat.errors import TooMany
from cardbeat.heartbeat.check import Check

WAITING_TESTS = 5
"""Test alerts of a check that wait for its receiver at the most."""
TESTS_AN_HOUR = 30
"""Test alerts of all checks of a key that are taken in any 60 minutes."""
HOUR_SECONDS = 3600
_SHORTEST_RETRY_SECONDS, _LONGEST_RETRY_SECONDS = 10, 3600
"""Of those that wait one may be finished with its next attempt: an attempt takes up to 10 s, and the receiver may be
mended, or the check be given another, long before a late one."""


def take_test(transaction: Transaction, check: Check, now: int) -> None:
    """Count a test alert of this check in the caller's transaction. Raises `TooMany` where it must not be taken.

    The count is of rows, so that it holds over restarts and for several processes, and is not lost with a check that
    is deleted.
    """
    # It takes the key's row, so that with several writers nobody else counts meanwhile.
    transaction.execute("UPDATE keys SET tier = tier WHERE id = ?", (check.api_key_id,))
    waiting, next_attempt_at = _waiting_tests(transaction, check.id)
    if waiting >= WAITING_TESTS:
        sentence = f"{WAITING_TESTS} test alerts of this check wait for its receiver, which is all that may."
        raise TooMany(sentence, min(max(next_attempt_at - now, _SHORTEST_RETRY_SECONDS), _LONGEST_RETRY_SECONDS))
    # A time still to come is from before the clock was set back.
    sql = "DELETE FROM tests_taken WHERE api_key_id = ? AND taken_at NOT BETWEEN ? AND ?"
    transaction.execute(sql, (check.api_key_id, now - HOUR_SECONDS + 1, now))
    taken, oldest_at = transaction.execute(
        "SELECT count(*), min(taken_at) FROM tests_taken WHERE api_key_id = ?", (check.api_key_id,)
    ).fetchone()
    if taken >= TESTS_AN_HOUR:
        sentence = f"This key has had its {TESTS_AN_HOUR} test alerts of this hour; try again later."
        raise TooMany(sentence, oldest_at + HOUR_SECONDS - now)
    transaction.execute("INSERT INTO tests_taken (api_key_id, taken_at) VALUES (?, ?)", (check.api_key_id, now))


def tests_taken(transaction: Transaction, key_id: str, now: int) -> int:
    """How many test alerts of a key were taken in the last hour."""
    sql = "SELECT count(*) FROM tests_taken WHERE api_key_id = ? AND taken_at BETWEEN ? AND ?"
    (count,) = transaction.execute(sql, (key_id, now - HOUR_SECONDS + 1, now)).fetchone()
    return int(count)


def _waiting_tests(transaction: Transaction, check_id: str) -> tuple[int, int]:
    """How many wait, and when the first of them is or was due, in Unix seconds."""
    # A test is of no outage.
    rows = transaction.execute(
        "SELECT next_attempt_at FROM alerts WHERE check_id = ? AND outage IS NULL AND state = 'pending' ORDER BY seq",
        (check_id,),
    ).fetchall()
    return len(rows), rows[0]["next_attempt_at"] or 0 if rows else 0
