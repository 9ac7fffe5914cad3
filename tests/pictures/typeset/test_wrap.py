"""Words divided into lines."""

import random
from itertools import combinations, pairwise

import pytest

from cardbeat.typeset.wrap import Lines, Word, Words
from tests.kit.lists import times

SEEDS = range(8)


def words_of(*widths, costs=None):
    """Words of one grapheme each, and the costs of lines that end with some."""
    given = costs or {}
    return Words(
        [
            Word(n, n + 1, em, em + 0.3, given.get(n, 0.0))
            for n, em in enumerate(widths)
        ]
    )


def spans(found):
    return found.spans if found else []


def test_a_line_holds_as_many_words_as_fit_without_the_space_at_its_end() -> (
    None
):
    assert words_of(1, 1, 1, 5, 1).wrapped(2.3) == [
        (0, 2),
        (2, 3),
        (3, 4),
        (4, 5),
    ]


@pytest.mark.parametrize("seed", SEEDS)
def test_no_lines_are_more_equal_than_those_that_are_found(
    seed: int,
):
    chance = random.Random(seed)
    widths = times(chance.randint(3, 9), chance.uniform, 0.9, 1.1)
    words = words_of(*widths)
    for count in (1, 2, 3):
        found = words.by_sense(sum(widths) + 3, count)
        ways = [
            (0, *ends, len(widths))
            for ends in combinations(range(1, len(widths)), count - 1)
        ]
        assert found
        assert len(found.spans) == count
        assert unequal(widths, found.spans) == pytest.approx(
            min(unequal(widths, list(pairwise(way))) for way in ways)
        )


def unequal(widths, lines):
    return sum(
        (sum(widths[start:end]) + 0.3 * (end - start - 1)) ** 2
        for start, end in lines
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_lines_do_not_depend_on_the_widths_asked_before(
    seed: int,
):
    chance = random.Random(seed)
    widths = times(12, chance.uniform, 0.5, 3)
    costs = {n: chance.choice((-1.0, 0.0, 3.0)) for n in range(12)}
    words = words_of(*widths, costs=costs)
    for _ in range(40):
        asked = chance.uniform(3, 30), chance.randint(1, 5)
        assert words.by_sense(*asked) == words_of(
            *widths, costs=costs
        ).by_sense(*asked)


def test_lines_are_no_wider_than_asked():
    found = words_of(2, 2, 2, 2).by_sense(4.3, 2)
    assert found == Lines(
        [(0, 2), (2, 4)], 4.3, found.cost if found else 0
    )
    assert words_of(2, 2, 2, 2).by_sense(4.29, 2) is None
    assert words_of(3, 1).by_sense(2, 2) is None


@pytest.mark.parametrize(
    ("widths", "costs", "ends"),
    [
        ((2, 2, 2, 2), {1: 0.0, 2: 0.1}, [(0, 2), (2, 4)]),
        ((2, 2, 2, 2), {1: 2.0, 2: 0.1}, [(0, 2), (2, 4)]),
        ((2, 2, 2, 2), {1: 3.0, 2: 0.1}, [(0, 1), (1, 4)]),
        ((3, 1, 2, 2), {}, [(0, 2), (2, 4)]),
        ((3, 1, 2, 2), {0: -1.0}, [(0, 1), (1, 4)]),
    ],
)
def test_a_bad_end_is_worse_than_a_short_line_and_a_good_one_worth_some_difference(
    widths: tuple[int, ...],
    costs: dict[int, float],
    ends: list[tuple[int, int]],
):
    assert spans(words_of(*widths, costs=costs).by_sense(8, 2)) == ends
