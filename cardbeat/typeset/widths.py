"""The widths, in em, that the lines of one text are planned with: close to the drawn ones, and quicker to find."""

from collections.abc import Sequence
from itertools import accumulate, chain
from operator import add

from cardbeat.typeset.faces.catalogue import FontSubset
from cardbeat.typeset.faces.files import Faces
from cardbeat.typeset.faces.fonts import FontChoice, Piece, runs_of

_SAMPLE = 60  # graphemes that show how shaping changes the widths of a script
_LEAST_SAMPLE = 4
"""Fewer change a line by less than is corrected when it is drawn: too little to open their font for."""


class Widths:
    """The widths of one text in one weight, whose graphemes have fonts and embedding levels.

    `tracking_em` is added after all that fonts for Latin, Greek and Cyrillic draw, but not between two capitals, which
    would look crowded. Letters of other fonts join, carry marks or fill squares, and are never tracked.
    """

    def __init__(
        self,
        faces: Faces,
        choices: Sequence[FontChoice],
        levels: Sequence[int],
        *,
        weight: int,
        tracking_em: float,
        most_em: float,
    ) -> None:
        """Measures no more graphemes than are `most_em` wide."""
        self._faces, self._weight = faces, weight
        self._choices, self._levels = choices, levels
        self._tracking_em = tracking_em
        self._steps_em: dict[tuple[FontSubset, str], float] = {}
        self._factors: dict[FontSubset, float] = {}
        self._samples = self._shaped_samples()
        self._has_rtl = any(level % 2 for level in levels)
        self.alone_em: list[float] = []  # the width of each grapheme by itself
        self.total_em = 0.0  # their sum: more than `most_em` if the text is wider
        known: dict[tuple[tuple[Piece, ...], int, bool], float] = {}
        capitals = [*(bool(tracking_em) and _is_capital(choice) for choice in choices), False]
        for place, choice in enumerate(choices):
            in_capitals = capitals[place] and capitals[place + 1]
            key = choice.pieces, levels[place] % 2, in_capitals
            if key not in known:
                closer = self.tracking_em(choice.pieces[0].subset, levels[place]) if in_capitals else 0.0
                known[key] = self._runs_em(place, place + 1) - closer
            self.alone_em.append(known[key])
            self.total_em += known[key]
            if self.total_em > most_em:
                break

    def between_em(self, start: int, end: int) -> float:
        """The width of graphemes from `start` to the one before `end`."""
        if self._has_rtl and end - start > 1 and any(level % 2 for level in self._levels[start:end]):
            # Measured together: letters of Arabic have other shapes where they join.
            return self._runs_em(start, end)
        return sum(self.alone_em[start:end])

    def tracking_em(self, subset: FontSubset, level: int) -> float:
        """The tracking of a run at this embedding level; 0 where the run is drawn as a whole."""
        return self._tracking_em * subset.scale if self._tracking_em and subset.european and level % 2 == 0 else 0.0

    def places_em(self, subset: FontSubset, texts: Sequence[str]) -> list[float]:
        """Where each grapheme of a tracked run begins, kerned, and where the run ends. Marks have no width."""
        letters = [text[0] for text in texts]
        pairs = map(add, letters, letters[1:])
        return list(accumulate((self._step_em(subset, p) for p in chain(pairs, letters[-1:])), initial=0.0))

    def _step_em(self, subset: FontSubset, pair: str) -> float:
        """From the beginning of the first of two letters to that of the second, or to the end of the only one."""
        step = self._steps_em.get((subset, pair))
        if step is None:
            step = self._faces.width_em(subset, self._weight, pair[0], False)
            if len(pair) < 2 or not pair.isupper() or not pair.isalpha():
                step += self._tracking_em * subset.scale
            if len(pair) > 1:
                step += self._faces.kerning_em(subset, self._weight, pair)
            self._steps_em[subset, pair] = step
        return step

    def _runs_em(self, start: int, end: int) -> float:
        return sum(
            self._faces.width_em(subset, self._weight, texts, bool(level % 2)) * self._factor(subset)
            + self.tracking_em(subset, level) * len(texts)
            for subset, level, texts in runs_of(self._choices[start:end], self._levels[start:end])
        )

    def _shaped_samples(self) -> dict[FontSubset, tuple[int, list[str]]]:
        """For each font whose letters are shaped, the level and the text of what it draws first."""
        samples: dict[FontSubset, tuple[int, list[str]]] = {}
        for subset, level, texts in runs_of(self._choices, self._levels):
            if subset.shaped:
                samples.setdefault(subset, (level, []))[1].extend(texts)
        return samples

    def _factor(self, subset: FontSubset) -> float:
        """How many times the width of its letters alone shaped text in this font is wide, by a sample."""
        if subset not in self._factors:
            level, texts = self._samples.get(subset, (0, []))
            sample = texts[:_SAMPLE] if len(texts) >= _LEAST_SAMPLE else []
            self._factors[subset] = self._faces.shaping_factor(subset, self._weight, sample, bool(level % 2))
        return self._factors[subset]


def _is_capital(choice: FontChoice) -> bool:
    return bool(choice.pieces) and choice.pieces[0].text[0].isupper()
