"""Stored cards: one sealed PNG file for each request target, and the hot ones in memory."""

import contextlib
import errno
import hashlib
import logging
import os
import re
import shutil
import time
from collections import OrderedDict
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Final, NamedTuple

from cardbeat.cards.seal import StoredCard, unseal
from cardbeat.host.descriptors import raise_if_lacking
from cardbeat.host.disk import Reserve
from cardbeat.host.staging import written_whole
from cardbeat.host.system import READ_FLAGS, remove
from cardbeat.jobs.background import BackgroundThread
from cardbeat.web.message import Response

log = logging.getLogger(__name__)

MEMORY_BYTES: Final = 64 * 1024 * 1024
"""Most bytes of cards in memory, about 2,000 cards. It is at most half of what is on disk."""
MAX_FILE_BYTES: Final = 128 * 1024
"""A larger file is no card, and is not read."""
TRIMMED_PART: Final = 0.9
"""A trim leaves this part of the limit, so that not every new card needs a trim."""
TRIM_SECONDS: Final = 10
"""How often it looks whether there is too much on the disk."""
TOUCHED_SECONDS: Final = 3600
"""A use renews the time of a file that is older than this: their order is exact to an hour."""
_VERSION = re.compile(r"[0-9a-f]{12}-[a-z]+")
"""The name of a folder of cards: the shape of a `renderer_version`."""


class HotCard(NamedTuple):
    """A stored card's answer, the name of its file, and the hash of the key in its URL."""

    response: Response
    name: str
    key_hash: bytes


class CardMemory:
    """Cards by request target, at most `max_bytes` of PNG. The one used longest ago goes first.

    For one thread. Only `names` may be called by any.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._cards: OrderedDict[str, HotCard] = OrderedDict()

    def get(self, target: str) -> HotCard | None:
        card = self._cards.get(target)
        if card is not None:
            self._cards.move_to_end(target)
        return card

    def put(self, target: str, card: HotCard) -> None:
        """Keep a card that is not kept yet."""
        self._cards[target] = card
        self._bytes += len(card.response.body)
        while self._bytes > self._max_bytes:
            _, oldest = self._cards.popitem(last=False)
            self._bytes -= len(oldest.response.body)

    def names(self) -> set[str]:
        # `list` copies in one step, whatever the other thread does.
        return {card.name for card in list(self._cards.values())}


class StoredFile(NamedTuple):
    """A file on disk. Sorted, those come first that go first: not in memory, used longest ago."""

    is_hot: bool
    used_at: float
    bytes: int
    path: str


class Store:
    """The cards under `folder`, at most `max_bytes` of them. Beyond that, the least recently used
    are removed.

    They are in a folder named after the renderer's version, so a new renderer serves no old
    drawings. A background thread removes those of other versions, counts the bytes, and trims. If
    the disk is full or read-only, cards are drawn and not stored. So they are while less than
    twice the disk's reserve is free: then stored cards make room, before anything else is refused.

    Any thread may call the methods. `memory` belongs to the server's loop.
    """

    def __init__(
        self,
        folder: Path,
        max_bytes: int,
        version: str | None = None,
        *,
        accent: str | None = None,
        reserve: Reserve | None = None,
        first_after: float = 0,
    ) -> None:
        """The files are counted after `first_after` seconds."""
        self._parent = folder
        self._max_bytes = max_bytes
        self._version = version
        self._accent = accent
        self._reserve = reserve or Reserve(folder)
        self.memory = CardMemory(min(MEMORY_BYTES, max_bytes // 2))
        self.bytes_stored = 0
        """Counted at the last trim, plus what was stored since; not exact while a trim counts."""
        self._thread = BackgroundThread(
            "card-store", self._maintain, TRIM_SECONDS, first_after=first_after
        )
        self._thread.start()

    @property
    def is_quick(self) -> bool:
        """Whether `read` only reads a file: the first one finds out the renderer's version."""
        return self._version is not None

    @cached_property
    def folder(self) -> Path:
        if self._version is None:
            # Not at the start: it imports all that draws, and reads the code and the fonts.
            from cardbeat.cards.drawing.render import own_version  # noqa: PLC0415

            self._version = own_version(self._accent)
        return self._parent / self._version

    def close(self, seconds: float | None = None) -> bool:
        """End the background work. False if it does not end in these seconds."""
        return self._thread.stop(seconds)

    def read(self, name: str) -> StoredCard | None:
        """A card from its file; None if there is none, or if it is damaged or another's.

        Raises `Unavailable` if this host lacks descriptors.
        """
        try:
            # To join paths by `Path` costs as much as to open the file.
            data = _read_and_touch(f"{self.folder}{os.sep}{name}")
        except FileNotFoundError:
            return None
        except OSError as error:
            raise_if_lacking(error)
            log.error("can't read the stored card %s: %s", name, error.strerror)
            return None
        card = unseal(data)
        return card if card is not None and card.of == name else None

    def put(self, card: StoredCard) -> None:
        """Store a card, whole or not at all. If that fails, the log says why.

        A power cut may damage the file, which its seal tells.
        """
        try:
            if self._is_disk_low():
                raise OSError(errno.ENOSPC, "the disk is nearly full")
            self.folder.mkdir(parents=True, exist_ok=True)
            with written_whole(self.folder / card.of) as file:
                file.write(card.png)
        except OSError as error:
            log.error("can't store a card in %s: %s", self.folder, error.strerror)
            return
        self.bytes_stored += len(card.png)
        if self.bytes_stored > self._max_bytes:
            self._thread.wake()

    def _is_disk_low(self) -> bool:
        """Whether less than twice the reserve is free."""
        return self._reserve.spare() < self._reserve.bytes

    def _maintain(self) -> None:
        if not self.bytes_stored:
            self._remove_other_versions()
            self._trim()
        elif self.bytes_stored > self._max_bytes or self._is_disk_low():
            self._trim()

    def _remove_other_versions(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            for other in self._parent.iterdir():
                if other != self.folder and _VERSION.fullmatch(other.name):
                    shutil.rmtree(other, ignore_errors=True)

    def _trim(self) -> None:
        """Count the files, and remove the least recently used until there is room."""
        files = sorted(self._files())
        total = sum(file.bytes for file in files)
        limit = self._limit(total)
        if total > limit:
            for file in files:
                if total > limit * TRIMMED_PART and _removed(file.path):
                    total -= file.bytes
        self.bytes_stored = total

    def _files(self) -> Iterator[StoredFile]:
        if not self.folder.is_dir():
            return
        hot = self.memory.names()
        with os.scandir(self.folder) as entries:
            for entry in entries:
                # One that is being written is renamed at any moment.
                with contextlib.suppress(FileNotFoundError):
                    status = entry.stat()
                    is_hot = entry.name in hot
                    yield StoredFile(is_hot, status.st_mtime, status.st_size, entry.path)

    def _limit(self, stored: int) -> float:
        """The most bytes of cards: fewer than `max_bytes` while the disk is low.

        All stay if not even all of these `stored` bytes would bring the reserve back.
        """
        spare = self._reserve.spare()
        if stored + spare < 0:
            return self._max_bytes
        return min(self._max_bytes, stored + spare - self._reserve.bytes)


def file_name(target: str) -> str:
    """The name of a request target's file. Each character of the target is one byte, as sent."""
    return hashlib.sha256(target.encode("latin-1")).hexdigest() + ".png"


def _read_and_touch(path: str) -> bytes:
    """The content of a file, whose time then is that of its last use. Raises `OSError`."""
    descriptor = os.open(path, READ_FLAGS)
    try:
        status = os.fstat(descriptor)
        # Exactly its size: a larger buffer, cut afterwards, would leave holes in the memory.
        data = os.read(descriptor, min(status.st_size, MAX_FILE_BYTES))
    finally:
        os.close(descriptor)
    if status.st_mtime < time.time() - TOUCHED_SECONDS:
        with contextlib.suppress(OSError):
            os.utime(path)
    return data


def _removed(path: str) -> bool:
    """Remove a file. False, with the cause in the log, if that fails: the others still can go."""
    try:
        with contextlib.suppress(FileNotFoundError):
            remove(path)
    except OSError as error:
        log.error("can't remove %s: %s", path, error.strerror)
        return False
    return True
