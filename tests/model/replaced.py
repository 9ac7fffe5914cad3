"""Puts simulated time, threads, disk and chance in the place of the system's, before the product is imported.

So the product needs no other parameters than in service, and what it will import one day is simulated as well.
"""

import random
import secrets
import shutil
import sqlite3
import threading
import time
from functools import cache

from tests.model import disk, threads


class Nothing:
    """A part without routes, which does nothing, whatever it is asked."""

    def __init__(self, *_, **__):
        pass

    def routes(self):
        return ()

    def __getattr__(self, _name):
        return lambda *_: True


def replace_all():
    """To be called once, in a process of its own."""
    for name in ("Lock", "RLock", "Condition", "Event", "Thread"):
        setattr(threading, name, getattr(threads, name))
    # Only what is loaded after the start waits for one.
    threading.Timer = Nothing
    # Late bound: each world has a scheduler and a disk of its own.
    time.time = lambda: threads.SCHEDULER.wall()  # noqa: PLW0108
    time.monotonic = lambda: threads.SCHEDULER.monotonic()  # noqa: PLW0108
    time.sleep = lambda seconds: threads.SCHEDULER.sleep(seconds)  # noqa: PLW0108
    shutil.disk_usage = lambda _path: disk.DISK.usage()
    sqlite3.connect = disk.connect
    secrets.token_hex = lambda size=32: random.randbytes(size).hex()
    secrets.token_bytes = lambda size=32: random.randbytes(size)
    secrets.token_urlsafe = lambda size=32: random.randbytes(size).hex()
    from cardbeat import files

    # Servers that start again and again would read the same files as often.
    files.read_text = cache(files.read_text)
