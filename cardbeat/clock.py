"""The wall clock. Code reads it once, where a request or a sweep begins, and passes the time on as a value."""

import time
from collections.abc import Callable

Clock = Callable[[], float]
"""Gives Unix time in seconds."""

wall_clock: Clock = time.time


def utc_text(seconds: float) -> str:
    """Unix seconds as `YYYY-MM-DD HH:MM:SS` in UTC, rounded down to the second. All times in JSON have this form."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(seconds))


def time_or_none(seconds: float | None) -> str | None:
    """As `utc_text`, for a time that may be missing."""
    return None if seconds is None else utc_text(seconds)
