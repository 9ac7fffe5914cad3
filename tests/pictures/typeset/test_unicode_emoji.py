"""Emoji beside the files of Unicode, which Debian has in its package `unicode-data`."""

import pytest

from cardbeat.typeset.faces.fonts import Fonts
from cardbeat.typeset.unicode.clusters import clusters
from tests.kit import unicode_files

pytestmark = pytest.mark.skipif(
    not unicode_files.FOLDER.exists(),
    reason="needs Debian's package unicode-data",
)


def lines_of(name):
    for line in (
        (unicode_files.FOLDER / name).read_text("utf-8").splitlines()
    ):
        if content := line.partition("#")[0].strip():
            yield content


def emoji_tests(*statuses):
    for line in lines_of("emoji/emoji-test.txt"):
        codes, _, status = line.partition(";")
        if status.strip() in statuses:
            yield "".join(chr(int(code, 16)) for code in codes.split())


@pytest.mark.parametrize(
    "status",
    [
        "fully-qualified",
        "minimally-qualified",
        "unqualified",
        "component",
    ],
)
def test_every_emoji_of_the_test_file_is_one_picture(status):
    fonts = Fonts()
    emoji = list(emoji_tests(status))
    if status == "unqualified":
        # Without U+FE0F, these are signs of the text.
        emoji = [sequence for sequence in emoji if len(sequence) > 1]
    assert [e for e in emoji if clusters(e) != [e]] == []
    assert [
        e
        for e in emoji
        if [one.font.is_emoji for one in fonts.choose(e, "ja")] != [True]
    ] == []


def test_a_variation_selector_chooses_between_picture_and_sign():
    fonts = Fonts()
    for line in lines_of("emoji/emoji-variation-sequences.txt"):
        codes, style, _ = (field.strip() for field in line.split(";"))
        sequence = "".join(chr(int(code, 16)) for code in codes.split())
        if sequence[0].isascii():
            continue  # a digit is an emoji only with its keycap
        has_sign = not is_picture(fonts, sequence[0] + "\ufe0e")
        if style == "emoji style" or has_sign:
            assert is_picture(fonts, sequence) == (
                style == "emoji style"
            ), line


def is_picture(fonts, grapheme):
    return any(
        glyphs.font.is_emoji for glyphs in fonts.choose(grapheme, "ja")
    )
