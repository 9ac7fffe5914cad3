"""The package's fonts, ready to set text with: which characters they have, and what to draw instead of others."""

import unicodedata
from copy import copy

from cardbeat.typeset.faces.catalogue import SubsetTable, read_catalogue
from cardbeat.typeset.faces.emoji import emoji_characters
from cardbeat.typeset.faces.fallback import Fallback, HanSubsets, small_letter
from cardbeat.typeset.faces.files import Faces
from cardbeat.typeset.unicode.clusters import EMOJI_STYLE, TEXT_STYLE, clean, is_invisible

_EMOJI_PARTS = (EMOJI_STYLE, TEXT_STYLE, "\u20e3")  # marks that select or make an emoji


class Fonts:
    """All that setting a text needs of the fonts. Any number of threads may use one."""

    def __init__(self, max_bytes: int = 1_600_000, shaping: bool | None = None) -> None:
        """Keeps at most `max_bytes` of inflated font files open; `shaping` False leaves Raqm unused."""
        self._catalogue = read_catalogue()
        self.faces = Faces(max_bytes, shaping)
        self._han = HanSubsets(self._catalogue)
        sans = (s for s in self._catalogue if not s.serif)
        self.fallback = Fallback(sans, self._han)
        self._tables = self.fallback.letters, self._han.any
        self._serif = SubsetTable(s for s in self._catalogue if s.serif)

    def with_serif(self) -> "Fonts":
        """The same fonts and opened faces, with serifs on the letters that have them: for headlines."""
        fonts = copy(self)
        first = sorted(self._catalogue, key=lambda s: not s.serif)
        fonts.fallback = Fallback(first, self._han)
        return fonts

    def all_serif(self, text: str) -> bool:
        """Whether every letter, mark and digit of a text has serifs."""
        letters = (c for c in set(clean(text)) if unicodedata.category(c)[0] in "LMN")
        return all(self._serif.covers(c) or c in _EMOJI_PARTS for c in letters)

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
        return is_invisible(character) or character in emoji_characters()

    def _other(self, character: str) -> str:
        """The replacement of a character that no font has, or "". Superscripts and subscripts stay, for `Fallback`."""
        plain = unicodedata.normalize("NFKC", character)
        if plain == character or not all(map(self.has, plain)):
            return ""
        return character if small_letter(character) else plain
