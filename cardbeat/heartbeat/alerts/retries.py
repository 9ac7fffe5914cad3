"""When an alert is tried again after an attempt: the schedule of `docs/alerts.md`."""

from math import ceil
from typing import NamedTuple

from cardbeat.heartbeat.alerts.message import Outcome

SCHEDULE_SECONDS = (
    5,
    30,
    2 * 60,
    10 * 60,
    30 * 60,
    2 * 3600,
    5 * 3600,
    10 * 3600,
    14 * 3600,
)
"""Waits after the first, second ... failed attempt. The attempt after the last is the last one."""
JITTER = 0.2
"""Up to this part of a wait is added to it, at random, so that not all are tried together again."""
LONGEST_RETRY_AFTER_SECONDS = 24 * 3600
"""The longest `Retry-After` that is honoured."""
OLDEST_SECONDS = 4 * 24 * 3600
"""An alert that is older than this has one more attempt, and is then given up."""
HURRIED_SECONDS = 600
"""How long after its last try a new alert lets one be tried again."""
GONE = 410
"""The status that says that the URL will never work again."""


class Verdict(NamedTuple):
    """The alert's new state and, while that is `pending`, the Unix time of its next attempt.

    Until `asked_until` no new alert of its check lets it be tried sooner.
    """

    state: str
    next_attempt_at: int | None = None
    asked_until: int | None = None


def verdict(
    outcome: Outcome,
    attempts: int,
    now: float,
    created_at: float,
    luck: float,
) -> Verdict:
    """The verdict on attempt number `attempts`, counted from 1; `luck` from 0 to 1 sets the jitter.

    Times are Unix times. `Retry-After` can only lengthen a wait: a receiver must not use up the
    attempts sooner. Example: the second attempt failed, with luck 0.5 and `Retry-After: 20`. The
    schedule says 30 s, the jitter adds 3 s, which is more than 20 s: 33 s.
    """
    if outcome.error is None:
        return Verdict("delivered")
    is_last = (
        attempts > len(SCHEDULE_SECONDS)
        or now - created_at >= OLDEST_SECONDS
    )
    if outcome.status == GONE or is_last:
        return Verdict("failed")
    wait_seconds = SCHEDULE_SECONDS[attempts - 1] * (1 + JITTER * luck)
    asked_seconds = _asked_seconds(outcome.retry_after, now)
    return Verdict(
        "pending",
        ceil(now + max(wait_seconds, asked_seconds)),
        ceil(now + max(HURRIED_SECONDS, asked_seconds)),
    )


def _asked_seconds(retry_after: str | None, now: float) -> float:
    """The seconds of a `Retry-After`, a number or a date (RFC 9110, 10.2.3); 0 if not valid."""
    from email.utils import parsedate_to_datetime  # noqa: PLC0415 - a start does without it

    value = (retry_after or "").strip()
    try:
        # The first ten digits are more than a day already, and `float` fails on some thousands.
        if value.isdigit():
            seconds = float(value[:10])
        else:
            seconds = parsedate_to_datetime(value).timestamp() - now
    except (ValueError, TypeError, OverflowError):
        return 0
    return max(0, min(seconds, LONGEST_RETRY_AFTER_SECONDS))
