"""Text ordered without a shaping engine."""

import pytest

from cardbeat.typeset.faces.unshaped import characters_to_draw
from tests.kit.fonts import BASIC, FONTS


def test_letters_are_drawn_from_right_to_left_with_brackets_turned():
    assert characters_to_draw("א(ב", rtl=True) == "ב)א"


def test_indic_vowel_signs_stand_before_their_consonant():
    assert characters_to_draw("कि", rtl=False) == "\u093fक"
    assert characters_to_draw("কো", rtl=False) == "\u09c7ক\u09be"


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("क्षत्रिय", 8),
        ("மொழி", 4),
        ("ភាសាខ្មែរ", 9),
        ("ټول ډېر ښه", 3),
        ("ڕۆژنامە", 2),
        ("ܫܠܡܐ", 4),
        ("ߒߞߏ", 3),
        ("ᄒᆞᆫ", 3),
        ("مرحبا بالعالم", 0),
        ("שָׁלוֹם", 0),
        ("น้ำ ภาษาไทย", 0),
        ("За\u0301мок, Ẹ̀kọ́, 漢字, 한글 🎉", 0),
    ],
)
def test_what_only_a_shaping_engine_draws_right_is_counted_where_there_is_none(
    text, count
):
    assert BASIC.unshaped(text) == count
    assert FONTS.unshaped(text) == 0
