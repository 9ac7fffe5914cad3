"""Widths of text in em, which hold at any size: exact enough to plan lines with, and quicker than drawing them."""

from collections.abc import Sequence

from cardbeat.typeset import unshaped
from cardbeat.typeset.catalogue import ADVANCE_UNITS, FontSubset
from cardbeat.typeset.faces import Faces

_KEPT = 4_000
"""Characters whose advance is kept, of those that are not in the catalogue; and pairs whose kerning is."""


class Advances:
    """The sum of characters' advances, and how far shaping a text is from it."""

    def __init__(self, faces: Faces) -> None:
        self._faces = faces
        self._advances: dict[tuple[str, str], float] = {}
        """By file and character. Any thread writes without a lock: all write the same."""
        self._kernings: dict[tuple[FontSubset, int, str], float] = {}
        """By subset, weight and pair. Written likewise."""

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
        font = self._faces.font(subset.file(weight), ADVANCE_UNITS, raqm=True)
        return float(font.getlength("".join(graphemes), direction="rtl" if rtl else "ltr")) / ADVANCE_UNITS / plain

    def kerning_em(self, subset: FontSubset, weight: int, pair: str) -> float:
        """How much farther from the first of two characters the second stands than its advance: mostly less than 0."""
        key = subset, weight, pair
        kerning = self._kernings.get(key)
        if kerning is None:
            if len(self._kernings) >= _KEPT:
                self._kernings.clear()
            font = self._faces.font(subset.file(weight), ADVANCE_UNITS, self._faces.shaping)
            length_em = subset.scale * font.getlength(pair) / ADVANCE_UNITS
            kerning = self._kernings[key] = length_em - self.width_em(subset, weight, pair, False)
        return kerning

    def _unshaped_em(self, subset: FontSubset, weight: int, graphemes: Sequence[str], rtl: bool) -> float:
        characters = unshaped.characters_to_draw(graphemes, rtl)
        return sum(self._advance(subset, weight, character) / ADVANCE_UNITS for character in characters)

    def _advance(self, subset: FontSubset, weight: int, character: str) -> float:
        kept = subset.advance(character, weight)
        return self._measured(subset.file(weight), character) if kept is None else kept

    def _measured(self, file: str, character: str) -> float:
        """Of a character that the font does not have, in parts of the size."""
        advance = self._advances.get((file, character))
        if advance is None:
            if len(self._advances) >= _KEPT:
                self._advances.clear()
            font = self._faces.font(file, ADVANCE_UNITS, raqm=False)
            advance = self._advances[file, character] = float(font.getlength(character))
        return advance
