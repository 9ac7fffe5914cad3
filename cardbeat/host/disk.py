"""The disk reserve: below it nothing new is stored, so that pings, status changes and deletions still have room."""

import logging
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from pathlib import Path

from cardbeat.errors import Unavailable

log = logging.getLogger(__name__)

RESERVE_BYTES = 64 * 1024 * 1024
SMALL_DISK_SHARE = 20  # on a disk below 1.28 GB the reserve is one twentieth of the disk
LOOK_SECONDS = 1.0  # free space is asked of the system at most once in this time
RETRY_AFTER_SECONDS = 60
QUOTA_SECONDS = 60.0  # the system tells nothing of quotas: after one was met, nothing counts as free for this time


@dataclass(eq=False, repr=False)
class Reserve:
    """Tells whether the disk that holds `folder` has less free space than the reserve.

    Below the reserve, what makes the database larger is refused: new keys (also read-only ones), checks, test alerts
    and signing secrets, a longer name and webhook URL. Pings, status changes with their alerts, other updates and
    deletions go on: what these may need is kept in the file `cardbeat.room`. Stored cards are removed before that.
    """

    _folder: Path
    _disk_usage: Callable[[Path], tuple[int, int, int]] = shutil.disk_usage
    _monotonic: Callable[[], float] = time.monotonic
    # Read and written by any thread, without a lock: at worst two threads ask, or log, at the same moment.
    _looked_at: float = -inf
    _is_low: bool = False
    _at_quota_until: float = -inf
    bytes: int = RESERVE_BYTES
    """The reserve, as of the last look."""
    owed: int = 0
    """What `cardbeat.room` lacks of its size: as long as that is free it counts as taken."""
    free_bytes: float = inf
    """What is free, as of the last look; infinite if the system does not tell."""

    def is_low(self) -> bool:
        """Whether free space is below the reserve. False if the system does not report free space."""
        now = self._monotonic()
        if now - self._looked_at >= LOOK_SECONDS:
            self._looked_at = now
            self._look()
        return self._is_low

    def spare(self) -> float:
        """The bytes that are free besides the reserve; below zero while the disk is low."""
        self.is_low()
        return self.free_bytes - self.bytes - self.owed

    def covers(self, folder: Path) -> bool:
        """Whether this folder exists and is on the same disk."""
        return folder.exists() and folder.stat().st_dev == self._folder.stat().st_dev

    def look_again(self) -> None:
        """Let the next call of `is_low` ask the system."""
        self._looked_at = -inf

    def note_quota(self) -> None:
        """Note that a quota is used up, whatever the system tells."""
        log.warning("a quota of the disk is used up")
        self._at_quota_until = self._monotonic() + QUOTA_SECONDS
        self.look_again()

    def require(self) -> None:
        """Raise `Unavailable` 503 if the disk is low. Call before anything new is stored."""
        if self.is_low():
            raise Unavailable("disk_low", retry_after_seconds=RETRY_AFTER_SECONDS)

    def _look(self) -> None:
        try:
            total, _, self.free_bytes = self._disk_usage(self._folder)
        except OSError:
            self._is_low, self.free_bytes = False, inf
            return
        if self._monotonic() < self._at_quota_until:
            self.free_bytes = 0
        self.bytes = min(RESERVE_BYTES, total // SMALL_DISK_SHARE)
        was_low, self._is_low = self._is_low, self.free_bytes < self.bytes + self.owed
        if self._is_low and not was_low:
            found = f"{self.free_bytes // 1024:.0f} KiB of disk are free, which is less than the reserve"
            log.warning("%s of %d KiB: nothing new is taken", found, (self.bytes + self.owed) // 1024)
        elif was_low and not self._is_low:
            log.info("the disk has its reserve again: new keys, checks and tests are taken")
