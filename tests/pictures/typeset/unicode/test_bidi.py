"""The order of letters on a line."""

import pytest

from cardbeat.typeset.unicode import bidi


def shown(text):
    """Text as the eye meets it from left to right, in the direction of its first strong character."""
    levels = bidi.levels(text, bidi.is_rtl(text))
    mirrored = [
        bidi.MIRRORED.get(c, c) if level % 2 else c
        for c, level in zip(text, levels, strict=True)
    ]
    return "".join(bidi.in_visual_order(mirrored, levels))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain text", "plain text"),
        ("אבג", "גבא"),
        ("אבג 12 דה", "הד 12 גבא"),
        ("אבג 1,234.5 דה", "הד 1,234.5 גבא"),
        ("אב (abc) גד", "דג (abc) בא"),
        ("אב [גד]", "[דג] בא"),
        ("ab (אבג) cd", "ab (גבא) cd"),
        ("ab אבג!", "ab גבא!"),
        ("אבג abc!", "!abc גבא"),
        ("עולה 50$", "50$ הלוע"),
        ("שלום: v2.0 (beta) יצא", "אצי v2.0 (beta) :םולש"),
    ],
)
def test_letters_and_numbers_stand_in_the_order_they_are_read(
    text, expected
):
    assert shown(text) == expected


def test_arabic_digits_keep_their_order_and_the_percent_sign_stands_left_of_them() -> (
    None
):
    assert shown("زاد ٢٥٪ هنا") == "انه ٪٢٥ داز"


@pytest.mark.parametrize(
    ("text", "rtl"),
    [
        ("12 אב ab", True),
        ("12 ab אב", False),
        ("12 !?", False),
        ("", False),
    ],
)
def test_the_first_strong_character_decides_the_direction(text, rtl):
    assert bidi.is_rtl(text) is rtl


def test_nested_levels_are_turned_from_the_inside_out():
    assert bidi.in_visual_order("abcdef", [0, 1, 2, 2, 1, 0]) == list(
        "aecdbf"
    )


def test_what_is_taken_out_has_the_level_before_it():
    assert bidi.levels("a\u200d1א\u200db\u200d", rtl=True) == [
        2,
        2,
        2,
        1,
        1,
        2,
        2,
    ]
    assert bidi.levels("\u200dא", rtl=False) == [0, 1]


def test_deep_brackets_are_given_up_rather_than_searched():
    assert (
        len(bidi.levels("א" + "(" * 5_000 + ")" * 5_000, rtl=True))
        == 10_001
    )
