"""Parts words into lines of at most a width."""

from collections.abc import Sequence
from dataclasses import dataclass

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
    """Lines of similar width: wrapped at the least width, no more than `width_em`, that takes `count` lines."""
    low, high = max(word.ink_em for word in words), width_em
    for _ in range(12):
        middle = (low + high) / 2
        if len(wrapped(words, middle)) <= count:
            high = middle
        else:
            low = middle
    return wrapped(words, high)
