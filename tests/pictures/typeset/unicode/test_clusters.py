"""Text made safe, and graphemes."""

import random

import pytest

from cardbeat.files import read_text
from cardbeat.typeset.unicode.clusters import clean, clusters
from tests.bench.hostile_texts import ENDLESS, endless


@pytest.mark.parametrize(
    "grapheme",
    [
        "e\u0302\u0323", "👍🏽", "👩‍👩‍👧‍👦", "🏳️‍🌈", "🇩🇪", "1️⃣", "🏴󠁧󠁢󠁳󠁣󠁴󠁿", "นี่", "น้ำ", "क्षि", "ক্ষ", "스", "각", "རྒྱ", "ស្អា",
    ],
)  # fmt: skip
def test_a_grapheme_is_one(grapheme):
    assert len(clusters("x" + clean(grapheme) + "x")) == 3


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("🇩🇪🇫🇷🇯", 3),
        ("ab", 2),
        ("สวย", 3),
        ("नमस्ते", 3),
        ("👍👍", 2),
        ("a👍🏽b", 3),
        ("a🏽b", 3),
        ("🏽", 1),
    ],
)
def test_neighbours_stay_apart(text, count):
    assert len(clusters(text)) == count


def test_white_space_of_any_kind_is_one_space():
    assert (
        clean(" a\t\n\u3000b\u2028c\x85d ").replace("\u3000", "")
        == "a b c d"
    )


def test_what_is_never_drawn_is_dropped():
    assert (
        clean(
            "a\x00\x1b\u202a\u202c\u202e\u2066\u00ad\ufeff\U000e0001b\u2069"
        )
        == "ab"
    )


def test_surrogates_become_the_replacement_character():
    assert clean("a\ud800b") == "a\ufffdb"


def test_a_phrase_in_one_character_is_spelt_out():
    assert clean("\ufdfd").startswith("بسم الله")


@pytest.mark.parametrize("kind", ENDLESS)
def test_a_grapheme_without_end_is_cut_into_several_or_loses_its_end(
    kind,
):
    text = clean(endless(random.Random(2), kind, 2_000))
    assert max(map(len, clusters(text))) <= 12
    assert "".join(clusters(text[:12])) == text[:12]


def test_every_emoji_is_one_grapheme_and_far_from_the_longest():
    emoji = read_text("fonts/emoji.txt").splitlines()
    assert all(clusters(sequence) == [sequence] for sequence in emoji)
    assert max(map(len, emoji)) <= 10


def test_marks_without_a_letter_are_dropped():
    assert clusters("\u0301 \u0e34a") == [" ", "a"]
