"""A line for whoever waits at the terminal."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

QUIET_SECONDS = 1.0


@contextmanager
def tell_if_slow(doing: str) -> Iterator[None]:
    """Say on stderr what is being done, if it takes longer than a second."""
    timer = threading.Timer(QUIET_SECONDS, lambda: print(f"{doing}, please wait ...", file=sys.stderr, flush=True))
    timer.daemon = True
    with suppress(RuntimeError):
        # Without a thread there is no line, and all else goes on.
        timer.start()
    try:
        yield
    finally:
        timer.cancel()
