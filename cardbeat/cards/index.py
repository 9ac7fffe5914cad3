"""What is remembered of stored cards, so that a card asked for again is neither read nor judged again."""

from collections import OrderedDict
from dataclasses import dataclass

from cardbeat.cards.store import Signature

MAX_ENTRIES = 32_768
"""Each takes about 0.8 KB."""


@dataclass(slots=True)
class Entry:
    """A stored card, without its image.

    `signature` is that of its file when it was found sound; `key_hash` is that of the key in its URL; `lines` are the
    header lines of its answer.
    """

    signature: Signature
    key_hash: bytes
    etag: str
    missing_glyphs: int
    lines: bytes


class CardIndex:
    """The cards asked for most recently, by the names of their files. For one thread: the server's loop."""

    def __init__(self, max_entries: int = MAX_ENTRIES) -> None:
        self._max_entries = max_entries
        self._entries: OrderedDict[str, Entry] = OrderedDict()

    def get(self, name: str) -> Entry | None:
        entry = self._entries.get(name)
        if entry is not None:
            self._entries.move_to_end(name)
        return entry

    def put(self, name: str, entry: Entry) -> None:
        self._entries[name] = entry
        self._entries.move_to_end(name)
        if len(self._entries) > self._max_entries:
            self._entries.popitem(last=False)

    def discard(self, name: str) -> None:
        self._entries.pop(name, None)
