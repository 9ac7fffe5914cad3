"""Puts simulated time, threads, files' locks and chance in the place of the system's, before the product is imported.

So the product needs no other parameters than in service, and what it will import one day is simulated as well.
"""

import os
import random
import secrets
import shutil
import sqlite3
import threading
import time

from tests.simulation import disk, locks, machine, scheduler, threads

cpu_seconds = time.process_time


def replace_all() -> None:
    """To be called once, in a process of its own."""
    for name in ("Lock", "RLock", "Condition", "Event", "Semaphore"):
        setattr(threading, name, getattr(locks, name))
    threading.BoundedSemaphore = locks.Semaphore  # type: ignore[misc, assignment]
    threading.Thread, threading.Timer = threads.Thread, threads.Timer  # type: ignore[assignment, misc]
    threading.stack_size = lambda _size=0: 0
    # Late bound: each world has a machine of its own.
    time.time = lambda: machine.MACHINE.wall()  # noqa: PLW0108
    time.monotonic = lambda: machine.MACHINE.monotonic()  # noqa: PLW0108
    time.sleep = lambda seconds: scheduler.SCHEDULER.sleep(seconds)  # noqa: PLW0108
    sqlite3.connect = disk.connect  # type: ignore[assignment]
    secrets.token_hex = lambda size=32: random.randbytes(size).hex()
    secrets.token_bytes = lambda size=32: random.randbytes(size)
    secrets.token_urlsafe = lambda size=32: random.randbytes(size).hex()
    shutil.disk_usage = lambda _path: disk.DISK.usage()  # type: ignore[assignment, misc]
    _keep_count_of_locks()


def _keep_count_of_locks() -> None:
    """Lock files stay real ones: what a process holds is freed when it dies, so its descriptors are noted."""
    from cardbeat.host import system

    real_try_lock, real_close = system.try_lock, os.close

    def try_lock(descriptor: int) -> bool:
        process = scheduler.SCHEDULER.own_thread().process
        process.descriptors.add(descriptor)
        return real_try_lock(descriptor)

    def close(descriptor: int) -> None:
        current = scheduler.SCHEDULER.current
        if current is not None:
            if current.process.is_dead:
                return
            current.process.descriptors.discard(descriptor)
        real_close(descriptor)

    system.try_lock = try_lock
    os.close = close

    def free(process: scheduler.Process) -> None:
        descriptors, process.descriptors = process.descriptors, set()
        for descriptor in descriptors:
            real_close(descriptor)

    machine.free_descriptors = free
