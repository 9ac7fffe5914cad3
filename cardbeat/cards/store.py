"""Stored cards: one sealed PNG file for each request target, and the hot ones in memory."""

import contextlib
import hashlib
import logging
import os
import re
import shutil
import time
from collections import OrderedDict
from functools import cached_property
from pathlib import Path
from typing import Final

from cardbeat.cards.seal import StoredCard, unseal
from cardbeat.host.disk import Reserve
from cardbeat.host.staging import written_whole
from cardbeat.host.system import READ_FLAGS, remove
from cardbeat.jobs import BackgroundThread
from cardbeat.web.message import Response

log = logging.getLogger(__name__)

MEMORY_BYTES: Final = 64 * 1024 * 1024
"""Most bytes of cards in memory, about 2,000 cards. It is at most half of what is on disk."""
ASKED_ONCE: Final = 1024
"""Cards beyond the memory of which it is remembered that they were asked for."""
KNOWN_FILES: Final = 32_768
"""Files that are known to be whole, of 70 bytes each. One more, and all are checked again."""
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

HotCard = tuple[Response, bytes]
"""A stored card's answer, and the hash of the key in its URL."""


class CardMemory:
    """Cards by request target, at most `max_bytes` of PNG. The one used longest ago goes first.

    While it is full, it takes a card only at the second of two requests: cards that are asked for
    once do not displace those that are asked for often.

    For one thread. Only `names` may be called by any.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._cards: OrderedDict[str, HotCard] = OrderedDict()
        self._asked_once: set[str] = set()

    def get(self, target: str) -> HotCard | None:
        card = self._cards.get(target)
        if card is not None:
            self._cards.move_to_end(target)
        return card

    def put(self, target: str, card: HotCard) -> None:
        """Keep a card that is not kept yet, if there is room or it was asked for before."""
        size = len(card[0].body)
        if (
            self._bytes + size > self._max_bytes
            and target not in self._asked_once
        ):
            if len(self._asked_once) >= ASKED_ONCE:
                self._asked_once.clear()
            self._asked_once.add(target)
            return
        self._cards[target] = card
        self._bytes += size
        while self._bytes > self._max_bytes:
            _, (oldest, _) = self._cards.popitem(last=False)
            self._bytes -= len(oldest.body)

    def names(self) -> set[str]:
        """The names of their files."""
        # `list` copies in one step, whatever the other thread does.
        return set(map(file_name, list(self._cards)))


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
    ) -> None:
        self._parent = folder
        self._max_bytes = max_bytes
        self._version = version
        self._accent = accent
        self._reserve = reserve or Reserve(folder)
        self.memory = CardMemory(min(MEMORY_BYTES, max_bytes // 2))
        self.bytes_stored = 0
        """Counted at the last trim, plus what was stored since; not exact while a trim counts."""
        self.is_quick = False
        """Whether `read` only reads a file: the first one finds out the renderer's version."""
        self._whole: set[int] = set()
        """The states of files in which their seals were checked. Each change is one step."""
        self._thread = BackgroundThread(
            "card-store", self._trim, TRIM_SECONDS
        )

    @cached_property
    def folder(self) -> Path:
        version = self._version
        if version is None:
            # Not at the start: it imports all that draws, and reads the code and the fonts.
            from cardbeat.cards.drawing.render import own_version  # noqa: PLC0415

            version = own_version(self._accent)
        self.is_quick = True
        return self._parent / version

    def start(self) -> None:
        """Count the files, and keep their number in bounds from now on."""
        self._thread.start()

    def close(self, seconds: float | None = None) -> bool:
        """End the background work. False if it does not end in these seconds."""
        return self._thread.stop(seconds)

    def read(self, name: str) -> StoredCard | None:
        """A card from its file; None if there is none, or if it is damaged or another's.

        A file whose seal was checked is not checked again until its inode, size or time changes.
        """
        # To join paths by `Path` costs as much as to open the file.
        path = f"{self.folder}{os.sep}{name}"
        try:
            descriptor = os.open(path, READ_FLAGS)
            try:
                status = os.fstat(descriptor)
                # Exactly its size: a larger buffer, cut later, would leave holes in the memory.
                data = os.read(
                    descriptor, min(status.st_size, MAX_FILE_BYTES)
                )
            finally:
                os.close(descriptor)
        except OSError:
            return None
        if status.st_mtime < time.time() - TOUCHED_SECONDS:
            with contextlib.suppress(OSError):
                os.utime(path)
        state = hash(
            (name, status.st_ino, status.st_size, status.st_mtime_ns)
        )
        card = unseal(data, is_whole=state in self._whole)
        if card is None or card.of != name:
            return None
        if len(self._whole) >= KNOWN_FILES:
            self._whole.clear()
        self._whole.add(state)
        return card

    def put(self, card: StoredCard) -> None:
        """Store a card, whole or not at all. If that fails, the log says why.

        A power cut may damage the file, which its seal tells.
        """
        if self._reserve.spare() < self._reserve.bytes:
            log.error("a card is not stored: the disk is nearly full")
            return
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with written_whole(self.folder / card.of) as file:
                file.write(card.png)
        except OSError as error:
            log.error(
                "can't store a card in %s: %s",
                self.folder,
                error.strerror,
            )
            return
        self.bytes_stored += len(card.png)
        if self.bytes_stored > self._max_bytes:
            self._thread.wake()

    def _room(self, stored: int) -> float:
        """The bytes of cards that may still be stored; below zero if some must go."""
        disk = self._reserve.spare() - self._reserve.bytes
        return min(disk, self._max_bytes - stored)

    def _trim(self) -> None:
        """Count the files, and remove the least recently used until there is room.

        Those in memory are the last to go. At the first count, those of other versions go.
        """
        if self.bytes_stored and self._room(self.bytes_stored) >= 0:
            return
        self._remove_other_versions()
        files = sorted(self._files())
        total = sum(size for _, _, size, _ in files)
        limit = total + self._room(total)
        self.bytes_stored = total
        if total > limit:
            for _, _, size, path in files:
                if total > limit * TRIMMED_PART:
                    # One that can't be removed does not keep the others.
                    with contextlib.suppress(OSError):
                        remove(path)
                        total -= size
            self.bytes_stored = total

    def _remove_other_versions(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            for other in self._parent.iterdir():
                if other != self.folder and _VERSION.fullmatch(
                    other.name
                ):
                    shutil.rmtree(other, ignore_errors=True)

    def _files(self) -> list[tuple[bool, float, int, str]]:
        """Of each file: whether it is in memory, when it was used, its size and its path."""
        files: list[tuple[bool, float, int, str]] = []
        hot = self.memory.names()
        with (
            contextlib.suppress(FileNotFoundError),
            os.scandir(self.folder) as entries,
        ):
            for entry in entries:
                # One that is being written is renamed at any moment.
                with contextlib.suppress(FileNotFoundError):
                    status = entry.stat()
                    files.append(
                        (
                            entry.name in hot,
                            status.st_mtime,
                            status.st_size,
                            entry.path,
                        )
                    )
        return files


def file_name(target: str) -> str:
    """The name of a request target's file. Each character of the target is one byte, as sent."""
    return hashlib.sha256(target.encode("latin-1")).hexdigest() + ".png"
