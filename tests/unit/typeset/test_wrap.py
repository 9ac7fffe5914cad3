"""Words parted into lines."""

import random
from itertools import combinations

import pytest

from cardbeat.typeset.wrap import Length, Word, balanced, wrapped


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


def test_the_sum_of_squares_decides_not_the_widest_line() -> None:
    assert balanced(words(3, 3, 3, 3, 3, 1), 12, 2) == [(0, 3), (3, 6)]


def test_lines_end_rather_where_it_does_no_harm() -> None:
    whole = [Word(0, 1, 5, 5.5), Word(1, 2, 3, 3, penalty=0.1), Word(2, 3, 3, 3)]
    assert balanced(whole, 12, 2) == [(0, 1), (1, 3)]


@pytest.mark.parametrize("seed", range(20))
def test_no_other_lines_are_less_ragged(seed: int) -> None:
    numbers = random.Random(seed)
    some = words(*(numbers.choice((1, 2, 3, 5)) for _ in range(9)))
    width = numbers.uniform(6, 14)
    count = len(wrapped(some, width))
    every = [[*zip((0, *ends), (*ends, 9), strict=True)] for ends in combinations(range(1, 9), count - 1)]
    fitting = [spans for spans in every if all(line_width(some, span) <= width for span in spans)]
    unseen = 0.005 * count * (sum(word.full_em for word in some) / count) ** 2
    assert raggedness(some, balanced(some, width, count)) <= min(raggedness(some, s) for s in fitting) + unseen


@pytest.mark.parametrize("seed", range(20))
def test_a_length_that_may_not_stand_does_not(seed: int) -> None:
    numbers = random.Random(seed)
    some = words(*(numbers.choice((1, 2, 3, 5)) for _ in range(9)))
    for width in (2.0, 4.9, 5.0, *(numbers.uniform(5, 20) for _ in range(20))):
        spans = wrapped(some, width)
        stands = all(line_width(some, span) <= width for span in spans)
        least = next((lines for lines in range(1, 10) if Length.of(some).may_stand(width, lines)), None)
        assert not stands or (least is not None and least <= len(spans))


def test_a_word_wider_than_a_line_does_not_stand_in_any_number_of_lines() -> None:
    assert not Length.of(words(1, 9, 1)).may_stand(8.9, 100)
    assert Length.of(words(1, 9, 1)).may_stand(9, 3)


def test_words_twice_as_long_as_a_line_need_more_than_two_of_them() -> None:
    assert not Length.of(words(4, 4, 4, 4)).may_stand(8, 1)
    assert not Length.of(words(4, 4, 4, 4, 4)).may_stand(8.5, 2)
    assert Length.of(words(4, 4, 4, 4)).may_stand(8.5, 2)


def test_of_lines_that_are_as_ragged_the_first_is_the_longest() -> None:
    assert balanced(words(3, 3, 3), 7, 2) == [(0, 2), (2, 3)]
    assert balanced(words(3.01, 3, 3.02), 7, 2) == [(0, 2), (2, 3)]


def line_width(some: list[Word], span: tuple[int, int]) -> float:
    return sum(word.full_em for word in some[span[0] : span[1]]) - 0.5


def raggedness(some: list[Word], spans: list[tuple[int, int]]) -> float:
    return sum(line_width(some, span) ** 2 for span in spans)
