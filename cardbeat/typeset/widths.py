"""The widths that lines are planned with, in em: near enough, and quicker than drawing."""

from collections.abc import Sequence

from cardbeat.typeset.advances import Advances
from cardbeat.typeset.catalogue import FontSubset
from cardbeat.typeset.fallback import FontChoice, Piece, runs_of
from cardbeat.typeset.tracking import Tracking

_SAMPLE = 60
"""Graphemes that show how shaping changes the widths of a script."""
_LEAST_SAMPLE = 4
"""Fewer change the width of a line by less than is corrected when it is drawn: not worth opening their font for."""


class Widths:
    """Those of one text in one weight, whose graphemes have fonts and embedding levels."""

    def __init__(
        self,
        advances: Advances,
        weight: int,
        tracking: Tracking,
        choices: Sequence[FontChoice],
        levels: Sequence[int],
    ) -> None:
        self._advances, self._weight, self._tracking = advances, weight, tracking
        self._choices, self._levels = choices, levels
        self._alone: dict[tuple[tuple[Piece, ...], int], float] = {}
        self._at: dict[int, float] = {}
        self._factors: dict[FontSubset, float] = {}
        self._samples = self._shaped_samples()
        self._has_rtl = any(level % 2 for level in levels)

    def alone_em(self, place: int) -> float:
        """The width of one grapheme, measured once for each letter: a text has far fewer than places."""
        width = self._at.get(place)
        if width is None:
            key = self._choices[place].pieces, self._levels[place] % 2
            if key not in self._alone:
                self._alone[key] = self._runs_em(place, place + 1)
            width = self._at[place] = self._alone[key]
        return width

    def between_em(self, start: int, end: int) -> float:
        """The width of neighbours, the last of them before `end`."""
        if self._has_rtl and end - start > 1 and any(level % 2 for level in self._levels[start:end]):
            return self._runs_em(start, end)
        return sum(map(self.alone_em, range(start, end)))

    def _runs_em(self, start: int, end: int) -> float:
        """Letters that run from the right are measured together: those of Arabic have other shapes where they join."""
        return sum(
            self._advances.width_em(subset, self._weight, texts, bool(level % 2)) * self._factor(subset)
            + self._tracking.em(subset, level) * len(texts)
            for subset, level, texts in runs_of(self._choices[start:end], self._levels[start:end])
        )

    def _shaped_samples(self) -> dict[FontSubset, tuple[int, list[str]]]:
        """For each font whose letters are shaped, the level and the first graphemes of what it draws."""
        samples: dict[FontSubset, tuple[int, list[str]]] = {}
        for subset, level, texts in runs_of(self._choices, self._levels):
            if subset.shaped:
                samples.setdefault(subset, (level, []))[1].extend(texts)
        return samples

    def _factor(self, subset: FontSubset) -> float:
        """How many times the width of its letters alone shaped text in this font is wide, by a sample."""
        if subset not in self._factors:
            level, texts = self._samples.get(subset, (0, []))
            self._factors[subset] = (
                self._advances.shaping_factor(subset, self._weight, texts[:_SAMPLE], bool(level % 2))
                if len(texts) >= _LEAST_SAMPLE
                else 1.0
            )
        return self._factors[subset]
