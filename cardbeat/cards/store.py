"""Stored cards: a sealed PNG file for each request target, up to a number of bytes, and an index of them."""

import contextlib
import errno
import hashlib
import logging
import os
import shutil
import stat
import sys
import tempfile
import threading
from collections import OrderedDict
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from cardbeat.cards.eviction import StoredFile, leaving
from cardbeat.cards.folder import MAX_FILE_BYTES, TEMPORARY, files_in, remove_other_versions, removed
from cardbeat.cards.seal import TAIL_BYTES, StoredCard, owner_in, unseal
from cardbeat.clock import Clock, wall_clock
from cardbeat.concurrency.threads import BackgroundThread
from cardbeat.host.descriptors import raise_if_lacking
from cardbeat.host.disk import Reserve
from cardbeat.host.system import READ_FLAGS, is_in_memory, remove, replace

log = logging.getLogger(__name__)

TRIMMED_PART = 0.9  # part of the limit that a trim leaves in use, so that not every new card needs a trim
WRITE_USES_SECONDS = 60  # between two writings of the files' access times
WAKE_SECONDS = 10  # between two wakes for want of disk: some file systems take as long to free what was removed

OWNERS_KNOWN = 65_536
"""Cards whose owner is kept in memory, about 0.2 KB each. For more, it is read from the file when files are removed."""
INDEX_ENTRIES = 32_768  # about 0.9 KB of memory each, plus the request target
INDEX_CHARACTERS = 16 * 1024 * 1024  # limit of all request targets in the index together. Each may have 8 KB.

Signature = tuple[int, int, int]
"""One state of a file: its inode number, its size in bytes, its time of change in ns."""


class Store:
    """The cards under `folder`, at most `max_bytes` of them; `eviction` says which are removed first.

    They are in a folder named after the renderer's version, so that a new renderer serves no old drawings. Cards of
    other versions are removed. A background thread counts and trims. Only the files say what is stored: several
    processes may share the folder, and a file that is deleted, replaced or damaged is noticed at the next request. Uses
    are kept in memory and written to the files' access times once a minute. If the folder can't be written, cards are
    served and not stored. So they are while less than twice the disk's reserve is free, and stored ones make room then:
    the second half is for what else is new until the next trim.

    Any thread may call any method. `bytes_stored` is changed under the lock. `_used`, `_owners`, `_clients` and
    `_others` need none: each change is one atomic step, or replaces it by an empty one; a use noted at that very moment
    may be lost.
    """

    def __init__(
        self,
        folder: Path,
        max_bytes: int,
        version: str | None = None,
        clock: Clock = wall_clock,
        *,
        accent: str | None = None,
        reserve: Reserve | None = None,
        first_after: float = 0,
    ) -> None:
        """`version` is that of this package's renderer with the accent unless given, `reserve` that of this folder.

        The files are counted after `first_after` seconds.
        """
        self._accent = accent
        self._parent = folder
        self._version = version
        self._max_bytes = max_bytes
        self._clock = clock
        self._reserve = reserve or Reserve(folder)
        self._woken_at = 0.0
        self._used: dict[str, float] = {}
        self._owners: dict[str, str] = {}  # by file name, as far as known
        # Only in memory: a card is public, and says nothing about who asked for it.
        self._clients: dict[str, str] = {}  # the networks for which cards were drawn, by file name
        self._others: dict[str, str] = {}  # for some of these cards: the next network that asked for it
        self.bytes_stored = 0
        """Bytes counted at the last trim, plus those stored since."""
        self._lock = threading.Lock()
        # Used by the thread alone.
        self._is_counted = False
        self._thread = BackgroundThread(
            "card-store", self._maintain, WRITE_USES_SECONDS, at_end=self.write_uses, first_after=first_after
        )
        self._thread.start()

    @cached_property
    def folder(self) -> Path:
        if self._version is None:
            # Not at the start: it imports all that draws, and reads the code.
            from cardbeat.cards.drawing.render import own_version  # noqa: PLC0415

            self._version = own_version(self._accent)
        return self._parent / self._version

    @cached_property
    def _prefix(self) -> str:
        """Of the path of each file: to join paths costs as much as to open the file."""
        return f"{self.folder}{os.sep}"

    def close(self, seconds: float | None = None) -> bool:
        """End the background work and write down what was used when; False where the disk takes longer for that."""
        return self._thread.stop(seconds)

    def open(self, name: str, signature: Signature, client: str) -> int | None:
        """A descriptor of a card's file if that has not changed and is in the kernel's memory. Never waits for a disk.

        For None, `get` must read the file and examine its seal. Does as `note_client` without the cost of a call.
        """
        try:
            descriptor = os.open(self._prefix + name, READ_FLAGS)
        except OSError:
            return None
        status = os.fstat(descriptor)
        is_as_it_was = (status.st_ino, status.st_size, status.st_mtime_ns) == signature
        # A file used since `_used` was emptied, a minute ago at most, is still in the kernel's memory.
        if is_as_it_was and (name in self._used or is_in_memory(descriptor, signature[1])):
            self._used[name] = self._clock()
            if self._clients.get(name, client) != client:
                self._others.setdefault(name, client)
            return descriptor
        os.close(descriptor)
        return None

    def get(self, name: str) -> tuple[StoredCard, Signature] | None:
        """A stored card and its file's signature; None if no valid file has that name. Raises `Unavailable`."""
        try:
            descriptor = os.open(self._prefix + name, READ_FLAGS)
        except OSError as error:
            raise_if_lacking(error)
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

    def note_client(self, name: str, client: str) -> None:
        """Note that a client of this network has asked for a card: cards that several ask for are removed last."""
        if self._clients.get(name, client) != client:
            self._others.setdefault(name, client)

    def put(self, name: str, card: StoredCard, client: str = "") -> Signature | None:
        """Store a card that was drawn for a client of this network, whole or not at all.

        Returns the signature of its file, None on an error, which is logged.
        """
        if len(card.png) > MAX_FILE_BYTES:
            log.error("a card of %d bytes is too large to be stored", len(card.png))
            return None
        if self._reserve.spare() < self._reserve.bytes:
            if abs(self._clock() - self._woken_at) >= WAKE_SECONDS:
                self._woken_at = self._clock()
                self._thread.wake()
            return None
        self._note_owner(name, card.owner)
        try:
            signature = self._write(name, card.png)
        except OSError as error:
            if error.errno == errno.EDQUOT:
                self._reserve.note_quota()
            log.error("can't store a card in %s: %s", self.folder, error.strerror)
            return None
        self._used[name] = self._clock()
        self._others.pop(name, None)
        if client:
            self._clients[name] = sys.intern(client)
        self._reserve.free_bytes -= len(card.png)  # until the next look
        with self._lock:
            self.bytes_stored += len(card.png)
            if self.bytes_stored > self._max_bytes:
                self._thread.wake()
        return signature

    def _write(self, name: str, data: bytes) -> Signature:
        self.folder.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(TEMPORARY, "", self.folder)
        try:
            with open(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                signature = _signature(os.fstat(descriptor))
            place = self.folder / name
            if place.is_dir() and not place.is_symlink():
                shutil.rmtree(place)
            replace(temporary, place)
        except BaseException:
            with contextlib.suppress(OSError):
                remove(temporary)
            raise
        return signature

    def write_uses(self) -> None:
        """Write the times of last use into the files' access times.

        Their times of change stay: they are part of the signature.
        """
        used, self._used = self._used, {}
        for name, moment in list(used.items()):
            with contextlib.suppress(OSError):
                changed_ns = os.lstat(self._prefix + name).st_mtime_ns
                os.utime(self._prefix + name, ns=(int(moment * 1e9), changed_ns))

    def _maintain(self) -> None:
        self.write_uses()
        if not self._is_counted:
            remove_other_versions(self.folder)
        if not self._is_counted or self.bytes_stored > self._max_bytes or self._reserve.spare() < self._reserve.bytes:
            self._trim()
            self._is_counted = True

    def _limit(self, stored: int) -> float:
        """The most bytes of cards: `max_bytes`, or what these `stored` bytes leave if they free what the disk lacks.

        All stay where not even all would bring the reserve back, or where they are on another disk.
        """
        spare = self._reserve.spare()
        if stored + spare < 0 or not self._reserve.covers(self.folder):
            return self._max_bytes
        return min(self._max_bytes, stored + spare - self._reserve.bytes)

    def _trim(self) -> None:
        """Count the files, and remove some until there is room."""
        counted, now = self.bytes_stored, self._clock()
        files = files_in(self.folder, now)
        total = sum(file.bytes for file in files)
        self._reserve.look_again()  # another process may have made room in this second
        limit = self._limit(total)
        if total > limit:
            finished = [file for file in files if not file.name.endswith(TEMPORARY)]
            for file in leaving(map(self._with_owner, finished), now):
                if total <= limit * TRIMMED_PART:
                    break
                # Files used since `write_uses`, a moment ago, stay.
                if file.name not in self._used and removed(self.folder / file.name):
                    total -= file.bytes
        with self._lock:
            # Files stored during the count may count twice until the next trim, but never not at all.
            self.bytes_stored += total - counted

    def _with_owner(self, file: StoredFile) -> StoredFile:
        owner = self._owners.get(file.name) or self._read_owner(file)
        if owner:
            self._note_owner(file.name, owner)
        client, other = (known.get(file.name, "") for known in (self._clients, self._others))
        return file._replace(owner=owner, client=client, other=other)

    def _read_owner(self, file: StoredFile) -> str | None:
        """The owner in a file's seal; None for a file without a seal, or an unreadable one."""
        with contextlib.suppress(OSError), open(os.open(self._prefix + file.name, READ_FLAGS), "rb", 0) as opened:
            opened.seek(max(0, file.bytes - TAIL_BYTES))
            return owner_in(opened.read(TAIL_BYTES))
        return None

    def _note_owner(self, name: str, owner: str) -> None:
        if len(self._owners) >= OWNERS_KNOWN:
            self._owners, self._clients, self._others = {}, {}, {}
        self._owners[name] = sys.intern(owner)


@dataclass(slots=True)
class Entry:
    """A stored card, without its image.

    `name` is that of its file, `signature` that of the file when it was valid, `key_hash` that of the key in its URL.
    `lines` are the header lines of its answers, after the first one.
    """

    name: str
    signature: Signature
    key_hash: bytes
    etag: str
    missing_glyphs: int
    left_out: bool
    lines: bytes = b""


class CardIndex:
    """The most recently requested cards, by request target. For one thread: the server's loop."""

    def __init__(self, max_entries: int = INDEX_ENTRIES, max_characters: int = INDEX_CHARACTERS) -> None:
        self._max_entries = max_entries
        self._max_characters = max_characters
        self._entries: OrderedDict[str, Entry] = OrderedDict()
        self._characters = 0  # the length of all targets together

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
    """The name of a request target's file: the SHA-256 of its bytes as sent, of which each is one character."""
    return hashlib.sha256(target.encode("latin-1")).hexdigest() + ".png"


def _signature(status: os.stat_result) -> Signature:
    return status.st_ino, status.st_size, status.st_mtime_ns
