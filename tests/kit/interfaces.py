"""Whoever changes this host's network interfaces waits for open pages: Chromium drops what it loads at a change."""

import contextlib
import tempfile
from pathlib import Path

FOLDER = Path(tempfile.gettempdir())


@contextlib.contextmanager
def they_stay():
    """Hold while a page may load, in any number of processes."""
    with _lock("turn", exclusively=True):
        lock = _lock("change", exclusively=False)
    with lock:
        yield


@contextlib.contextmanager
def they_change():
    """Hold while interfaces are added or removed. New pages wait behind this, so it comes after those that are open."""
    with _lock("turn", exclusively=True), _lock("change", exclusively=True):
        yield


def _lock(name, *, exclusively):
    """A locked file, whose lock ends when it is closed."""
    import fcntl

    file = (FOLDER / f"cardbeat-tests-interfaces-{name}").open("w")
    fcntl.flock(file, fcntl.LOCK_EX if exclusively else fcntl.LOCK_SH)
    return file
