"""Any text in a box: it fits, its lines stay apart, and it is cut only where nothing else helps."""

import random
from pathlib import Path
from time import thread_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import features

from cardbeat.typeset.text import Style, fit
from tests.bench.hostile_texts import hostile_fields, mixed_scripts
from tests.kit.fonts import BASIC, FONTS
from tests.kit.lists import each

ENGINES = {"basic": BASIC}
if features.check("raqm"):
    ENGINES["raqm"] = FONTS
TITLE = Style(700, 120, 56, 1.1, max_lines=5)
LINE = Style(600, 32, 32)
WIDTH = 860
HEIGHT = 440
LINES = dict(
    row.split("\t")
    for row in Path(__file__)
    .with_name("lines.txt")
    .read_text("utf-8")
    .splitlines()
)
TEXTS = LINES | {
    "one word": "Authentication",
    "latin": "Designing reliable background jobs with nothing but SQLite",
    "arabic": "تصميم مهام خلفية موثوقة باستخدام SQLite فقط",
    "emoji": "We shipped it 🚀 and the whole team 👩‍💻👨🏽‍💻 went surfing 🏄🏼‍♀️",
    "zalgo": "Z" + "\u0334\u0301\u0323" * 40 + "algo " * 3,
    "long word": "Rindfleischetikettierungsüberwachungsaufgabenübertragungsgesetz",
    "endless": "word " * 900,
}


@pytest.fixture(scope="module", params=ENGINES)
def fonts(request):
    return ENGINES[request.param]


def shown(block):
    return each(block.lines, "text")


def fits(block, width, height):
    """Whether all ink is inside the box and no line touches the next."""
    previous_end = 0
    for number, line in enumerate(block.lines):
        baseline = block.first_baseline_px + number * block.line_height_px
        inks = (
            [(0, line.ink_y, line.ink.width, line.ink.height)]
            if line.ink.getbbox()
            else []
        )
        inks += [
            (one.x, one.y, one.picture.width, one.picture.height)
            for one in line.emoji
        ]
        for x, y, ink_width, ink_height in inks:
            if (
                x < 0
                or x + ink_width > width
                or baseline + y < previous_end
            ):
                return False
            if baseline + y + ink_height > min(height, block.height_px):
                return False
        previous_end = max(
            (baseline + y + high for _, y, _, high in inks),
            default=previous_end,
        )
    return True


@pytest.mark.parametrize("name", TEXTS)
def test_a_text_fits_its_box_and_nothing_of_it_is_missing(fonts, name):
    block = fit(fonts, TEXTS[name], TITLE, WIDTH, HEIGHT)
    assert fonts.drawable(TEXTS[name])[1] == 0
    assert block.lines
    assert fits(block, WIDTH, HEIGHT)
    assert block.is_cut == (name == "endless")
    label = fit(fonts, TEXTS[name], LINE, 400)
    assert len(label.lines) == 1
    assert fits(label, 400, label.height_px)


@pytest.mark.parametrize("seed", range(4))
def test_no_hostile_text_leaves_its_box(fonts, seed):
    chance = random.Random(seed)
    for text in (
        *mixed_scripts(chance).values(),
        *hostile_fields(chance).values(),
    ):
        for style, height in ((TITLE, HEIGHT), (LINE, 1_000)):
            block = fit(fonts, text, style, WIDTH, height)
            assert max(each(block.lines, "width_px"), default=0) <= WIDTH
            assert block.height_px <= height or len(block.lines) == 1


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [
                "a",
                "of",
                "word",
                "longer",
                "extraordinary",
                "状態",
                "state-of-the-art",
            ]
        ),
        min_size=1,
        max_size=12,
    )
)
def test_a_word_is_never_broken_and_a_larger_box_never_sets_smaller(
    words,
):
    text = " ".join(words)
    small = fit(FONTS, text, TITLE, WIDTH, HEIGHT)
    whole = [
        part for word in words for part in word.replace("-", "- ").split()
    ]
    assert (
        small.is_cut
        or [
            part
            for line in shown(small)
            for part in line.replace("-", "- ").split()
        ]
        == whole
    )
    assert (
        fit(FONTS, text, TITLE, WIDTH + 150, HEIGHT).size_px
        >= 0.7 * small.size_px
    )


def test_only_a_word_wider_than_the_box_is_broken_and_gets_no_hyphen():
    long = TEXTS["long word"]
    block = fit(FONTS, f"Das {long}", TITLE, WIDTH, HEIGHT)
    assert "".join(shown(block)).replace(" ", "") == f"Das{long}"


def test_one_long_word_is_as_wide_as_the_box():
    block = fit(FONTS, "Authentication", TITLE, WIDTH, HEIGHT)
    assert len(block.lines) == 1
    assert (
        block.width_px > 0.97 * WIDTH or block.size_px == TITLE.largest_px
    )


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (
            "Incident report: 14 March 2026 outage",
            ["Incident report:", "14 March 2026 outage"],
        ),
        (
            "Configuration – Environment variables",
            ["Configuration –", "Environment variables"],
        ),
        (
            "/usr/local/share/applications in practice",
            ["/usr/local/share/applications", "in practice"],
        ),
        (
            "Self-hosting-without-regrets guide",
            ["Self-hosting-without-regrets", "guide"],
        ),
        (
            "The user-interface-components library",
            ["The user-interface-", "components library"],
        ),
        (
            "Object-oriented-programming-considered-harmful again",
            ["Object-oriented-programming-", "considered-harmful again"],
        ),
    ],
)
def test_lines_end_by_sense(text, lines):
    assert (
        shown(
            fit(FONTS, text, TITLE._replace(max_lines=2), WIDTH, HEIGHT)
        )
        == lines
    )


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("one two, three four five six", "one two…"),
        ("wordwordwordwordword", "wo…"),
    ],
)
def test_a_text_is_cut_after_a_word_without_its_comma_or_inside_the_first(
    text, end
):
    [line] = shown(fit(FONTS, text, LINE, 160 if " " in text else 80))
    assert line.endswith("…")
    assert line.rstrip("…") in text
    assert not line.endswith((",…", " …"))
    assert len(line) >= 3


@pytest.mark.parametrize(
    ("with_mark", "without"),
    [("мо́в", "мов"), ("ɔ̃", "ɔ"), ("ca̍", "ca"), ("sɔ̂nɔ̂", "sɔnɔ")],
)
def test_a_mark_takes_no_room_on_the_line(fonts, with_mark, without):
    marked, plain = (
        fit(fonts, text, LINE, 1056) for text in (with_mark, without)
    )
    assert abs(marked.width_px - plain.width_px) <= 2 * len(without)
    assert marked.lines[0].ink_y < plain.lines[0].ink_y


def test_text_without_ink_is_an_empty_block(fonts):
    for text in ("", " ", "\u200b", "\ue000\ue001"):
        assert not any(
            line.ink.getbbox()
            for line in fit(fonts, text, TITLE, WIDTH, HEIGHT).lines
        )


def test_titles_of_real_scripts_are_never_cut_by_the_limits():
    thousand = "天地玄黄宇宙洪荒日月盈昃辰宿列张寒来暑往秋收冬藏闰余成岁律吕调阳云腾致雨露结为霜金生丽水玉出昆冈"
    for text in (thousand, *TEXTS.values()):
        block = fit(
            FONTS, text, Style(400, 40, 20, 1.3, max_lines=12), 1_000
        )
        assert block.is_cut == (text == TEXTS["endless"])


def cpu_seconds(text):
    """Of the fastest of several times: other processes delay some."""
    seconds = []
    for _ in range(5):
        began = thread_time()
        fit(FONTS, text, TITLE, WIDTH, HEIGHT)
        seconds.append(thread_time() - began)
    return min(seconds)


def test_a_hostile_text_costs_no_more_than_some_ordinary_ones():
    wall = "".join(map(chr, range(0x4E00, 0x6E00, 3)))
    assert cpu_seconds(wall) < 60 * cpu_seconds(TEXTS["latin"])
