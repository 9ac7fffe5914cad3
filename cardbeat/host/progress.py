"""A line on stderr while a slow step runs."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

QUIET_SECONDS = 1.0
"""A step that takes longer is announced."""


@contextmanager
def tell_if_slow(doing: str) -> Iterator[None]:
    """Print `doing` to stderr if the block takes longer than one second."""
    timer = threading.Timer(QUIET_SECONDS, lambda: print(f"{doing}, please wait ...", file=sys.stderr, flush=True))
    timer.daemon = True
    with suppress(RuntimeError):
        # If the system grants no thread, the line is left out.
        timer.start()
    try:
        yield
    finally:
        timer.cancel()
