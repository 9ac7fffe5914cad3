"""Which characters the fonts have, and what to draw instead of some that they do not have."""

import unicodedata
from collections.abc import Iterable

from cardbeat.typeset.faces.catalogue import SubsetTable
from cardbeat.typeset.faces.emoji import EmojiSequences
from cardbeat.typeset.unicode.clusters import is_invisible

_RISES_EM = {"<super>": 0.4, "<sub>": -0.14}  # by the kind of decomposition in UnicodeData.txt


class Repertoire:
    """The characters of all fonts together, for whole texts: one look-up a character."""

    def __init__(self, tables: Iterable[SubsetTable], emoji: EmojiSequences) -> None:
        self._tables = tuple(tables)
        self._emoji = emoji

    def drawable(self, text: str) -> tuple[str, int]:
        """What to draw for a clean text, and how many of its characters can't be drawn.

        A character that no font has is replaced by equivalent ones (NFKC) if the fonts have those.
        """
        lacking = set() if text.isascii() else {character for character in set(text) if not self.has(character)}
        if not lacking:
            return text, 0
        others = {ord(character): other for character in lacking if (other := self._other(character))}
        return text.translate(others), sum(character in lacking and ord(character) not in others for character in text)

    def has(self, character: str) -> bool:
        """Whether a character is drawn, or is rightly invisible."""
        if any(table.covers(character) for table in self._tables):
            return True
        return is_invisible(character) or character in self._emoji.characters

    def _other(self, character: str) -> str:
        """The replacement of a character that no font has, or "". Superscripts and subscripts stay, for `fallback`."""
        plain = unicodedata.normalize("NFKC", character)
        if plain == character or not all(map(self.has, plain)):
            return ""
        return character if small_letter(character) else plain


def small_letter(character: str) -> tuple[str, float] | None:
    """The letter of a superscript or subscript, and its height above the baseline in em; None for others."""
    rise_em = _RISES_EM.get(unicodedata.decomposition(character).partition(" ")[0])
    letter = unicodedata.normalize("NFKC", character)
    return (letter, rise_em) if rise_em and len(letter) == 1 else None
