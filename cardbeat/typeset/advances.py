"""Widths of text in em, which hold at any size: exact enough to plan lines with, and quicker than drawing them."""

from collections.abc import Sequence

from cardbeat.typeset import unshaped
from cardbeat.typeset.catalogue import FontSubset
from cardbeat.typeset.faces import Faces

_MEASURED_PX = 1000
_KEPT = 4_000
"""Characters whose advance is kept."""


class Advances:
    """The sum of characters' advances, and how far shaping a text is from it."""

    def __init__(self, faces: Faces) -> None:
        self._faces = faces
        self._advances: dict[tuple[str, str], float] = {}
        """By file and character. Any thread writes without a lock: all write the same."""

    def width_em(self, subset: FontSubset, weight: int, graphemes: Sequence[str], rtl: bool) -> float:
        """What the graphemes, in logical order, are wide without shaping and kerning."""
        if subset.advance_em:
            return subset.scale * subset.advance_em * sum(map(len, graphemes))
        return subset.scale * self._unshaped_em(subset, weight, graphemes, rtl)

    def shaping_factor(self, subset: FontSubset, weight: int, graphemes: Sequence[str], rtl: bool) -> float:
        """How many times `width_em` such a text is wide when it is shaped. Shaping each word would be slow."""
        plain = self._unshaped_em(subset, weight, graphemes, rtl)
        if not (plain and self._faces.shaping and subset.shaped):
            return 1.0
        font = self._faces.font(subset.file(weight), _MEASURED_PX, raqm=True)
        return float(font.getlength("".join(graphemes), direction="rtl" if rtl else "ltr")) / _MEASURED_PX / plain

    def bytes_to_open(self, subset: FontSubset, weight: int) -> int:
        """Of the files that are opened before the subset's widths are known."""
        shaped = self._faces.shaping and subset.shaped
        return self._faces.file_bytes(subset.file(weight)) * ((not subset.advance_em) + shaped)

    def _unshaped_em(self, subset: FontSubset, weight: int, graphemes: Sequence[str], rtl: bool) -> float:
        file = subset.file(weight)
        return sum(self._advance_em(file, character) for character in unshaped.characters_to_draw(graphemes, rtl))

    def _advance_em(self, file: str, character: str) -> float:
        advance = self._advances.get((file, character))
        if advance is None:
            if len(self._advances) >= _KEPT:
                self._advances.clear()
            font = self._faces.font(file, _MEASURED_PX, raqm=False)
            advance = self._advances[file, character] = float(font.getlength(character)) / _MEASURED_PX
        return advance
