"""The package's fonts, ready to set text with."""

from copy import copy

from cardbeat.typeset.advances import Advances
from cardbeat.typeset.catalogue import read_catalogue
from cardbeat.typeset.emoji import EmojiSequences
from cardbeat.typeset.faces import Faces
from cardbeat.typeset.fallback import Fallback, HanSubsets, HeadlineFallback
from cardbeat.typeset.repertoire import Repertoire


class Fonts:
    """What setting a text asks of the fonts. Any number of threads may use one."""

    def __init__(self, max_bytes: int = 1_600_000, shaping: bool | None = None) -> None:
        """Keeps at most `max_bytes` of inflated font files open; `shaping` False leaves Raqm unused."""
        self._catalogue = read_catalogue()
        self.emoji = EmojiSequences()
        self.faces = Faces(max_bytes, shaping)
        self.advances = Advances(self.faces)
        self._han = HanSubsets(self._catalogue)
        sans = (s for s in self._catalogue if not s.serif)
        self._sans = Fallback(sans, self._han, self.emoji, self.faces.anchors)
        self.fallback: Fallback | HeadlineFallback = self._sans
        self.repertoire = Repertoire((self._sans.letters, self._han.any), self.emoji)

    def with_serif(self) -> "Fonts":
        """The same fonts and opened faces, with serifs on texts whose letters all have some: for headlines."""
        fonts = copy(self)
        first = sorted(self._catalogue, key=lambda s: not s.serif)
        serif = Fallback(first, self._han, self.emoji, self.faces.anchors)
        fonts.fallback = HeadlineFallback(serif, self._sans)
        return fonts
