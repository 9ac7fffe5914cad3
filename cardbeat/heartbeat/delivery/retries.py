"""When an alert is tried again after an attempt: the schedule of `docs/alerts.md`."""

from typing import NamedTuple

from cardbeat.heartbeat.outbox.alert import Outcome

SCHEDULE_SECONDS = (5, 30, 2 * 60, 10 * 60, 30 * 60, 2 * 3600, 5 * 3600, 10 * 3600, 14 * 3600)
"""Waits after the first, second ... failed attempt. The attempt after the last wait is the last one."""
JITTER = 0.2
"""Up to this part of a wait is added to it, at random: alerts that failed together are not tried together again."""
LONGEST_RETRY_AFTER_SECONDS = 24 * 3600
"""The longest `Retry-After` that is honoured."""
SOON_SECONDS = 60
"""Who waits no longer than this is not tried earlier."""
ASK_TO_WAIT = 429, 503
"""The statuses that come with a `Retry-After`."""
GONE = 410
"""The status that says that the URL will never work again."""


class Verdict(NamedTuple):
    """The alert's new state and, while that is `pending`, the seconds until its next attempt."""

    state: str
    wait_seconds: float | None = None


def verdict(outcome: Outcome, attempts: int, now: float, luck: float) -> Verdict:
    """The verdict on attempt number `attempts`, counted from 1; `luck` from 0 to 1 sets the jitter.

    `now` is Unix time. `Retry-After` can only lengthen a wait: a receiver must not use up the attempts sooner.
    """
    if outcome.error is None:
        return Verdict("delivered")
    if outcome.status == GONE or attempts > len(SCHEDULE_SECONDS):
        return Verdict("failed")
    wait_seconds = SCHEDULE_SECONDS[attempts - 1] * (1 + JITTER * luck)
    return Verdict("pending", max(wait_seconds, _asked_seconds(outcome.retry_after, now)))


def may_be_earlier(wait_seconds: float, attempts: int, last_status: int | None) -> bool:
    """Whether an alert that waits for so long yet may be tried before its time: not if its receiver asked it to wait.

    An earlier `Retry-After` with another status than these shows as a wait that is longer than the schedule's.
    """
    longest = SCHEDULE_SECONDS[min(attempts, len(SCHEDULE_SECONDS)) - 1] * (1 + JITTER) if attempts else 0
    return SOON_SECONDS < wait_seconds <= longest and last_status not in ASK_TO_WAIT


def extra_verdict(outcome: Outcome, attempts: int, now: float, luck: float) -> Verdict | None:
    """The verdict on a try before its time, None if it changes nothing. It is not the last one."""
    judged = verdict(outcome, min(attempts, len(SCHEDULE_SECONDS)), now, luck)
    asks_to_wait = outcome.status in ASK_TO_WAIT or outcome.retry_after is not None
    return judged if judged.state != "pending" or asks_to_wait else None


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
