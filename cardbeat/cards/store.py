"""Stored cards: one sealed PNG file for each request target, within a number of bytes, and an index of them."""

import contextlib
import hashlib
import logging
import os
import shutil
import stat
import sys
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from cardbeat import threads
from cardbeat.cards.eviction import StoredFile, leaving
from cardbeat.cards.folder import MAX_FILE_BYTES, TEMPORARY, files_in, is_temporary, remove_other_versions, removed
from cardbeat.cards.render import RENDERER_VERSION
from cardbeat.cards.seal import TAIL_BYTES, StoredCard, owner_in, unseal
from cardbeat.clock import Clock, wall_clock
from cardbeat.system import READ_FLAGS, is_in_memory, remove, replace

log = logging.getLogger(__name__)

TRIMMED_PART = 0.9
"""How much of the budget a trim leaves in use, so that not every new card needs one."""
WRITE_USES_SECONDS = 60
"""From one writing of the files' access times to the next."""

OWNERS_KNOWN = 65_536
"""Each takes about 0.2 KB of memory; of more cards, the owner is read from the file when room is made."""

INDEX_ENTRIES = 32_768
"""Each takes about 0.9 KB of memory besides its request target."""
INDEX_CHARACTERS = 16 * 1024 * 1024
"""Of all request targets in the index, each of which may have 8 KB."""

Signature = tuple[int, int, int]
"""Tells one state of a file from another: its inode number, its size in bytes, its time of change in ns."""


class Store:
    """The cards under `folder`, at most `max_bytes` of them; `eviction` says which give way first.

    They stand in a folder named after the renderer's version, so that a new renderer serves no old drawings; what
    other versions left is removed. Counting, tidying and trimming go on in the background. Nothing but the files says
    what is stored: several processes may share the folder, and a file that is deleted, replaced or damaged is noticed
    at the next request. Uses are remembered and written to the files' access times now and then, in one go. Where the
    folder can't be written, or the disk is low, cards are answered and not stored.

    Any thread may call any method. `_bytes` is changed under the lock. `_used` and `_owners` need none: each change is
    one step of a dictionary, or puts an empty one in its place; what is noted at that very moment may be lost.
    """

    def __init__(
        self,
        folder: Path,
        max_bytes: int,
        version: str = RENDERER_VERSION,
        clock: Clock = wall_clock,
        *,
        disk_is_low: Callable[[], bool] = lambda: False,
    ) -> None:
        self.folder = folder / version
        # Joining paths costs as much as opening the file.
        self._prefix = f"{self.folder}{os.sep}"
        self._max_bytes = max_bytes
        self._clock = clock
        self._disk_is_low = disk_is_low
        self._used: dict[str, float] = {}
        self._owners: dict[str, str] = {}
        """Whose cards the files are, as far as that is known: by their names."""
        self._bytes = 0
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._wake.set()
        self._closing = False
        self._maintenance = threading.Thread(target=self._maintain, name="card-store", daemon=True)
        threads.start(self._maintenance)

    def close(self, seconds: float | None = None) -> bool:
        """End the background work and write down what was used when; False where the disk takes longer for that."""
        self._closing = True
        self._wake.set()
        return threads.has_ended(self._maintenance, seconds)

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
        self._note_owner(name, card.owner)
        return card, _signature(status)

    def put(self, name: str, card: StoredCard) -> Signature | None:
        """Store a card, whole or not at all; the signature of its file. Trouble with the disk is logged."""
        if len(card.png) > MAX_FILE_BYTES:
            log.error("a card of %d bytes is too large to be stored", len(card.png))
            return None
        if self._disk_is_low():
            return None
        self._note_owner(name, card.owner)
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
        descriptor, temporary = tempfile.mkstemp(TEMPORARY, "", self.folder)
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
        remove_other_versions(self.folder)
        while not self._closing:
            try:
                if self._wake.wait(WRITE_USES_SECONDS):
                    self._wake.clear()
                    self._trim()
                else:
                    self.write_uses()
            except OSError as error:
                log.error("can't tidy %s: %s", self.folder, error.strerror)
        self.write_uses()

    def _trim(self) -> None:
        """Count what is there, and remove what gives way first until there is room."""
        self.write_uses()
        counted, now = self._bytes, self._clock()
        files = files_in(self.folder, now)
        total = sum(file.bytes for file in files)
        if total > self._max_bytes:
            finished = [file for file in files if not is_temporary(file.name)]
            for file in leaving(map(self._with_owner, finished), now):
                if total <= self._max_bytes * TRIMMED_PART:
                    break
                # Those used since the uses were written down, a moment ago, stay.
                if file.name not in self._used and removed(self.folder / file.name):
                    total -= file.bytes
        with self._lock:
            # What was stored meanwhile may count twice, until the next trim, but is never forgotten.
            self._bytes += total - counted

    def _with_owner(self, file: StoredFile) -> StoredFile:
        owner = self._owners.get(file.name) or self._read_owner(file)
        if owner:
            self._note_owner(file.name, owner)
        return file._replace(owner=owner)

    def _read_owner(self, file: StoredFile) -> str | None:
        """Whose card it is as its seal says; None for a file that has none, or can't be read."""
        try:
            descriptor = os.open(self._prefix + file.name, READ_FLAGS)
        except OSError:
            return None
        with open(descriptor, "rb", 0) as opened, contextlib.suppress(OSError):
            opened.seek(max(0, file.bytes - TAIL_BYTES))
            return owner_in(opened.read(TAIL_BYTES))
        return None

    def _note_owner(self, name: str, owner: str) -> None:
        if len(self._owners) >= OWNERS_KNOWN:
            self._owners = {}
        self._owners[name] = sys.intern(owner)


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


def _make_way(path: Path) -> None:
    """Removes a folder that stands where a card belongs; anything else is replaced by the card itself."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
