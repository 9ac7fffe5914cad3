"""What no font has is counted, or written with what they have."""

import pytest

from tests.kit.fonts import FONTS


def test_what_no_font_has_is_counted():
    graphemes = [
        "\U00012000",
        "a\u1acf",
        "\ue000",
        "\U0010ffff",
        "\u200e",
    ]
    assert [FONTS.drawable(grapheme)[1] for grapheme in graphemes] == [
        1,
        1,
        1,
        1,
        0,
    ]


def test_the_part_of_an_emoji_that_no_font_has_is_counted():
    assert FONTS.drawable("👩‍\U0001faf9")[1] == 1
    assert FONTS.drawable("🏃🏽‍➡️ 🇽🇽")[1] == 0


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (
            "\U000f0000 \U000f0fff",
            2,
        ),  # the emoji fonts keep their pictures there
        ("e\u0301\u0302", 0),  # two fonts have one of the marks each
        ("👍🏽 🏴\U000e0067\U000e007f \u200d", 0),
        ("plain “text” 漢字", 0),
    ],
)
def test_a_character_that_some_font_has_is_not_missing(text, count):
    assert FONTS.drawable(text)[1] == count


@pytest.mark.parametrize(
    ("text", "drawn"),
    [
        ("CO₂ x⁵ 10⁻³ ⁿ", "CO₂ x⁵ 10⁻³ ⁿ"),
        ("⅓ ⅞ ⅒ ⅟ ½", "⅓ ⅞ ⅒ ⅟ ½"),
        ("℠ ™ ℅ ℆ ‾ ㌬", "℠ ™ ℅ ℆ ‾ パーツ"),
    ],
)
def test_what_no_font_has_is_written_with_what_they_have(text, drawn):
    assert FONTS.drawable(text) == (drawn, 0)
    assert len(FONTS.choose(drawn, "ja")) == len(drawn)
