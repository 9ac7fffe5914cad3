"""Stored cards: one sealed PNG file for each request target, within a number of bytes, and an index of them."""

import contextlib
import hashlib
import logging
import os
import re
import shutil
import stat
import tempfile
import threading
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path

from cardbeat.cards.render import RENDERER_VERSION
from cardbeat.cards.seal import StoredCard, unseal
from cardbeat.clock import Clock, wall_clock
from cardbeat.system import READ_FLAGS, is_in_memory, remove, replace

log = logging.getLogger(__name__)

MAX_FILE_BYTES = 128 * 1024
"""A larger card is not stored, so a larger file is not one of ours, and is not read to find out."""
TRIMMED_PART = 0.9
"""How much of the budget a trim leaves in use, so that not every new card needs one."""
LEFT_OVER_SECONDS = 60
"""No write takes this long: a temporary file of this age belongs to nobody."""
WRITE_USES_SECONDS = 60
"""From one writing of the files' access times to the next."""

INDEX_ENTRIES = 32_768
"""Each takes about 0.9 KB of memory besides its request target."""
INDEX_CHARACTERS = 16 * 1024 * 1024
"""Of all request targets in the index, each of which may have 8 KB."""

_TEMPORARY = ".tmp"
_VERSION = re.compile(r"[0-9a-f]{12}-[a-z]+")
"""The shape of a `RENDERER_VERSION`."""
_CARD = re.compile(r"[0-9a-f]{64}\.png|[a-z0-9_]+\.tmp")
"""The name of a card's file, finished or not."""


Signature = tuple[int, int, int]
"""Tells one state of a file from another: its inode number, its size in bytes, its time of change in ns."""


class Store:
    """The cards under `folder`, at most `max_bytes` of them, least recently used out first.

    They stand in a folder named after the renderer's version, so that a new renderer serves no old drawings; what
    other versions left is removed. Counting, tidying and trimming go on in the background. Nothing but the files says
    what is stored: several processes may share the folder, and a file that is deleted, replaced or damaged is noticed
    at the next request. Uses are remembered and written to the files' access times now and then, in one go. Where the
    folder can't be written, cards are answered and not stored.

    Any thread may call any method. `_bytes` is changed under the lock. `_used` needs none: each change is one step of a
    dictionary, and `write_uses` puts an empty one in its place; a use that is noted at that very moment may be lost.
    """

    def __init__(
        self, folder: Path, max_bytes: int, version: str = RENDERER_VERSION, clock: Clock = wall_clock
    ) -> None:
        self.folder = folder / version
        # Joining paths costs as much as opening the file.
        self._prefix = f"{self.folder}{os.sep}"
        self._max_bytes = max_bytes
        self._clock = clock
        self._used: dict[str, float] = {}
        self._bytes = 0
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._wake.set()
        self._closing = False
        self._maintenance = threading.Thread(target=self._maintain, name="card-store", daemon=True)
        self._maintenance.start()

    def close(self) -> None:
        """End the background work and write down what was used when."""
        self._closing = True
        self._wake.set()
        self._maintenance.join()
        self.write_uses()

    @property
    def bytes_stored(self) -> int:
        """As counted at the last trim, and what was stored since."""
        return self._bytes

    def open(self, name: str, signature: Signature) -> int | None:
        """A descriptor of a card's file, if that is still as it was and in the kernel's memory: no disk is waited for.

        Any other file is to be read, and its seal examined, by `get`.
        """
        try:
            descriptor = os.open(self._prefix + name, READ_FLAGS)
        except OSError:
            return None
        status = os.fstat(descriptor)
        is_as_it_was = (status.st_ino, status.st_size, status.st_mtime_ns) == signature
        # What was used since `_used` was emptied, a minute ago at most, has not left the kernel's memory.
        if is_as_it_was and (name in self._used or is_in_memory(descriptor, signature[1])):
            self._used[name] = self._clock()
            return descriptor
        os.close(descriptor)
        return None

    def get(self, name: str) -> tuple[StoredCard, Signature] | None:
        """A stored card and the signature of its file, or None where there is no sound file of that name."""
        try:
            descriptor = os.open(self._prefix + name, READ_FLAGS)
        except OSError:
            return None
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_FILE_BYTES:
                return None
            card = unseal(name, os.read(descriptor, MAX_FILE_BYTES))
        except OSError as error:
            log.error("can't read the stored card %s: %s", name, error.strerror)
            return None
        finally:
            os.close(descriptor)
        if card is None:
            return None
        self._used[name] = self._clock()
        return card, _signature(status)

    def put(self, name: str, card: StoredCard) -> Signature | None:
        """Store a card, whole or not at all; the signature of its file. Trouble with the disk is logged."""
        if len(card.png) > MAX_FILE_BYTES:
            log.error("a card of %d bytes is too large to be stored", len(card.png))
            return None
        try:
            signature = self._write(name, card.png)
        except OSError as error:
            log.error("can't store a card in %s: %s", self.folder, error.strerror)
            return None
        self._used[name] = self._clock()
        with self._lock:
            self._bytes += len(card.png)
            over = self._bytes > self._max_bytes
        if over:
            self._wake.set()
        return signature

    def _write(self, name: str, data: bytes) -> Signature:
        self.folder.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(_TEMPORARY, "", self.folder)
        try:
            with open(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                signature = _signature(os.fstat(descriptor))
            _make_way(self.folder / name)
            replace(temporary, self.folder / name)
        except BaseException:
            with contextlib.suppress(OSError):
                remove(temporary)
            raise
        return signature

    def write_uses(self) -> None:
        """Write when cards were last used into the access times of their files.

        Their times of change stay, since those are part of the signature.
        """
        used, self._used = self._used, {}
        for name, moment in list(used.items()):
            with contextlib.suppress(OSError):
                changed_ns = os.lstat(self._prefix + name).st_mtime_ns
                os.utime(self._prefix + name, ns=(int(moment * 1e9), changed_ns))

    def _maintain(self) -> None:
        self._remove_other_versions()
        while not self._closing:
            try:
                if self._wake.wait(WRITE_USES_SECONDS):
                    self._wake.clear()
                    self._trim()
                else:
                    self.write_uses()
            except OSError as error:
                log.error("can't tidy %s: %s", self.folder, error.strerror)

    def _remove_other_versions(self) -> None:
        """What older renderers drew is never asked for again. Whatever else stands there is not ours to remove."""
        with contextlib.suppress(OSError):
            for other in self.folder.parent.iterdir():
                if other != self.folder and _VERSION.fullmatch(other.name) and not other.is_symlink():
                    _remove_cards(other)

    def _trim(self) -> None:
        """Count what is there, and remove the least recently used until there is room."""
        self.write_uses()
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
                try:
                    status = entry.stat(follow_symlinks=False)
                except OSError:
                    continue
                if not stat.S_ISREG(status.st_mode):
                    continue
                left_over = entry.name.endswith(_TEMPORARY) and status.st_mtime < self._clock() - LEFT_OVER_SECONDS
                if left_over or status.st_size > MAX_FILE_BYTES:
                    _removed(Path(entry.path))
                else:
                    found.append((max(status.st_atime_ns, status.st_mtime_ns), status.st_size, entry.name))
        return found


@dataclass(slots=True)
class Entry:
    """A stored card, without its image.

    `name` is that of its file, `signature` that file's when it was found sound; `key_hash` is that of the key in its
    URL; `lines` are the header lines of its answers, once there has been one.
    """

    name: str
    signature: Signature
    key_hash: bytes
    etag: str
    missing_glyphs: int
    lines: bytes = b""


class CardIndex:
    """The cards asked for most recently, by their request targets. For one thread: the server's loop."""

    def __init__(self, max_entries: int = INDEX_ENTRIES, max_characters: int = INDEX_CHARACTERS) -> None:
        self._max_entries = max_entries
        self._max_characters = max_characters
        self._entries: OrderedDict[str, Entry] = OrderedDict()
        self._characters = 0
        """Of all targets together."""

    def get(self, target: str) -> Entry | None:
        entry = self._entries.get(target)
        if entry is not None:
            self._entries.move_to_end(target)
        return entry

    def put(self, target: str, entry: Entry) -> None:
        self.discard(target)
        self._entries[target] = entry
        self._characters += len(target)
        while len(self._entries) > self._max_entries or self._characters > self._max_characters:
            self.discard(next(iter(self._entries)))

    def discard(self, target: str) -> None:
        if self._entries.pop(target, None):
            self._characters -= len(target)


def file_name(target: str) -> str:
    """The stored file of a request target: named by the SHA-256 of its bytes as sent, one a character."""
    return hashlib.sha256(target.encode("latin-1")).hexdigest() + ".png"


def _signature(status: os.stat_result) -> Signature:
    return status.st_ino, status.st_size, status.st_mtime_ns


def _remove_cards(folder: Path) -> None:
    """The cards in a folder, and it with them if it holds nothing else."""
    with contextlib.suppress(OSError):
        for path in folder.iterdir():
            if _CARD.fullmatch(path.name) and path.is_file() and not path.is_symlink():
                _removed(path)
        folder.rmdir()


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
