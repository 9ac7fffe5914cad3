"""Wall-clock time as the service sees it: read once at each edge and passed on as a value."""

import time
from collections.abc import Callable

Clock = Callable[[], float]
"""Gives Unix time in seconds."""

wall_clock: Clock = time.time


def utc_text(seconds: float) -> str:
    """Unix seconds as `YYYY-MM-DD HH:MM:SS` in UTC, cut to the whole second: the form of all times in JSON."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(seconds))
