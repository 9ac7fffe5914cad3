"""Parts words into lines of at most a width."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import inf

Span = tuple[int, int]
"""Where a line begins and ends, counted in graphemes of its text."""


@dataclass(frozen=True, slots=True)
class Word:
    """Graphemes `start` to `end` that stay together; `ink_em` leaves out the space at the end."""

    start: int
    end: int
    ink_em: float
    full_em: float


def wrapped(words: Sequence[Word], width_em: float) -> list[Span]:
    """Lines that each hold as many words as fit; a word wider than a line has one to itself."""
    spans: list[Span] = []
    used = 0.0
    for word in words:
        if spans and used + word.ink_em <= width_em:
            spans[-1] = spans[-1][0], word.end
            used += word.full_em
        else:
            spans.append((word.start, word.end))
            used = word.full_em
    return spans


def balanced(words: Sequence[Word], width_em: float, count: int) -> list[Span]:
    """Lines of similar width: of all ways to part the words into `count` lines, nearly the least ragged one.

    They are wrapped at the least width, no more than `width_em`, that takes so many lines; then words move between
    neighbouring lines while that makes the sum of their squared widths less.
    """
    low, high = max(word.ink_em for word in words), width_em
    for _ in range(12):
        middle = (low + high) / 2
        if len(wrapped(words, middle)) <= count:
            high = middle
        else:
            low = middle
    return _less_ragged(words, width_em, wrapped(words, high))


def _less_ragged(words: Sequence[Word], width_em: float, spans: Sequence[Span]) -> list[Span]:
    """The same number of lines, none wider than `width_em`, between which no word can move to make them more alike."""
    starts = [word.start for word in words]
    ends_em = list(accumulate((word.full_em for word in words), initial=0.0))
    cuts = [bisect_left(starts, start) for start, _ in spans] + [len(words)]

    def width(first: int, end: int) -> float:
        em = ends_em[end - 1] - ends_em[first] + words[end - 1].ink_em
        return em if first < end and em <= width_em else inf

    moved = True
    while moved:
        moved = False
        for n in range(1, len(cuts) - 1):
            before, after = cuts[n - 1], cuts[n + 1]
            near = [c for c in (cuts[n], cuts[n] - 1, cuts[n] + 1) if before < c < after]
            best = min(near, key=lambda c: width(before, c) ** 2 + width(c, after) ** 2)
            moved = moved or best != cuts[n]
            cuts[n] = best
    return [(words[first].start, words[end - 1].end) for first, end in pairwise(cuts)]
