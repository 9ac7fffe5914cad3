"""Divides words into lines of at most a width."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate
from math import inf
from typing import NamedTuple, Self

_TOLERANCE_EM = 1e-6  # widths are added in another order here than in `wrapped`
_HARDLY = 0.005  # a difference of raggedness that is not seen: a line of middle width counts as 1
Span = tuple[int, int]  # where a line begins and ends, counted in graphemes of its text


class Word(NamedTuple):
    """Graphemes `start` to `end`, which stay together."""

    start: int
    end: int
    ink_em: float  # its width at the end of a line: without the space after it, with the hyphen that it may get
    full_em: float  # its width before another word
    penalty: float = 0.0  # added to the raggedness if a line ends with it: a line of middle width counts as 1


class Length(NamedTuple):
    """The length of words, which shows where they can't fit."""

    widest_em: float
    full_em: float  # the sum of all words in one line
    spared_em: float  # the most that is left out at the end of a line

    @classmethod
    def of(cls, words: Sequence[Word]) -> Self:
        widest = max((word.ink_em for word in words), default=0.0)
        spared = max((word.full_em - word.ink_em for word in words), default=0.0)
        return cls(widest, sum(word.full_em for word in words), max(0.0, spared))

    def may_stand(self, width_em: float, lines: int) -> bool:
        """Whether they may fit so many lines of that width."""
        return self.widest_em <= width_em and self.full_em <= lines * (width_em + self.spared_em) + _TOLERANCE_EM


def wrapped(words: Sequence[Word], width_em: float, first_em: float = inf) -> list[Span]:
    """Lines that each hold as many words as fit. A word wider than a line has a line to itself.

    No lines if the first word is wider than `first_em`, the width of the first line if that is narrower.
    """
    spans: list[Span] = []
    used = 0.0
    if words and words[0].ink_em > first_em:
        return spans
    for word in words:
        if spans and used + word.ink_em <= (width_em if len(spans) > 1 else min(width_em, first_em)):
            spans[-1] = spans[-1][0], word.end
            used += word.full_em
        else:
            spans.append((word.start, word.end))
            used = word.full_em
    return spans


def balanced(words: Sequence[Word], width_em: float, count: int, first_em: float = inf) -> list[Span]:
    """`count` lines of least raggedness, none wider than `width_em`: the sum of their squared widths is the least.

    Of those that are hardly more ragged, it is the one whose last line is the shortest. There must be such lines: no
    word is wider, and `wrapped` returns as many.
    """
    return _Balance(words, width_em, count, min(width_em, first_em)).spans()


class _Balance:
    """The best lines up to each word, found line after line. Ends and beginnings of lines are counted in words."""

    def __init__(self, words: Sequence[Word], width_em: float, count: int, first_em: float) -> None:
        self._words, self._width_em, self._count = words, width_em + _TOLERANCE_EM, count
        self._first_em = first_em + _TOLERANCE_EM
        self._lefts = list(accumulate((word.full_em for word in words), initial=0.0))
        self._middle = self._lefts[-1] / count or 1.0
        self._costs = {0: 0.0}

    def spans(self) -> list[Span]:
        starts = [self._next_line(ends) for ends in self._possible_ends()]
        spans, end = [], len(self._words)
        for start_of in reversed(starts):
            start = start_of[end]
            spans.append((self._words[start].start, self._words[end - 1].end))
            end = start
        return spans[::-1]

    def _next_line(self, ends: range) -> dict[int, int]:
        """For each of these ends of a line, its best beginning."""
        starts, costs = {}, {}
        for end in ends:
            right = self._right(end)
            choices = [
                (self._costs[start] + ((right - self._lefts[start]) / self._middle) ** 2, start)
                for start in range(self._first_start(end), end)
                if start in self._costs
            ]
            if choices:
                least, _ = min(choices)
                starts[end], cost = max((start, cost) for cost, start in choices if cost <= least + _HARDLY)
                costs[end] = cost + self._words[end - 1].penalty
        self._costs = costs
        return starts

    def _possible_ends(self) -> Iterator[range]:
        """The ends that each line may have: the words before them fit the lines so far, those after them the rest."""
        most = [0, self._last_end(0, self._first_em)]
        least = [len(self._words)]
        for _ in range(self._count):
            most.append(self._last_end(most[-1], self._width_em))
            least.append(self._first_start(least[-1]) if least[-1] else 0)
        return (range(least[self._count - line], most[line] + 1) for line in range(1, self._count + 1))

    def _right(self, end: int) -> float:
        """The end of a line's ink, from the beginning of the first line."""
        return self._lefts[end - 1] + self._words[end - 1].ink_em

    def _first_start(self, end: int) -> int:
        """The first word of the widest line with that end."""
        return min(bisect_left(self._lefts, self._right(end) - self._width_em, 0, end), end - 1)

    def _last_end(self, start: int, width_em: float) -> int:
        """The end of the widest line with that beginning."""
        end = start
        while end < len(self._words) and self._right(end + 1) - self._lefts[start] <= width_em:
            end += 1
        return end
