"""Words parted into lines."""

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
