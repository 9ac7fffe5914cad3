"""Tracking: which letters stand closer, and by how much."""

import pytest
from PIL import features

from cardbeat.typeset.faces.fonts import Fonts
from cardbeat.typeset.line import TextLine
from cardbeat.typeset.paragraph import Paragraph, Style
from cardbeat.typeset.unicode.breaks import Break

ENGINES = [pytest.param(False, id="basic")] + [pytest.param(True, id="raqm")] * bool(features.check("raqm"))
SIZE_PX = 100
TRACKING_EM, TRACKING_PX = -0.02, -2
NEXT_TO_NONE = -1e-9
"""Draws letters one by one where their font has them."""


@pytest.fixture(scope="module", params=ENGINES)
def fonts(request: pytest.FixtureRequest) -> Fonts:
    return Fonts(shaping=request.param)


def paragraph(fonts: Fonts, text: str, tracking_em: float) -> Paragraph:
    style = Style(700, SIZE_PX, SIZE_PX, tracking_em=tracking_em)
    return Paragraph(fonts, text, style, 100 * SIZE_PX, language="ja")


def line(fonts: Fonts, text: str, tracking_em: float) -> TextLine:
    whole = paragraph(fonts, text, tracking_em)
    return whole.line(0, len(whole), SIZE_PX)


def marks_box(drawn: TextLine) -> tuple[int, int, int, int]:
    """Of the ink that is higher than a small letter."""
    assert drawn.ink
    box = drawn.ink.crop((0, 0, drawn.ink.width, -drawn.ink_y - 60)).getbbox()
    assert box
    return box


@pytest.mark.parametrize("text", ["Avatar To office, 2024", "Привет, мир", "Γειά σου", "Tiếng Việt đẹp"])
def test_each_letter_stands_closer_to_the_one_before_it(fonts: Fonts, text: str) -> None:
    closer = (len(text) - 1) * TRACKING_PX
    tracked = line(fonts, text, TRACKING_EM).width_px
    assert tracked == pytest.approx(line(fonts, text, NEXT_TO_NONE).width_px + closer, abs=1)
    rounded = 2 if fonts.faces.shaping else len(text) / 2  # without Raqm, Pillow rounds each letter's advance
    assert tracked == pytest.approx(line(fonts, text, 0).width_px + closer, abs=rounded + 3 * ("V" in text))


@pytest.mark.parametrize(("text", "gaps"), [("HTTP API", 2), ("SQLite", 3), ("ЯЩИК", 0), ("ÉTÉ 2024", 5), ("R2D", 2)])
def test_capitals_keep_their_distance_from_each_other(fonts: Fonts, text: str, gaps: int) -> None:
    """`gaps` are those beside anything but capitals."""
    closer = gaps * TRACKING_PX
    whole, apart = (paragraph(fonts, text, tracking_em) for tracking_em in (TRACKING_EM, NEXT_TO_NONE))
    widths = [p.line(0, len(p), SIZE_PX).width_px for p in (whole, apart)]
    assert widths[0] == pytest.approx(widths[1] + closer, abs=1)
    planned = [p.ends_em(0)[-1] * SIZE_PX for p in (whole, apart)]
    assert planned[0] == pytest.approx(planned[1] + closer + TRACKING_PX, abs=0.1)


@pytest.mark.skipif(not features.check("raqm"), reason="only Raqm kerns")
@pytest.mark.parametrize("pair", ["Av", "To", "Ly", "Р."])
def test_pairs_stay_kerned(pair: str) -> None:
    fonts = Fonts()
    assert line(fonts, pair, TRACKING_EM).width_px == pytest.approx(line(fonts, pair, 0).width_px + TRACKING_PX, abs=1)


@pytest.mark.parametrize(
    "text",
    ["مرحبا بالعالم", "שלום עולם", "हिन्दी क्षत्रिय", "ภาษาไทย", "日本語の見出し", "한국어제목", "🎉👩‍💻", "ქართული"],
)
def test_other_letters_stay_as_they_are(fonts: Fonts, text: str) -> None:
    tracked, untracked = (paragraph(fonts, f"{text} abc", em) for em in (TRACKING_EM, 0))
    end = len(paragraph(fonts, text, 0))
    assert tracked.ends_em(0)[:end] == untracked.ends_em(0)[:end]
    a, b = tracked.line(0, end, SIZE_PX), untracked.line(0, end, SIZE_PX)
    assert (a.width_px, a.ink and a.ink.tobytes(), a.emoji) == (b.width_px, b.ink and b.ink.tobytes(), b.emoji)


def test_digits_and_spaces_without_a_european_letter_stay_as_they_are(fonts: Fonts) -> None:
    assert line(fonts, "2024 年 11 月", TRACKING_EM).width_px == line(fonts, "2024 年 11 月", 0).width_px


def test_european_words_in_other_text_stand_closer(fonts: Fonts) -> None:
    assert line(fonts, "שלום London", TRACKING_EM).width_px < line(fonts, "שלום London", 0).width_px


def test_a_mark_stays_on_its_letter(fonts: Fonts) -> None:
    tracked, untracked = marks_box(line(fonts, "oq\u0303o", TRACKING_EM)), marks_box(line(fonts, "oq\u0303o", 0))
    assert tracked[0] == pytest.approx(untracked[0] + TRACKING_PX, abs=1)
    assert (tracked[2] - tracked[0], tracked[3] - tracked[1]) == (
        untracked[2] - untracked[0],
        untracked[3] - untracked[1],
    )


def test_a_letter_with_too_many_marks_is_drawn_without_them(fonts: Fonts) -> None:
    assert line(fonts, "ae" + "\u0301" * 40 + "o", TRACKING_EM).ascent_px <= 1.7 * SIZE_PX


def test_lines_are_planned_with_it(fonts: Fonts) -> None:
    tracked, untracked = (paragraph(fonts, "one 2 three", em).words(Break.GOOD) for em in (TRACKING_EM, 0))
    assert [word.ink_em for word in tracked] == pytest.approx(
        [word.ink_em + (3, 1, 5)[n] * TRACKING_EM for n, word in enumerate(untracked)]
    )


def test_a_soft_hyphen_inside_a_line_leaves_no_ink(fonts: Fonts) -> None:
    serif = fonts.with_serif()
    assert line(serif, "Do\u00adnau", TRACKING_EM).width_px == line(serif, "Donau", TRACKING_EM).width_px
