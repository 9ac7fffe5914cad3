"""Our functions beside the test files of Unicode, which Debian has in its package `unicode-data`."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from cardbeat.typeset.clusters import clean, clusters, is_mark
from cardbeat.typeset.fonts import Fonts

FOLDER = Path("/usr/share/unicode")
PREPENDED = "\u0600\u0605\u06dd\u070f\u0890\u08e2\u0d4e"
"""Number signs of Arabic and its kind: each is drawn by itself, for the fonts have no shapes that enclose digits."""


def lines_of(name: str) -> Iterator[str]:
    for line in (FOLDER / name).read_text("utf-8").splitlines():
        if content := line.partition("#")[0].strip():
            yield content


def grapheme_tests() -> Iterator[list[str]]:
    for line in lines_of("auxiliary/GraphemeBreakTest.txt"):
        parts = line.replace("×", " ").split("÷")
        yield ["".join(chr(int(code, 16)) for code in part.split()) for part in parts if part.split()]


def is_kept(text: str) -> bool:
    """Whether `clean` leaves each character as it is: no controls, and spaces that are the only ones."""
    return all(clean(f"x{character}x") == f"x{character}x" for character in text) and "  " not in text


def as_drawn(grapheme: str) -> str:
    """Without marks on a space or on nothing, which are not drawn."""
    return "" if is_mark(grapheme[0]) else grapheme[0] if grapheme[0] == " " else grapheme


def test_graphemes_are_those_of_the_test_file() -> None:
    tests = [graphemes for graphemes in grapheme_tests() if is_kept("".join(graphemes))]
    assert len(tests) > 150
    deviations = [
        graphemes
        for graphemes in tests
        if clusters("".join(graphemes)) != [drawn for g in graphemes if (drawn := as_drawn(g))]
    ]
    # GB9b: what is prepended in a grapheme is drawn by itself. GB9: so is the colour of a skin after a letter.
    apart = PREPENDED + "\U0001f3ff"
    assert [graphemes for graphemes in deviations if not any(c in apart for g in graphemes for c in g)] == []


def emoji_tests(*statuses: str) -> Iterator[str]:
    for line in lines_of("emoji/emoji-test.txt"):
        codes, _, status = line.partition(";")
        if status.strip() in statuses:
            yield "".join(chr(int(code, 16)) for code in codes.split())


@pytest.mark.parametrize("status", ["fully-qualified", "minimally-qualified", "unqualified", "component"])
def test_every_emoji_of_the_test_file_is_one_picture(status: str) -> None:
    fonts = Fonts()
    emoji = list(emoji_tests(status))
    if status == "unqualified":
        # Without U+FE0F, these are signs of the text.
        emoji = [sequence for sequence in emoji if len(sequence) > 1]
    choices = fonts.fallback.choose([*emoji], "ja")
    assert [e for e in emoji if clusters(e) != [e]] == []
    assert [e for e, c in zip(emoji, choices, strict=True) if [p.subset.emoji for p in c.pieces] != [True]] == []
    assert not any(choice.missing for choice in choices)


def test_a_variation_selector_chooses_between_picture_and_sign() -> None:
    fonts = Fonts()
    for line in lines_of("emoji/emoji-variation-sequences.txt"):
        codes, style, _ = (field.strip() for field in line.split(";"))
        sequence = "".join(chr(int(code, 16)) for code in codes.split())
        if sequence[0].isascii():
            continue  # a digit is an emoji only with its keycap
        (choice,) = fonts.fallback.choose([sequence], "ja")
        is_sign = fonts.fallback.choose([sequence[0] + "\ufe0e"], "ja")[0].pieces[0].subset.emoji is False
        if style == "emoji style" or is_sign:
            assert choice.pieces[0].subset.emoji == (style == "emoji style"), line
