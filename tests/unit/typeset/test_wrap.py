"""Words parted into lines."""

import random

from cardbeat.typeset.wrap import Word, balanced, wrapped


def words(*widths: float) -> list[Word]:
    """Words of one grapheme each, with a space of 0.5 em behind them."""
    return [Word(at, at + 1, width, width + 0.5) for at, width in enumerate(widths)]


def test_a_line_holds_as_many_words_as_fit_without_the_space_at_its_end() -> None:
    assert wrapped(words(1, 1, 1), 2.5) == [(0, 2), (2, 3)]
    assert wrapped(words(1, 1, 1), 2.4) == [(0, 1), (1, 2), (2, 3)]


def test_a_word_that_is_too_wide_has_a_line_to_itself() -> None:
    assert wrapped(words(1, 9, 1), 3) == [(0, 1), (1, 2), (2, 3)]


def test_no_words_are_no_lines() -> None:
    assert wrapped([], 3) == []


def test_balanced_lines_are_as_many_and_of_similar_width() -> None:
    assert wrapped(words(1, 1, 1, 1), 4) == [(0, 3), (3, 4)]
    assert balanced(words(1, 1, 1, 1), 4, 2) == [(0, 2), (2, 4)]


def test_no_word_can_move_to_a_neighbouring_line_to_make_lines_more_alike() -> None:
    chance = random.Random(4)
    for _ in range(200):
        parts = words(*(chance.uniform(0.5, 6) for _ in range(chance.randint(6, 30))))
        width = chance.uniform(12, 30)
        count = len(wrapped(parts, width))
        spans = balanced(parts, width, count)
        assert (spans[0][0], spans[-1][1], len(spans)) == (0, len(parts), count)
        assert max(widths(parts, spans)) <= width
        for n in range(1, count):
            for step in (-1, 1):
                moved = [*spans]
                moved[n - 1], moved[n] = (spans[n - 1][0], spans[n][0] + step), (spans[n][0] + step, spans[n][1])
                if all(start < end for start, end in moved) and max(widths(parts, moved)) <= width:
                    assert raggedness(parts, moved) >= raggedness(parts, spans) - 1e-6


def widths(parts: list[Word], spans: list[tuple[int, int]]) -> list[float]:
    return [sum(word.full_em for word in parts[start:end]) - 0.5 for start, end in spans]


def raggedness(parts: list[Word], spans: list[tuple[int, int]]) -> float:
    """How much the widths vary: their sum is nearly the same for all ways to part the words."""
    return sum(width**2 for width in widths(parts, spans))
