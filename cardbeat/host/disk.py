"""The disk reserve: below it nothing new is stored, so that pings, alerts and deletions go on."""

import logging
import shutil
import time
from collections.abc import Callable
from math import inf
from pathlib import Path
from typing import Final

from cardbeat.clock import Clock
from cardbeat.errors import Unavailable

log = logging.getLogger(__name__)

RESERVE_BYTES: Final = 64 * 1024 * 1024
SMALL_DISK_SHARE: Final = 10
"""On a disk below 640 MiB the reserve is one tenth of the disk."""
LOOK_SECONDS: Final = 1.0
"""The system is asked for free space at most once in this time."""
RETRY_AFTER_SECONDS: Final = 60


class Reserve:
    """Tells whether the disk that holds `folder` has less free space than the reserve.

    Below it, what makes the database larger is refused: new keys, checks, test alerts and secrets,
    a longer name or webhook URL. Pings, alerts, other updates and deletions go on. Stored cards
    are removed before that.
    """

    def __init__(
        self,
        folder: Path,
        disk_usage: Callable[
            [Path], tuple[int, int, int]
        ] = shutil.disk_usage,
        monotonic: Clock = time.monotonic,
    ) -> None:
        self._folder = folder
        self._disk_usage = disk_usage
        self._monotonic = monotonic
        # Used by any thread, without a lock: at worst two ask the system at the same moment.
        self._looked_at = -inf
        self._spare = inf
        self.bytes = RESERVE_BYTES
        """The reserve, as of the last look."""

    def require(self) -> None:
        """Raise `Unavailable` if the disk is low. Call before anything new is stored."""
        if self.spare() < 0:
            raise Unavailable(
                "disk_low", retry_after_seconds=RETRY_AFTER_SECONDS
            )

    def spare(self) -> float:
        """The bytes that are free besides the reserve; below zero while the disk is low.

        Without an end if the system does not tell.
        """
        now = self._monotonic()
        if now - self._looked_at >= LOOK_SECONDS:
            self._looked_at = now
            was_low = self._spare < 0
            try:
                total, _, free = self._disk_usage(self._folder)
                self.bytes = min(RESERVE_BYTES, total // SMALL_DISK_SHARE)
                self._spare = free - self.bytes
            except OSError:
                self._spare = inf
            if self._spare < 0 and not was_low:
                reserve = self.bytes // 1024
                log.warning(
                    "less than the reserve of %d KiB of disk is free",
                    reserve,
                )
            elif self._spare >= 0 and was_low:
                log.info("the disk has its reserve again")
        return self._spare
