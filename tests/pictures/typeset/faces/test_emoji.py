"""Sequences of emoji, and what draws them."""

import pytest

from cardbeat.files import read_text
from cardbeat.typeset.faces.fonts import emoji_parts, is_emoji
from cardbeat.typeset.unicode.clusters import EMOJI_STYLE


def test_every_sequence_is_drawn_by_one_character_of_its_own():
    sequences = read_text("fonts/emoji.txt").splitlines()
    drawn = [
        emoji_parts(sequence + EMOJI_STYLE) for sequence in sequences
    ]
    assert len({character for [character] in drawn}) == len(sequences)


def test_the_longest_sequence_is_drawn_and_what_stands_between_is_text() -> (
    None
):
    family, text, thumb = emoji_parts("👨‍👩‍👦x👍🏽")
    assert text == "x"
    assert [family, thumb] == emoji_parts("👨‍👩‍👦") + emoji_parts("👍🏽")


@pytest.mark.parametrize(
    ("grapheme", "emoji"),
    [
        ("☕", True),
        ("☕\ufe0e", False),
        ("❤", False),
        ("❤\ufe0f", True),
        ("👍", True),
        ("1", False),
        ("1\ufe0f\u20e3", True),
        ("☝🏽", True),
        ("漢", False),
    ],
)
def test_an_emoji_is_told_from_a_sign_of_the_text(grapheme, emoji):
    assert is_emoji(grapheme) is emoji
