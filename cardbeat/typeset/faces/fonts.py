"""The package's fonts, ready to set text with."""

import unicodedata
from copy import copy

from cardbeat.typeset.faces.advances import Advances
from cardbeat.typeset.faces.catalogue import SubsetTable, read_catalogue
from cardbeat.typeset.faces.emoji import EmojiSequences
from cardbeat.typeset.faces.fallback import Fallback, HanSubsets
from cardbeat.typeset.faces.files import Faces
from cardbeat.typeset.faces.repertoire import Repertoire
from cardbeat.typeset.unicode.clusters import EMOJI_STYLE, TEXT_STYLE, clean

_EMOJI_PARTS = (EMOJI_STYLE, TEXT_STYLE, "\u20e3")  # marks that select or make an emoji


class Fonts:
    """All that setting a text needs of the fonts. Any number of threads may use one."""

    def __init__(self, max_bytes: int = 1_600_000, shaping: bool | None = None) -> None:
        """Keeps at most `max_bytes` of inflated font files open; `shaping` False leaves Raqm unused."""
        self._catalogue = read_catalogue()
        self.emoji = EmojiSequences()
        self.faces = Faces(max_bytes, shaping)
        self.advances = Advances(self.faces)
        self._han = HanSubsets(self._catalogue)
        sans = (s for s in self._catalogue if not s.serif)
        self.fallback = Fallback(sans, self._han, self.emoji, self.faces.anchors)
        self.repertoire = Repertoire((self.fallback.letters, self._han.any), self.emoji)
        self._serif = SubsetTable(s for s in self._catalogue if s.serif)

    def with_serif(self) -> "Fonts":
        """The same fonts and opened faces, with serifs on the letters that have them: for headlines."""
        fonts = copy(self)
        first = sorted(self._catalogue, key=lambda s: not s.serif)
        fonts.fallback = Fallback(first, self._han, self.emoji, self.faces.anchors)
        return fonts

    def all_serif(self, text: str) -> bool:
        """Whether every letter, mark and digit of a text has serifs."""
        letters = (c for c in set(clean(text)) if unicodedata.category(c)[0] in "LMN")
        return all(self._serif.covers(c) or c in _EMOJI_PARTS for c in letters)
