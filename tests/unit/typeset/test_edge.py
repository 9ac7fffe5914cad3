"""Where a line begins to the eye."""

import pytest

from cardbeat.typeset.faces.fonts import Fonts
from cardbeat.typeset.line import TextLine
from cardbeat.typeset.paragraph import Style
from cardbeat.typeset.text import fit

FONTS = Fonts()
SERIF = FONTS.with_serif()
SIZE = 160


def line_of(text: str, fonts: Fonts = FONTS) -> TextLine:
    [line] = fit(fonts, text, Style(700, SIZE, SIZE), 1000).lines
    return line


def stem_of(line: TextLine) -> int:
    """Where the ink at half the height of a small letter begins."""
    assert line.ink
    row = -line.ink_y - SIZE // 4
    box = line.ink.crop((0, row, line.ink.width, row + 1)).getbbox()
    assert box
    return box[0]


@pytest.mark.parametrize("text", ["jobs", "îles", "Їжак", "ïx", "Îles"])
def test_tails_and_marks_hang_out_so_that_the_stem_stands_at_the_edge(text: str) -> None:
    line = line_of(text)
    assert 0 < line.hanging_px(SIZE) <= 0.12 * SIZE
    assert stem_of(line) - line.hanging_px(SIZE) <= 0.02 * SIZE


def test_with_serifs_those_at_the_foot_of_the_stem_stand_at_the_edge() -> None:
    assert 0 < line_of("îles", SERIF).hanging_px(SIZE) < stem_of(line_of("îles", SERIF))


@pytest.mark.parametrize(
    "text", ["Table", "Year", "Valley", "Γάμα", "Работа", "home", "quick", "“Quoted”", "7 days", "🚀 up", "東京"]
)
def test_letters_that_are_widest_elsewhere_stay(text: str) -> None:
    assert line_of(text).hanging_px(SIZE) <= 0.02 * SIZE
