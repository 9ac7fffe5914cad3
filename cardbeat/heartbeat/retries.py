"""When an alert is tried again, decided from what came of its last attempt (CONTRACT 4, Alerts)."""

import email.utils
from dataclasses import dataclass

from cardbeat.heartbeat.webhook import Outcome

SCHEDULE_SECONDS = (5, 30, 2 * 60, 10 * 60, 30 * 60, 2 * 3600, 5 * 3600, 10 * 3600, 14 * 3600)
"""Waits after the first, second ... failed attempt; the one after the last of them is the end."""
JITTER = 0.2
"""The largest part of a wait that is added to it, so that what failed together is not tried together."""
RETRY_AFTER_SECONDS = 24 * 3600
"""The longest `Retry-After` that is honoured."""
GONE = 410


@dataclass(frozen=True, slots=True)
class Verdict:
    """The alert's new state and, while that is `pending`, the seconds until its next attempt."""

    state: str
    wait_seconds: float | None = None


def verdict(outcome: Outcome, attempts: int, now: float, luck: float) -> Verdict:
    """What follows from the `attempts`-th attempt; `luck` from 0 to 1 sets the jitter.

    `Retry-After` only ever puts the next attempt off: a receiver can't use up the attempts faster.
    """
    if outcome.error is None:
        return Verdict("delivered")
    if outcome.final or outcome.status == GONE or attempts > len(SCHEDULE_SECONDS):
        return Verdict("failed")
    wait_seconds = SCHEDULE_SECONDS[attempts - 1] * (1 + JITTER * luck)
    return Verdict("pending", max(wait_seconds, _asked_seconds(outcome.retry_after, now)))


def _asked_seconds(retry_after: str | None, now: float) -> float:
    """What `Retry-After` asks for, in seconds or as a date; 0 where it says nothing of use."""
    value = (retry_after or "").strip()
    try:
        # Ten digits are more than a day; a thousand are no reason to fail.
        seconds = float(value[:10]) if value.isdigit() else email.utils.parsedate_to_datetime(value).timestamp() - now
    except (ValueError, TypeError, OverflowError):
        return 0
    return min(seconds, RETRY_AFTER_SECONDS)
