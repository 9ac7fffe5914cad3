"""The wall clock. Code reads it once, where a request or a sweep begins, and passes the time on."""

import time
from collections.abc import Callable
from datetime import datetime, tzinfo

Clock = Callable[[], float]
"""Gives Unix time in seconds."""

wall_clock: Clock = time.time


def utc_text(seconds: float) -> str:
    """Unix seconds in UTC, rounded down: `2026-01-31 12:00:00`. All times in JSON are so."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(seconds))


def time_or_none(seconds: float | None) -> str | None:
    """As `utc_text`, for a time that may be missing."""
    if seconds is None:
        return None
    return utc_text(seconds)


def minute_text(seconds: float, zone: tzinfo | None = None) -> str:
    """`2026-01-31 02:12 UTC`, and in a zone `2026-01-31 03:12 CET (02:12 UTC)`.

    On another day than in UTC it has both: `2026-02-01 00:30 CET (2026-01-31 23:30 UTC)`.
    """
    in_utc = f"{utc_text(seconds)[:16]} UTC"
    if zone is None:
        return in_utc
    local = datetime.fromtimestamp(seconds, zone).strftime(
        "%Y-%m-%d %H:%M %Z"
    )
    if local == in_utc:
        return in_utc
    if local[:10] == in_utc[:10]:
        in_utc = in_utc[11:]
    return f"{local} ({in_utc})"
