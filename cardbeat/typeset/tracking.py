"""Tracking: one distance for all letters of a text, added to what their font has between them."""

from collections.abc import Sequence

from cardbeat.typeset.advances import Advances
from cardbeat.typeset.catalogue import FontSubset
from cardbeat.typeset.edge import is_european


class Tracking:
    """That of one text in one weight: where it has Latin, Greek or Cyrillic letters, all that their fonts draw.

    Letters of other fonts join, carry marks or stand in squares: they stay as they are.
    """

    def __init__(self, advances: Advances, weight: int, em: float, text: str) -> None:
        """`em` is less than 0 where letters shall stand closer."""
        self._advances, self._weight = advances, weight
        self._em = em if em and any(map(is_european, text)) else 0.0

    def em(self, subset: FontSubset, level: int) -> float:
        """What it adds to each grapheme of a run at this embedding level; 0 where the run is drawn as a whole."""
        return self._em * subset.scale if self._em and subset.european and level % 2 == 0 else 0.0

    def places_em(self, subset: FontSubset, texts: Sequence[str]) -> list[float]:
        """Where each grapheme of a run begins, kerned, and where the run ends. Marks take no room."""
        places, x, before = [], 0.0, ""
        for letter in (text[0] for text in texts):
            if before:
                x += self._advances.kerning_em(subset, self._weight, before + letter)
            places.append(x)
            x += self._advances.width_em(subset, self._weight, letter, False) + self._em * subset.scale
            before = letter
        return [*places, x]
