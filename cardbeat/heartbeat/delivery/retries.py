"""When an alert is tried again after an attempt: the schedule of `docs/alerts.md`."""

from typing import NamedTuple

from cardbeat.clock import utc_text
from cardbeat.heartbeat.outbox.alert import Outcome

SCHEDULE_SECONDS = (5, 30, 2 * 60, 10 * 60, 30 * 60, 2 * 3600, 5 * 3600, 10 * 3600, 14 * 3600)
"""Waits after the first, second ... failed attempt. The attempt after the last wait is the last one."""
JITTER = 0.2
"""Up to this part of a wait is added to it, at random: alerts that failed together are not tried together again."""
LONGEST_RETRY_AFTER_SECONDS = 24 * 3600
"""The longest `Retry-After` that is honoured."""
SOON_SECONDS = 60
"""Who waits no longer than this is not tried earlier."""
ASKED = " It asked to wait until "
"""In an alert's error, before the time that the receiver has asked for by `Retry-After`."""
GONE = 410
"""The status that says that the URL will never work again."""


class Verdict(NamedTuple):
    """The alert's new state and, while that is `pending`, the seconds until its next attempt.

    `asked_seconds` are those of a `Retry-After`.
    """

    state: str
    wait_seconds: float | None = None
    asked_seconds: float = 0


def verdict(outcome: Outcome, attempts: int, now: float, luck: float) -> Verdict:
    """The verdict on attempt number `attempts`, counted from 1; `luck` from 0 to 1 sets the jitter.

    `now` is Unix time. `Retry-After` can only lengthen a wait: a receiver must not use up the attempts sooner.
    """
    if outcome.error is None:
        return Verdict("delivered")
    if outcome.status == GONE or attempts > len(SCHEDULE_SECONDS):
        return Verdict("failed")
    wait_seconds = SCHEDULE_SECONDS[attempts - 1] * (1 + JITTER * luck)
    asked_seconds = _asked_seconds(outcome.retry_after, now)
    return Verdict("pending", max(wait_seconds, asked_seconds), asked_seconds)


def may_be_earlier(wait_seconds: float, last_error: str | None, now: float) -> bool:
    """Whether an alert with so long a wait left may be tried at once: not if its receiver has asked to wait longer."""
    asked = (last_error or "").partition(ASKED)[2]
    return wait_seconds > SOON_SECONDS and asked < utc_text(now)


def _asked_seconds(retry_after: str | None, now: float) -> float:
    """How many seconds a `Retry-After` asks for, by number or date (RFC 9110, 10.2.3); 0 for one that is not valid."""
    from email.utils import parsedate_to_datetime  # noqa: PLC0415 - it imports much, which a start does without

    value = (retry_after or "").strip()
    try:
        # The first ten digits are more than a day already, and `float` fails on some thousands.
        seconds = float(value[:10]) if value.isdigit() else parsedate_to_datetime(value).timestamp() - now
    except (ValueError, TypeError, OverflowError):
        return 0
    return min(seconds, LONGEST_RETRY_AFTER_SECONDS)
