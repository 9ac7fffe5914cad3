"""Limits of test alerts. They are low because a stranger with a free key chooses the receiver."""

from cardbeat.config import TESTS_AN_HOUR
from cardbeat.database import Transaction
from cardbeat.errors import TooMany
from cardbeat.heartbeat.check import Check

WAITING_TESTS = 5
"""Test alerts of one check that may wait."""
HOUR_SECONDS = 3600
_SHORTEST_RETRY_SECONDS, _LONGEST_RETRY_SECONDS = 10, 3600
"""Bounds of `Retry-After` while tests wait: the longest attempt, and long enough to repair the receiver."""


def take_test(transaction: Transaction, check: Check, now: int) -> None:
    """Count a test alert of this check in the caller's transaction. Raises `TooMany` above a limit.

    Counts rows, so the limits hold after a restart, for several processes, and after a check is deleted.
    """
    # Locks the key's row, so that on PostgreSQL no other node counts at the same time.
    transaction.execute("UPDATE keys SET tier = tier WHERE id = ?", (check.api_key_id,))
    # Only test alerts have no outage.
    waiting = transaction.execute(
        "SELECT next_attempt_at FROM alerts WHERE check_id = ? AND outage IS NULL AND state = 'pending' ORDER BY seq",
        (check.id,),
    ).fetchall()
    if len(waiting) >= WAITING_TESTS:
        seconds = (waiting[0]["next_attempt_at"] or 0) - now
        seconds = min(max(seconds, _SHORTEST_RETRY_SECONDS), _LONGEST_RETRY_SECONDS)
        sentence = f"{WAITING_TESTS} test alerts of this check wait for its receiver already; try again in {seconds} s."
        raise TooMany(sentence, seconds)
    # A time in the future was stored before the clock was set back.
    sql = "DELETE FROM tests_taken WHERE api_key_id = ? AND taken_at NOT BETWEEN ? AND ?"
    transaction.execute(sql, (check.api_key_id, now - HOUR_SECONDS + 1, now))
    taken, oldest_at = transaction.execute(
        "SELECT count(*), min(taken_at) FROM tests_taken WHERE api_key_id = ?", (check.api_key_id,)
    ).fetchone()
    if taken >= TESTS_AN_HOUR:
        seconds = oldest_at + HOUR_SECONDS - now
        sentence = f"This key has sent {TESTS_AN_HOUR} test alerts within an hour, its limit; try again in {seconds} s."
        raise TooMany(sentence, seconds)
    transaction.execute("INSERT INTO tests_taken (api_key_id, taken_at) VALUES (?, ?)", (check.api_key_id, now))


def tests_taken(transaction: Transaction, key_id: str, now: int) -> int:
    """The number of test alerts of a key in the last hour."""
    sql = "SELECT count(*) FROM tests_taken WHERE api_key_id = ? AND taken_at BETWEEN ? AND ?"
    (count,) = transaction.execute(sql, (key_id, now - HOUR_SECONDS + 1, now)).fetchone()
    return int(count)
