"""The reserve of free disk: below it nothing new is taken, so that what is there can go on and be deleted."""

import logging
import shutil
import time
from collections.abc import Callable
from math import inf
from pathlib import Path

from cardbeat.errors import Unavailable

log = logging.getLogger(__name__)

RESERVE_BYTES = 64 * 1024 * 1024
SMALL_DISK_SHARE = 20
"""On a small disk the reserve is this part of it, a twentieth, if that is less."""
LOOK_SECONDS = 1.0
"""How old an answer of the system may be."""
RETRY_AFTER_SECONDS = 60

DiskUsage = Callable[[Path], tuple[int, int, int]]
"""The bytes of the disk that a folder is on: in all, used, and free for this user."""


class Reserve:
    """Tells whether the disk of `folder` has less free than the reserve.

    Keys, checks, test alerts and stored cards are what it stops. Pings, changes of status with their alerts, updates
    and deletions need a little room each and take it from the reserve: SQLite can't even delete on a full disk.
    """

    def __init__(
        self, folder: Path, disk_usage: DiskUsage = shutil.disk_usage, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._folder = folder
        self._disk_usage = disk_usage
        self._monotonic = monotonic
        # Read and written by any thread, without a lock: at worst two of them look, or log, at the same moment.
        self._looked_at = -inf
        self._is_low = False

    def is_low(self) -> bool:
        """Whether nothing new may be stored now. Where the system does not tell what is free, never."""
        now = self._monotonic()
        if now - self._looked_at >= LOOK_SECONDS:
            self._looked_at = now
            self._look()
        return self._is_low

    def require(self) -> None:
        """Raise `Unavailable` 503 where something new is to be stored and the disk is low."""
        if self.is_low():
            sentence = "The server's disk is nearly full, so nothing new is taken; try again later."
            raise Unavailable("disk_low", sentence, RETRY_AFTER_SECONDS)

    def _look(self) -> None:
        try:
            total, _, free = self._disk_usage(self._folder)
        except OSError:
            self._is_low = False
            return
        reserve = min(RESERVE_BYTES, total // SMALL_DISK_SHARE)
        was_low, self._is_low = self._is_low, free < reserve
        if self._is_low and not was_low:
            log.warning("%d KiB of disk are free, which is less than the reserve: nothing new is taken", free // 1024)
        elif was_low and not self._is_low:
            log.info("the disk has its reserve again: new keys, checks and tests are taken")
