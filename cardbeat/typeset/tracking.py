"""Tracking: one distance for all letters of a text, added to what their font has between them."""

from collections.abc import Sequence
from itertools import accumulate, chain
from operator import add

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
        self._steps_em: dict[tuple[FontSubset, str], float] = {}

    def em(self, subset: FontSubset, level: int) -> float:
        """What it adds to each grapheme of a run at this embedding level; 0 where the run is drawn as a whole."""
        return self._em * subset.scale if self._em and subset.european and level % 2 == 0 else 0.0

    def places_em(self, subset: FontSubset, texts: Sequence[str]) -> list[float]:
        """Where each grapheme of a run begins, kerned, and where the run ends. Marks take no room."""
        letters = [text[0] for text in texts]
        pairs = map(add, letters, letters[1:])
        return list(accumulate((self._step_em(subset, p) for p in chain(pairs, letters[-1:])), initial=0.0))

    def _step_em(self, subset: FontSubset, pair: str) -> float:
        """From where the first of two letters begins to where the second does, or to the end of the only one."""
        step = self._steps_em.get((subset, pair))
        if step is None:
            step = self._advances.width_em(subset, self._weight, pair[0], False) + self._em * subset.scale
            if len(pair) > 1:
                step += self._advances.kerning_em(subset, self._weight, pair)
            self._steps_em[subset, pair] = step
        return step
