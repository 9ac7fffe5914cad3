"""Stored cards: one sealed PNG file for each request target, within a number of bytes (CONTRACT 3)."""

import contextlib
import logging
import os
import shutil
import stat
import tempfile
import threading
from collections import OrderedDict
from pathlib import Path
from typing import NamedTuple

from cardbeat.cards.render import RENDERER_VERSION
from cardbeat.cards.seal import StoredCard, unseal
from cardbeat.clock import Clock, wall_clock
from cardbeat.system import remove, replace

log = logging.getLogger(__name__)

MAX_FILE_BYTES = 128 * 1024
"""A larger card is not stored, so a larger file is not one of ours, and is not read to find out."""
TRIMMED_PART = 0.9
"""How much of the budget a trim leaves in use, so that not every new card needs one."""
LEFT_OVER_SECONDS = 60
"""No write takes this long: a temporary file of this age belongs to nobody."""
REMEMBERED_USES = 1024
HOT_BYTES = 8 * 1024 * 1024

_TEMPORARY = ".tmp"


class _Hot(NamedTuple):
    card: StoredCard
    signature: tuple[int, int, int]


class Store:
    """The cards under `folder`, at most `max_bytes` of them, least recently used out first.

    They stand in a folder named after the renderer's version, so that a new renderer serves no old drawings; what
    other versions left is removed. Counting, tidying and trimming go on in the background. Files are the truth:
    several processes may share the folder, and a file that is deleted, replaced or damaged is noticed at the next
    request. Uses are remembered and written to the files' times now and then, in one go. A folder that can't be
    written costs the storing, never the answer.
    """

    def __init__(
        self, folder: Path, max_bytes: int, version: str = RENDERER_VERSION, clock: Clock = wall_clock
    ) -> None:
        self.folder = folder / version
        # Joining paths costs more than all else that a hot card takes.
        self._prefix = f"{self.folder}{os.sep}"
        self._max_bytes = max_bytes
        self._clock = clock
        self._hot = _HotCards(HOT_BYTES)
        self._used: dict[str, float] = {}
        self._bytes = 0
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._wake.set()
        self._closing = False
        self._keeper = threading.Thread(target=self._keep, name="card-store", daemon=True)
        self._keeper.start()

    def close(self) -> None:
        """End the background work and write down what was used when."""
        self._closing = True
        self._wake.set()
        self._keeper.join()
        self._write_uses()

    @property
    def bytes_stored(self) -> int:
        """As counted at the last trim, and what was stored since."""
        return self._bytes

    def get_hot(self, name: str) -> StoredCard | None:
        """A card from memory, if its file is still the one it was read from."""
        hot = self._hot.get(name)
        if hot is None:
            return None
        if _signature(self._prefix + name) != hot.signature:
            self._hot.drop(name)
            return None
        self._used[name] = self._clock()
        return hot.card

    def get(self, name: str) -> StoredCard | None:
        """A stored card, or None where there is no sound file of that name."""
        if hot := self.get_hot(name):
            return hot
        path = self.folder / name
        signature = _signature(path)
        card = unseal(name, _read(path)) if signature else None
        if card is None or signature is None:
            return None
        self._hot.add(name, _Hot(card, signature))
        self._note_use(name)
        return card

    def put(self, name: str, card: StoredCard) -> None:
        """Store a card, whole or not at all. Trouble with the disk is logged."""
        if len(card.png) > MAX_FILE_BYTES:
            log.error("a card of %d bytes is too large to be stored", len(card.png))
            return
        try:
            self._write(name, card.png)
        except OSError as error:
            log.error("can't store a card in %s: %s", self.folder, error.strerror)
            return
        with self._lock:
            self._bytes += len(card.png)
            over = self._bytes > self._max_bytes
        self._note_use(name)
        if over:
            self._wake.set()

    def _write(self, name: str, data: bytes) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(_TEMPORARY, "", self.folder)
        try:
            with open(descriptor, "wb") as file:
                file.write(data)
            _make_way(self.folder / name)
            replace(temporary, self.folder / name)
        except BaseException:
            with contextlib.suppress(OSError):
                remove(temporary)
            raise

    def _note_use(self, name: str) -> None:
        self._used[name] = self._clock()
        if len(self._used) >= REMEMBERED_USES:
            self._write_uses()

    def _write_uses(self) -> None:
        used, self._used = self._used, {}
        for name, moment in list(used.items()):
            with contextlib.suppress(OSError):
                os.utime(self.folder / name, (moment, moment))

    def _keep(self) -> None:
        self._remove_other_versions()
        while True:
            self._wake.wait()
            self._wake.clear()
            if self._closing:
                return
            try:
                self._trim()
            except OSError as error:
                log.error("can't tidy %s: %s", self.folder, error.strerror)

    def _remove_other_versions(self) -> None:
        """What older renderers drew is never asked for again."""
        with contextlib.suppress(OSError):
            for other in self.folder.parent.iterdir():
                if other != self.folder and other.is_dir():
                    shutil.rmtree(other, ignore_errors=True)

    def _trim(self) -> None:
        """Count what is there, and remove the least recently used until there is room."""
        self._write_uses()
        counted = self._bytes
        files = self._files()
        total = sum(size for _, size, _ in files)
        if total > self._max_bytes:
            for _, size, name in sorted(files):
                if total <= self._max_bytes * TRIMMED_PART:
                    break
                if name in self._used:  # since the uses were written down, a moment ago
                    continue
                if _removed(self.folder / name):
                    total -= size
        with self._lock:
            # What was stored meanwhile may count twice, until the next trim, but is never forgotten.
            self._bytes += total - counted

    def _files(self) -> list[tuple[int, int, str]]:
        """When last used, size and name of every stored card; what can't be one is removed."""
        found = []
        with contextlib.suppress(FileNotFoundError), os.scandir(self.folder) as entries:
            for entry in entries:
                status = _status(Path(entry.path))
                if status is None or not stat.S_ISREG(status.st_mode):
                    continue
                left_over = entry.name.endswith(_TEMPORARY) and status.st_mtime < self._clock() - LEFT_OVER_SECONDS
                if left_over or status.st_size > MAX_FILE_BYTES:
                    _removed(Path(entry.path))
                else:
                    found.append((status.st_mtime_ns, status.st_size, entry.name))
        return found


class _HotCards:
    """The cards asked for again most recently, within a number of bytes."""

    def __init__(self, max_bytes: int) -> None:
        self._room = max_bytes
        self._cards: OrderedDict[str, _Hot] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, name: str) -> _Hot | None:
        with self._lock:
            hot = self._cards.get(name)
            if hot is not None:
                self._cards.move_to_end(name)
            return hot

    def add(self, name: str, hot: _Hot) -> None:
        with self._lock:
            self._pop(name)
            self._cards[name] = hot
            self._room -= len(hot.card.png)
            while self._room < 0:
                self._pop(next(iter(self._cards)))

    def drop(self, name: str) -> None:
        with self._lock:
            self._pop(name)

    def _pop(self, name: str) -> None:
        hot = self._cards.pop(name, None)
        if hot is not None:
            self._room += len(hot.card.png)


def _status(path: Path | str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except OSError:
        return None


def _signature(path: Path | str) -> tuple[int, int, int] | None:
    """Tells one state of a stored file from another; None for anything that can't be a card."""
    status = _status(path)
    if status is None or not stat.S_ISREG(status.st_mode) or status.st_size > MAX_FILE_BYTES:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        log.error("can't read the stored card %s: %s", path.name, error.strerror)
        return b""


def _removed(path: Path) -> bool:
    """Whether the file is gone: one that can't be removed must not keep the others from it."""
    try:
        remove(path)
    except FileNotFoundError:
        return True
    except OSError as error:
        log.error("can't remove %s: %s", path, error.strerror)
        return False
    return True


def _make_way(path: Path) -> None:
    """Removes a folder that stands where a card belongs; anything else is replaced by the card itself."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
