"""Divides words into lines: as many as fit, or the best of equal length and sense."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate, pairwise
from operator import sub
from typing import NamedTuple

Span = tuple[int, int]
"""Where a line begins and ends, counted in graphemes of its text."""
_Best = dict[int, tuple[float, tuple[int, ...]]]
"""The best lines by the number of their words: their cost, and where each ends, from 0 on."""

_LINE_COST = 0.4
"""Of each line: of two ways in one size, that with fewer lines."""
_SHORT = 0.65
_SHORT_COST = 2.0
"""Cost of a line that is shorter than this part of the mean."""


class Word(NamedTuple):
    """Graphemes `start` to `end`, which stay together."""

    start: int
    end: int
    ink_em: float
    """Its width at the end of a line, without the space after it."""
    full_em: float
    """Its width before another word."""
    cost: float = 0.0
    """How bad it is to end a line with it; less than 0 where that is good."""


class Lines(NamedTuple):
    """Lines of a text, the width of the longest, and how bad they are."""

    spans: list[Span]
    width_em: float
    cost: float


class Words:
    """The words of a text, in order. Lines that were found are kept for other widths."""

    def __init__(self, words: Sequence[Word]) -> None:
        self._words = words
        self._lefts = list(
            accumulate((word.full_em for word in words), initial=0.0)
        )
        """Where each word begins if all stand on one line, and where the last ends."""
        spaces = [word.full_em - word.ink_em for word in words]
        self._rights = [0.0, *map(sub, self._lefts[1:], spaces)]
        """Where lines of so many first words end, without spaces."""
        self._costs = [0.0, *(word.cost for word in words)]
        self._space_em = max(spaces)
        self._longest_em = max(word.ink_em for word in words)
        self._found: dict[int, list[tuple[float, Lines | None]]] = {}

    def wrapped(self, width_em: float) -> list[Span]:
        """Lines that each hold as many words as fit. A word wider than a line has one to itself."""
        spans = []
        end = 0
        while end < len(self._words):
            start = end
            fitting = (
                bisect_right(self._rights, self._lefts[start] + width_em)
                - 1
            )
            end = max(fitting, start + 1)
            spans.append(self._span(start, end))
        return spans

    def by_sense(self, width_em: float, count: int) -> Lines | None:
        """The best `count` lines of at most a width: of similar length, ending where sense does.

        None if there are no such lines. The best of a greater width are the best of this one if
        they fit it.
        """
        most_em = count * (width_em + self._space_em)
        if self._longest_em > width_em or self._lefts[-1] > most_em:
            return None
        found = self._found.setdefault(count, [])
        for greater_em, lines in found:
            if width_em <= greater_em and (
                not lines or lines.width_em <= width_em
            ):
                return lines
        lines = self._best(width_em, count)
        found.append((width_em, lines))
        return lines

    def _best(self, width_em: float, count: int) -> Lines | None:
        """The best first lines up to each word are found line after line.

        So for four words in two lines there are three ways; their costs are those of the word that
        ends the first line and of the lengths.
        """
        lefts = self._lefts
        mean_em = lefts[-1] / count
        best: _Best = {0: (0.0, (0,))}
        for lines_left in reversed(range(count)):
            # The lines that are left must hold the words after this one.
            least = bisect_left(
                lefts,
                lefts[-1] - lines_left * (width_em + self._space_em),
            )
            best = self._one_line_more(best, width_em, mean_em, least)
        if len(self._words) not in best:
            return None
        cost, ends = best[len(self._words)]
        lines = list(pairwise(ends))
        widest_em = max(
            self._rights[end] - lefts[start] for start, end in lines
        )
        return Lines(
            [self._span(start, end) for start, end in lines],
            widest_em,
            cost,
        )

    def _one_line_more(
        self, best: _Best, width_em: float, mean_em: float, least: int
    ) -> _Best:
        """The best ways that are one line longer, and have at least so many words."""
        rights = self._rights
        longer: _Best = {}
        for start, (cost, ends) in best.items():
            left_em = self._lefts[start]
            fitting = bisect_right(rights, left_em + width_em) - 1
            for end in range(max(least, start + 1), fitting + 1):
                length = (rights[end] - left_em) / mean_em
                total = (
                    cost
                    + self._costs[end]
                    + _LINE_COST
                    + (1 - length) ** 2
                )
                if length < _SHORT:
                    total += _SHORT_COST
                if end not in longer or total < longer[end][0]:
                    longer[end] = total, (*ends, end)
        return longer

    def _span(self, start: int, end: int) -> Span:
        return self._words[start].start, self._words[end - 1].end
