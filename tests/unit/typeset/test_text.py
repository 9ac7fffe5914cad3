"""Text set into a box."""

import random
import unicodedata
from itertools import pairwise

import pytest
from PIL import Image, features

from cardbeat.resources import read_text
from cardbeat.typeset.faces.fonts import Fonts
from cardbeat.typeset.line import TextLine
from cardbeat.typeset.paragraph import Paragraph, Style
from cardbeat.typeset.text import Block, fit
from cardbeat.typeset.unicode.clusters import EMOJI_STYLE, clusters

SCRIPTS = {
    "latin": "The quick brown fox", "vietnamese": "Tiếng Việt đẹp", "greek": "Ελληνικά Ἀρχή", "cyrillic": "Русский Ғҙҡ",
    "arabic": "مرحبا بالعالم", "persian": "زبان گچ‌پژ", "urdu": "اردو ٹیکنالوجی ہیں", "hebrew": "שלום עולם",
    "devanagari": "हिन्दी क्षत्रिय", "bengali": "বাংলা ক্ষমা", "tamil": "தமிழ் மொழி", "telugu": "తెలుగు స్త్రీ",
    "kannada": "ಕನ್ನಡ ಕ್ಷೇತ್ರ", "malayalam": "മലയാളം", "gujarati": "ગુજરાતી", "gurmukhi": "ਪੰਜਾਬੀ", "sinhala": "සිංහල ශ්‍රී",
    "oriya": "ଓଡ଼ିଆ", "thai": "ภาษาไทยที่นี่", "lao": "ພາສາລາວ", "khmer": "ភាសាខ្មែរ", "myanmar": "မြန်မာဘာသာ",
    "georgian": "ქართული", "armenian": "Հայերեն", "ethiopic": "አማርኛ", "simplified": "简体中文标题",
    "traditional": "繁體中文標題", "japanese": "日本語のタイトル", "korean": "한국어 제목 뷁", "tibetan": "བོད་སྐད",
    "thaana": "ދިވެހި", "syriac": "ܣܘܪܝܝܐ", "tifinagh": "ⵜⴰⵎⴰⵣⵉⵖⵜ", "cherokee": "ᏣᎳᎩ",
    "syllabics": "ᐃᓄᒃᑎᑐᑦ", "nko": "ߒߞߏ", "yi": "ꆈꌠꉙ",
    "mongolian": "ᠮᠣᠩᠭᠣᠯ", "symbols": "→⇒↗∑∫√∞≠≈∀∈✓★☆♠⌘①♞", "currency": "$€£¥₹₽₺₴₿₩₪₫", "letters": "𝔸𝕓𝒳ℝ",
    "marks": "x̂ q̃ ẍ",
}  # fmt: skip
ENGINES = [pytest.param(False, id="basic")] + [pytest.param(True, id="raqm")] * bool(features.check("raqm"))
STYLE = Style(400, 60, 28, max_lines=2)
BOLD = STYLE._replace(weight=700)
WIDTH_PX = 700


@pytest.fixture(scope="module", params=ENGINES)
def fonts(request: pytest.FixtureRequest) -> Fonts:
    return Fonts(shaping=request.param)


def drawn(block: Block, margin: int = 200) -> Image.Image:
    """All the block's ink, text and emoji, as coverage, with a margin around the block."""
    size = block.width_px + 1 + 2 * margin, block.height_px + 2 * margin
    mask, layer = Image.new("L", size), Image.new("RGBA", size)
    for number, line in enumerate(block.lines):
        baseline = margin + block.first_baseline_px + number * block.line_height_px
        if line.ink:
            mask.paste(line.ink, (margin + line.ink_x, baseline + line.ink_y))
        line.draw_emoji(layer, margin, baseline)
    mask.paste(255, (0, 0), layer.getchannel("A"))
    return mask


@pytest.mark.parametrize("script", SCRIPTS)
def test_every_script_draws_within_its_block(fonts: Fonts, script: str) -> None:
    block = fit(fonts, SCRIPTS[script], BOLD, WIDTH_PX)
    box = drawn(block).getbbox()
    assert block.missing == 0
    assert box
    assert box[0] >= 199
    assert box[1] >= 199
    assert box[2] <= 201 + block.width_px + 1
    assert box[3] <= 201 + block.height_px


@pytest.mark.parametrize("script", SCRIPTS)
def test_every_grapheme_leaves_ink(fonts: Fonts, script: str) -> None:
    for grapheme in clusters(SCRIPTS[script].replace(" ", "")):
        assert drawn(fit(fonts, grapheme, STYLE, WIDTH_PX)).getbbox(), grapheme


def test_a_short_text_keeps_its_size(fonts: Fonts) -> None:
    block = fit(fonts, "Short", STYLE, WIDTH_PX)
    assert (block.size_px, len(block.lines), block.cut) == (60, 1, False)


def test_a_longer_text_shrinks_before_it_is_cut(fonts: Fonts) -> None:
    block = fit(fonts, "A somewhat longer title that has to shrink to fit into its two lines", STYLE, WIDTH_PX)
    assert 28 <= block.size_px < 60
    assert not block.cut


def test_lines_are_balanced(fonts: Fonts) -> None:
    first, second = fit(fonts, "one two three four five six seven eight nine", BOLD, WIDTH_PX).lines
    assert abs(first.width_px - second.width_px) < 160


def test_what_never_fits_is_cut_with_an_ellipsis(fonts: Fonts) -> None:
    block = fit(fonts, "word " * 500, STYLE, WIDTH_PX)
    assert block.cut
    assert block.lines[-1].text.endswith("…")


def test_a_text_is_cut_after_a_word_and_without_the_comma_after_it(fonts: Fonts) -> None:
    narrow = Style(400, 40, 40), 500
    assert fit(fonts, "Locks, retries and (sometimes) back-pressure", *narrow).lines[0].text == "Locks, retries…"
    assert fit(fonts, "One thing at a time, please, dear reader", *narrow).lines[0].text == "One thing at a time…"
    assert fit(fonts, "Llanfairpwllgwyngyllgogerychwyrndrobwll", *narrow).lines[0].text.startswith("Llanfairpwllgwyn")


def test_a_soft_hyphen_is_drawn_where_a_line_ends_there_and_nowhere_else(fonts: Fonts) -> None:
    text = "Donau\u00addampf\u00adschiff\u00adfahrts\u00adgesell\u00adschaft"
    block = fit(fonts, text, STYLE, WIDTH_PX)
    assert [line.text for line in block.lines] == ["Donaudampfschiff-", "fahrtsgesellschaft"]
    assert block.width_px <= 700
    assert fit(fonts, "Rha\u00adbarber", STYLE, WIDTH_PX).lines[0].text == "Rhabarber"


def test_words_are_hyphenated_only_where_they_would_be_much_smaller_otherwise(fonts: Fonts) -> None:
    block = fit(fonts, "A some\u00adwhat longer title with hy\u00adphens", STYLE, WIDTH_PX)
    assert not any("-" in line.text for line in block.lines)


@pytest.mark.parametrize(
    ("title", "ends"),
    [
        ("มหาวิทยาลัยธรรมศาสตร์จัดงานสัมมนาวิชาการนานาชาติประจำปี", ("ศาสตร์", "วิชาการ")),
        ("スマートフォンで撮る美しい夜景写真の撮り方ガイド", ("フォンで撮る", "夜景写真の")),
    ],
)
def test_lines_of_scripts_without_spaces_end_between_words(fonts: Fonts, title: str, ends: tuple[str, ...]) -> None:
    block = fit(fonts, title, Style(700, 120, 40, max_lines=3), 1040)
    assert block.size_px >= 80
    assert len(block.lines) == 3
    assert all(line.text.endswith(end) for line, end in zip(block.lines, ends, strict=False))


def test_isolates_order_a_line_and_are_not_drawn(fonts: Fonts) -> None:
    (line,) = fit(fonts, "שפת \u2066C++\u2069 היא \u2066.NET\u2069", STYLE, WIDTH_PX).lines
    assert line.text.startswith(".NET")
    assert line.text.index(".NET") < line.text.index("C++")


def test_a_long_word_is_broken(fonts: Fonts) -> None:
    block = fit(fonts, "https://example.org/" + "x" * 60, STYLE, WIDTH_PX)
    assert len(block.lines) == 2
    assert block.width_px <= 700


def test_a_paragraph_from_the_right_is_told_and_its_ellipsis_stands_left(fonts: Fonts) -> None:
    block = fit(fonts, "שלום עולם " * 60, STYLE, WIDTH_PX)
    assert block.rtl
    assert block.lines[-1].text.startswith("…")


def test_arabic_is_as_wide_without_shaping_as_with_it() -> None:
    if not features.check("raqm"):
        pytest.skip("no Raqm here")
    for word in ("السلام", "كتابها", "پنجگانه", "ٹیکنالوجی", "الإصدار"):
        shaped, plain = (drawn(fit(Fonts(shaping=s), word, STYLE, WIDTH_PX)).getbbox() for s in (True, False))
        assert shaped
        assert plain
        assert max(abs(a - b) for a, b in zip(shaped, plain, strict=True)) <= 6, word


def emoji_sequences() -> list[str]:
    return read_text("fonts/emoji.txt").splitlines()


def test_every_emoji_sequence_draws_in_colour(fonts: Fonts) -> None:
    sequences = [sequence + EMOJI_STYLE if len(sequence) == 1 else sequence for sequence in emoji_sequences()]
    assert len(sequences) > 3_500
    for start in range(0, len(sequences), 200):
        block = fit(fonts, " ".join(sequences[start : start + 3]), Style(400, 40, 40), 500)
        layer = Image.new("RGBA", (600, 80))
        block.lines[0].draw_emoji(layer, 20, 60)
        assert block.missing == 0
        assert layer.getbbox()


@pytest.mark.parametrize(
    ("text", "missing"), [("o" + "\u0336" * 10, 7), ("\u0301 x", 1), ("x \u0301\u200d", 1), ("ab", 0)]
)
def test_a_mark_that_is_not_drawn_is_counted(fonts: Fonts, text: str, missing: int) -> None:
    assert fit(fonts, text, STYLE, WIDTH_PX).missing == missing


@pytest.mark.parametrize("text", ["Ågj Ẫỗ Ágj", "ཧཱུྃ་བློ ཧཱུྃ་བློ", "اللَّهُ مُحَمَّدٌ اللَّهُ", "漢字漢字漢字漢字漢字"])
def test_lines_never_touch(fonts: Fonts, text: str) -> None:
    block = fit(fonts, " ".join([text] * 6), Style(400, 60, 40, leading=0.8, max_lines=4), 700)
    assert len(block.lines) > 1
    for above, below in pairwise(block.lines):
        assert above.descent_px + below.ascent_px + 0.05 * block.size_px <= block.line_height_px


def test_missing_characters_are_counted_and_leave_no_box(fonts: Fonts) -> None:
    block = fit(fonts, "\U00012000\U00013000\ue123", STYLE, WIDTH_PX)
    assert block.missing == 3
    assert drawn(block).getbbox() is None


def test_missing_characters_are_counted_also_where_the_text_is_cut(fonts: Fonts) -> None:
    assert fit(fonts, "a" * 3_000 + "\ue000" * 900, STYLE, WIDTH_PX).missing == 900
    assert fit(fonts, "\u200b" * 3_000 + "\ue000", STYLE, WIDTH_PX).missing == 1


@pytest.mark.parametrize(("text", "above", "below"), [("⁵", 0.85, -0.35), ("₅", 0.35, 0.2), ("²", 0.85, -0.35)])
def test_a_small_letter_stands_above_or_below_its_line(fonts: Fonts, text: str, above: float, below: float) -> None:
    (line,) = fit(fonts, text, Style(400, 100, 100), 1000).lines
    assert line.ink
    assert -line.ink_y <= 100 * above
    assert line.ink_y + line.ink.height <= 100 * below


def test_a_fraction_reads_from_the_left_also_in_hebrew(fonts: Fonts) -> None:
    assert "1⁄3" in unicodedata.normalize("NFKC", fit(fonts, "שלום ⅓ עולם", STYLE, WIDTH_PX).lines[0].text)


def test_the_replacement_character_draws(fonts: Fonts) -> None:
    assert drawn(fit(fonts, "\ufffd", STYLE, WIDTH_PX)).getbbox()


@pytest.mark.parametrize("text", ["", " ", "\u200b", "\u0301", "\u200e\u2060"])
def test_text_without_ink_is_an_empty_block(fonts: Fonts, text: str) -> None:
    assert drawn(fit(fonts, text, STYLE, WIDTH_PX)).getbbox() is None


@pytest.mark.parametrize("text", ["Designing", "Tomorrow", "javelin", "«Quoted»", "שלום", "מה"])
def test_ink_begins_and_ends_where_the_line_does(fonts: Fonts, text: str) -> None:
    (line,) = fit(fonts, text, Style(700, 128, 128), 1000).lines
    assert line.ink
    assert line.ink.getbbox() == (0, 0, *line.ink.size)
    assert (line.ink_x, line.ink.width) == (0, line.width_px)


def hostile(random_: random.Random) -> str:
    pools = (
        lambda: chr(random_.randrange(0x110000)),
        lambda: chr(random_.randrange(0x300, 0x370)) * random_.randrange(1, 30),
        lambda: random_.choice("\u200d\u200c\u202e\u2066\u2069\u200f\ufe0f\u20e3\U000e0067\u00ad\ud800\ufdfa\ufdfd"),
        lambda: chr(random_.randrange(0x590, 0x1100)),
        lambda: random_.choice(["👩‍👩‍👧", "🇩🇪🇩", "👍🏽", "漢字。", "नमस्ते", "السلام", "שלום", "W" * 40, " ", "\n"]),
        lambda: chr(random_.randrange(0x20, 0x7F)),
    )
    return "".join(random_.choice(pools)() for _ in range(random_.randrange(1, 120)))


def test_no_hostile_text_leaves_its_box(fonts: Fonts) -> None:
    random_ = random.Random(3)
    for _ in range(60):
        text = hostile(random_)
        block = fit(fonts, text, Style(400, 48, 24, max_lines=3), 500, 200)
        assert block.width_px <= 500, ascii(text)
        assert len(block.lines) <= 3, ascii(text)
        if box := drawn(block).getbbox():
            assert box[0] >= 199, ascii(text)
            assert box[2] <= 701, ascii(text)
            assert box[1] >= 199, ascii(text)
            assert box[3] <= 201 + block.height_px, ascii(text)
            assert block.height_px <= 200, ascii(text)


def test_a_huge_text_is_cut_before_it_is_laid_out(fonts: Fonts) -> None:
    for text in (
        "x" * 100_000,
        "e\u0301" * 50_000,
        "\u0301" * 100_000,
        "א " * 50_000,
        "👩‍👩‍👧‍👦" * 10_000,
        "\u202e" * 100_000,
    ):
        assert fit(fonts, text, STYLE, WIDTH_PX).width_px <= 700


def test_only_a_grapheme_that_reaches_too_far_loses_its_marks(fonts: Fonts) -> None:
    title = Style(400, 60, 60)
    plain, tall = "རྒྱུད་བསྒྲུབས་", "ཧྐྵྨླྺྲྻཾ"
    alone, both, bare = (fit(fonts, text, title, 1000).lines[0] for text in (plain, plain + tall, plain + tall[0]))
    assert both.text.startswith(alone.text)
    assert (both.text, both.width_px, both.descent_px) == (bare.text, bare.width_px, bare.descent_px)


def test_lines_never_touch_each_other(fonts: Fonts) -> None:
    block = fit(fonts, "ปู่ที่นี่ Ấ̃g བརྒྱུད ปู่ที่นี่ Ấ̃g བརྒྱུད", Style(400, 60, 40, max_lines=3), 300)
    for above, below in zip(block.lines, block.lines[1:], strict=False):
        assert above.descent_px + below.ascent_px <= block.line_height_px


def test_the_end_of_a_cut_arabic_line_is_found_in_three_drawings(fonts: Fonts, monkeypatch: pytest.MonkeyPatch) -> None:
    ends = []
    line = Paragraph.line

    def noted(paragraph: Paragraph, start: int, end: int, size: int, ellipsis: bool = False) -> TextLine:
        ends.append(end)
        return line(paragraph, start, end, size, ellipsis)

    monkeypatch.setattr(Paragraph, "line", noted)
    text = "يولد جميع الناس أحرارًا متساوين في الكرامة والحقوق، وقد وهبوا عقلًا وضميرًا."
    [cut] = fit(fonts, text, Style(400, 32, 32), 800).lines
    assert cut.width_px > 700
    assert len(set(ends)) <= 3


def test_a_cut_line_from_right_to_left_shows_each_word_that_fits(fonts: Fonts) -> None:
    if not fonts.faces.shaping:
        pytest.skip("without Raqm its letters are a little wider")
    text = "“עברית” – יום שלישי, 24 בנובמבר 2026: 1,024 → 65.5 %"
    assert "65.5" in fit(fonts, text * 2, Style(400, 32, 32, max_lines=2), 800).lines[1].text
