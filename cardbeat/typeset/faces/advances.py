"""Widths of characters in em, which hold at any size: exact enough to plan lines, and quicker than drawing."""

from collections.abc import Sequence
from functools import lru_cache

from cardbeat.typeset.faces import unshaped
from cardbeat.typeset.faces.catalogue import ADVANCE_UNITS, FontSubset
from cardbeat.typeset.faces.files import Faces

_KEPT = 4_000  # characters that are not in the catalogue, and pairs of letters


class Advances:
    """The sum of characters' advances, and how much shaping and kerning change it. Any thread may use it."""

    def __init__(self, faces: Faces) -> None:
        self._faces = faces
        # `lru_cache` has a lock of its own. Two threads may measure the same once each.
        self.kerning_em = lru_cache(_KEPT)(self._kerning_em)
        self._measured = lru_cache(_KEPT)(self._measure)

    def width_em(self, subset: FontSubset, weight: int, graphemes: Sequence[str], rtl: bool) -> float:
        """The width of graphemes, in logical order, without shaping and kerning."""
        if subset.advance_em:
            return subset.scale * subset.advance_em * sum(map(len, graphemes))
        return subset.scale * self._unshaped_em(subset, weight, graphemes, rtl)

    def shaping_factor(self, subset: FontSubset, weight: int, graphemes: Sequence[str], rtl: bool) -> float:
        """The shaped width of a sample, in parts of its `width_em`; 1 for an empty one. To shape each word is slow."""
        plain = self._unshaped_em(subset, weight, graphemes, rtl)
        if not (plain and self._faces.shaping and subset.shaped):
            return 1.0
        font = self._faces.font(subset.file(weight), ADVANCE_UNITS, raqm=True)
        return float(font.getlength("".join(graphemes), direction="rtl" if rtl else "ltr")) / ADVANCE_UNITS / plain

    def _kerning_em(self, subset: FontSubset, weight: int, pair: str) -> float:
        """The distance added between two characters, mostly less than 0."""
        font = self._faces.font(subset.file(weight), ADVANCE_UNITS, self._faces.shaping)
        return subset.scale * float(font.getlength(pair)) / ADVANCE_UNITS - self.width_em(subset, weight, pair, False)

    def _unshaped_em(self, subset: FontSubset, weight: int, graphemes: Sequence[str], rtl: bool) -> float:
        characters = unshaped.characters_to_draw(graphemes, rtl)
        return sum(self._advance(subset, weight, character) / ADVANCE_UNITS for character in characters)

    def _advance(self, subset: FontSubset, weight: int, character: str) -> float:
        kept = subset.advance(character, weight)
        return self._measured(subset.file(weight), character) if kept is None else kept

    def _measure(self, file: str, character: str) -> float:
        """The advance of a character that the font does not have, in parts of the size."""
        return float(self._faces.font(file, ADVANCE_UNITS, raqm=False).getlength(character))
