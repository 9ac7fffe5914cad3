"""A text with its fonts, directions and line breaks found, from which lines of any size are drawn."""

from collections.abc import Sequence
from functools import cache
from itertools import accumulate, groupby, pairwise

from cardbeat.typeset import bidi
from cardbeat.typeset.breaks import Break, breaks
from cardbeat.typeset.catalogue import FontSubset
from cardbeat.typeset.clusters import ZWSP, clean, clusters
from cardbeat.typeset.fallback import FontChoice
from cardbeat.typeset.fonts import Fonts
from cardbeat.typeset.han import language_of
from cardbeat.typeset.line import LineBuilder, TextLine
from cardbeat.typeset.wrap import Word

ELLIPSIS = "…"
_SAMPLE = 60
"""Graphemes that show how shaping changes the widths of a script."""


class Paragraph:
    """One text in one weight. Widths are planned, in em; what is drawn may differ a little."""

    def __init__(self, fonts: Fonts, text: str, *, room: int, weight: int, language: str | None) -> None:
        """Looks at the first `room` graphemes only; `truncated` says whether there are more."""
        text, self.missing = fonts.repertoire.drawable(clean(text))
        graphemes = clusters(text[: 4 * room])
        self._fonts, self._weight = fonts, weight
        # A line of Han can need more faces than `fonts` keeps open: opened again for each line, they would cost most.
        self._faces = cache(lambda subset, size_px: fonts.faces.face(subset, weight, size_px))
        self.truncated = len(graphemes) > room
        graphemes = graphemes[:room]
        whole = "".join(graphemes)
        self.rtl = bidi.is_rtl(whole)
        self._breaks = breaks(graphemes)
        self._levels = _levels(graphemes, whole, self.rtl)
        self._choices = fonts.fallback.choose(graphemes, language_of(whole, language))
        self._space = [g in (" ", ZWSP) for g in graphemes]
        self._factors = self._shaping_factors()

    def __len__(self) -> int:
        """Graphemes, of which `words` and `line` count places."""
        return len(self._choices)

    def words(self, least: Break) -> list[Word]:
        """What stays together when lines may break at `least` or better."""
        starts = [i for i, good in enumerate(self._breaks) if i == 0 or good >= least]
        return [self._word(start, end) for start, end in pairwise([*starts, len(self)])]

    def ends_em(self, start: int) -> list[float]:
        """The width from `start` to the end of each grapheme after it."""
        return list(accumulate(self._width_em(i, i + 1) for i in range(start, len(self))))

    def line(self, start: int, end: int, size_px: int, ellipsis: bool = False) -> TextLine:
        """Graphemes `start` to `end` without the spaces at their end, drawn."""
        end = self._without_space(start, end)
        choices, levels = self._choices[start:end], self._levels[start:end]
        if ellipsis:
            choices += self._fonts.fallback.choose([ELLIPSIS], "ja")
            levels = [*levels, int(self.rtl)]
        runs = _runs(choices, levels)
        line = LineBuilder(self._faces, size_px)
        for subset, level, texts in bidi.in_visual_order(runs, [level for _, level, _ in runs]):
            line.add(subset, bool(level % 2), texts)
        return line.built()

    def _word(self, start: int, end: int) -> Word:
        stop = self._without_space(start, end)
        ink, full = self._width_em(start, stop), self._width_em(stop, end)
        return Word(start, end, ink, ink + full)

    def _without_space(self, start: int, end: int) -> int:
        while end > start and self._space[end - 1]:
            end -= 1
        return end

    def _width_em(self, start: int, end: int) -> float:
        return sum(
            self._fonts.advances.width_em(subset, self._weight, texts, bool(level % 2)) * self._factors.get(subset, 1)
            for subset, level, texts in _runs(self._choices[start:end], self._levels[start:end])
        )

    def _shaping_factors(self) -> dict[FontSubset, float]:
        samples: dict[FontSubset, tuple[int, list[str]]] = {}
        for subset, level, texts in _runs(self._choices, self._levels):
            if subset.shaped:
                samples.setdefault(subset, (level, []))[1].extend(texts)
        return {
            subset: self._fonts.advances.shaping_factor(subset, self._weight, texts[:_SAMPLE], bool(level % 2))
            for subset, (level, texts) in samples.items()
        }


def _runs(choices: Sequence[FontChoice], levels: Sequence[int]) -> list[tuple[FontSubset, int, list[str]]]:
    """Neighbours that one font draws at one embedding level, in logical order."""
    pairs = zip(choices, levels, strict=True)
    drawn = [(subset, level, text) for choice, level in pairs for subset, text in choice.pieces]
    return [(key[0], key[1], [item[2] for item in group]) for key, group in groupby(drawn, key=lambda d: d[:2])]


def _levels(graphemes: Sequence[str], whole: str, rtl: bool) -> list[int]:
    """The level of each grapheme is its first character's."""
    every, at, found = bidi.levels(whole, rtl), 0, []
    for grapheme in graphemes:
        found.append(every[at])
        at += len(grapheme)
    return found
