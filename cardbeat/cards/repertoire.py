"""Which characters any of the fonts has."""

from collections.abc import Iterable, Sequence
from functools import cached_property

from cardbeat.cards.clusters import is_invisible
from cardbeat.cards.emoji import Emoji


class Repertoire:
    """Asked for whole texts, also where only a part is drawn: one look-up a character, however many fonts there are."""

    def __init__(self, stretches: Iterable[Sequence[int]], emoji: Emoji) -> None:
        """`stretches` says for each font where covered (even places) and uncovered (odd places) codepoints begin."""
        self._stretches = tuple(stretches)
        self._emoji = emoji

    def missing(self, text: str) -> int:
        """How many of a clean text's characters no font has."""
        if text.isascii():
            return 0
        lacking = {character for character in set(text) if not self.has(character)}
        return sum(character in lacking for character in text) if lacking else 0

    def has(self, character: str) -> bool:
        """Also where it is drawn as nothing, as it should be."""
        codepoint, covered = ord(character), self._covered
        if codepoint < len(covered) and covered[codepoint]:
            return True
        return is_invisible(character) or character in self._emoji.characters

    @cached_property
    def _covered(self) -> bytearray:
        """A byte a codepoint; made when the first text needs it."""
        covered = bytearray(max(starts[-1] for starts in self._stretches))
        for starts in self._stretches:
            for start, end in zip(starts[::2], starts[1::2], strict=True):
                covered[start:end] = b"\1" * (end - start)
        return covered
