"""Which characters the fonts have, and what to write instead of some that they do not."""

import unicodedata
from collections.abc import Iterable

from cardbeat.typeset.catalogue import SubsetTable
from cardbeat.typeset.clusters import is_invisible
from cardbeat.typeset.emoji import EmojiSequences

_RISES_EM = {"<super>": 0.4, "<sub>": -0.14}
"""By the kind of decomposition that UnicodeData.txt gives."""


class Repertoire:
    """All fonts together, for whole texts, of which perhaps a part is drawn: one look-up a character."""

    def __init__(self, tables: Iterable[SubsetTable], emoji: EmojiSequences) -> None:
        self._tables = tuple(tables)
        self._emoji = emoji

    def drawable(self, text: str) -> tuple[str, int]:
        """What to draw for a clean text, and how many of its characters can't be drawn.

        A character that no font has gives way to others that say the same, where there are some that a font has.
        """
        lacking = set() if text.isascii() else {character for character in set(text) if not self.has(character)}
        if not lacking:
            return text, 0
        others = {ord(character): other for character in lacking if (other := self._other(character))}
        return text.translate(others), sum(character in lacking and ord(character) not in others for character in text)

    def has(self, character: str) -> bool:
        """Whether a character is drawn as it should be, which is as nothing for some."""
        if any(table.covers(character) for table in self._tables):
            return True
        return is_invisible(character) or character in self._emoji.characters

    def _other(self, character: str) -> str:
        """What to write a character with that no font has, or "". A small letter stays: it is drawn with its letter."""
        plain = unicodedata.normalize("NFKC", character)
        if plain == character or not all(map(self.has, plain)):
            return ""
        return character if small_letter(character) else plain


def small_letter(character: str) -> tuple[str, float] | None:
    """The letter of a superscript or subscript, and how far above the baseline it stands, in em."""
    rise_em = _RISES_EM.get(unicodedata.decomposition(character).partition(" ")[0])
    letter = unicodedata.normalize("NFKC", character)
    return (letter, rise_em) if rise_em and len(letter) == 1 else None
