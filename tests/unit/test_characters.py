"""Characters that are not seen."""

import sys
import unicodedata

import pytest

from cardbeat.characters import BIDI_CONTROLS, holds_formats, seen, shows_nothing, turns_direction

ALL = [chr(code) for code in range(sys.maxunicode + 1)]


def test_every_character_that_controls_direction_is_known():
    controlling = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
    found = {character for character in ALL if unicodedata.bidirectional(character) in controlling}
    marks = {unicodedata.lookup(name) for name in ("LEFT-TO-RIGHT MARK", "RIGHT-TO-LEFT MARK", "ARABIC LETTER MARK")}
    assert set(BIDI_CONTROLS) == found | marks
    assert all(turns_direction(f"a{character}b") and holds_formats(f"a{character}b") for character in BIDI_CONTROLS)


def test_spaces_controls_and_formats_show_nothing():
    assert all(map(shows_nothing, (one for one in ALL if unicodedata.category(one) in ("Zs", "Zl", "Zp", "Cc", "Cf"))))


@pytest.mark.parametrize(
    "name", ["VARIATION SELECTOR", "MONGOLIAN FREE VARIATION SELECTOR", "HANGUL", "KHMER VOWEL INHERENT"]
)
def test_fillers_and_selectors_show_nothing(name):
    found = [one for one in ALL if unicodedata.name(one, "").startswith(name)]
    unseen = [one for one in found if "HANGUL" not in name or "FILLER" in unicodedata.name(one)]
    assert unseen
    assert all(map(shows_nothing, unseen))


def test_letters_digits_marks_signs_and_private_characters_are_seen():
    for text in ("a", "\u05d0", "7", "\u0301", "\u4e2d", "\U0001f600", "\ue000", "\u0378", "-", "\u200dx", "\ud800"):
        assert not shows_nothing(text)
    assert list(seen("a\u200b \u3164b\ufe0f")) == ["a", "b"]


def test_joiners_are_part_of_how_words_and_emoji_are_spelt():
    assert not holds_formats("\U0001f468\u200d\U0001f469 \u0645\u06cc\u200c")
    assert holds_formats("a\u00adb")
