"""When an alert is tried again, decided from what came of its last attempt: the schedule of the README's "Alerts"."""

import email.utils
from dataclasses import dataclass

from cardbeat.heartbeat.alert import Outcome

SCHEDULE_SECONDS = (5, 30, 2 * 60, 10 * 60, 30 * 60, 2 * 3600, 5 * 3600, 10 * 3600, 14 * 3600)
"""Waits after the first, second ... failed attempt; the one after the last of them is the end."""
JITTER = 0.2
"""The largest part of a wait that is added to it, so that what failed together is not tried together."""
LONGEST_RETRY_AFTER_SECONDS = 24 * 3600
"""The longest `Retry-After` that is honoured."""
GONE = 410
"""The status by which a receiver says that nothing will be there again."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The alert's new state and, while that is `pending`, the seconds until its next attempt."""

    state: str
    wait_seconds: float | None = None


def verdict(outcome: Outcome, attempts: int, now: float, luck: float) -> Verdict:
    """What follows from the outcome of attempt number `attempts`, counted from 1; `luck` from 0 to 1 sets the jitter.

    `now` is Unix time. `Retry-After` can only lengthen a wait: a receiver can't use up the attempts faster.
    """
    if outcome.error is None:
        return Verdict("delivered")
    if outcome.status == GONE or attempts > len(SCHEDULE_SECONDS):
        return Verdict("failed")
    wait_seconds = SCHEDULE_SECONDS[attempts - 1] * (1 + JITTER * luck)
    return Verdict("pending", max(wait_seconds, _asked_seconds(outcome.retry_after, now)))


def _asked_seconds(retry_after: str | None, now: float) -> float:
    """How many seconds a `Retry-After` asks for, by number or date (RFC 9110, 10.2.3); 0 for one that is not valid."""
    value = (retry_after or "").strip()
    try:
        # The first ten digits are more than a day already, and `float` fails on some thousands.
        seconds = float(value[:10]) if value.isdigit() else email.utils.parsedate_to_datetime(value).timestamp() - now
    except (ValueError, TypeError, OverflowError):
        return 0
    return min(seconds, LONGEST_RETRY_AFTER_SECONDS)
