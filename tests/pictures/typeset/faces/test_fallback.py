"""Which font draws a grapheme."""

import pytest
from PIL import features

from cardbeat.typeset.faces.fonts import Fonts
from cardbeat.typeset.text import Style, fit
from tests.kit.fonts import FONTS

ENGINES = [pytest.param(False, id="basic")] + [
    pytest.param(True, id="raqm")
] * bool(features.check("raqm"))


def names(text, language="ja", serif=False):
    """The fonts of a text's graphemes, without numbers of parts."""
    return [
        one.font.name.rstrip("0123456789-")
        for one in FONTS.choose(text, language, serif)
    ]


def test_spaces_and_punctuation_take_the_font_beside_them():
    assert len(set(names("ا ب"))) == 1
    for text in ("中“文", "“中文"):
        assert all(name.startswith("han") for name in names(text))
    assert set(names("word, word")) == {"inter-latin"}


def test_an_emoji_is_one_picture_and_an_unknown_sequence_its_parts():
    assert names("👨‍👩‍👧‍👦") == ["emoji"]
    assert names("👩‍🚽") == ["emoji", "emoji"]
    assert names("❤\ufe0e") != names("❤\ufe0f") == ["emoji"]


def test_what_no_font_has_is_drawn_as_nothing():
    assert names("a\ue000\U000f0000") == ["inter-latin"]


@pytest.mark.parametrize("text", ["ọ̀", "ɔ̃", "с̌", "é̩", "я́"])
def test_a_letter_and_its_marks_are_drawn_by_one_font_that_places_them(
    text,
):
    [glyphs] = FONTS.choose(text, "ja")
    assert len(glyphs.text) == len(text)


@pytest.mark.parametrize(
    ("text", "has_serifs"),
    [
        ("Serifs für Čeština", True),
        ("Ελληνικά", True),
        ("עברית", True),
        ("日本語", True),
        ("ꦧꦱ and Latin", False),
    ],
)
def test_a_headline_has_serifs_on_all_letters_or_on_none(
    text, has_serifs
):
    from cardbeat.typeset.paragraph import Paragraph

    assert Paragraph(FONTS, text, 700, serif=True).is_serif == has_serifs


@pytest.mark.parametrize("shaping", ENGINES)
def test_a_letter_without_a_bold_weight_is_drawn_bolder(shaping):
    fonts = Fonts(shaping=shaping)
    amounts = []
    for weight in (400, 700):
        [line] = fit(fonts, "ꓡꓲꓢꓴ", Style(weight, 96, 96), 900).lines
        amounts.append(sum(line.ink.histogram()[128:]))
    assert amounts[1] > 1.15 * amounts[0]
