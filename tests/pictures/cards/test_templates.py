"""Where the templates put things, for any text and any subset of the fields."""

import re
from itertools import combinations

import pytest

from cardbeat.cards.drawing.layout import (
    AXIS,
    HEIGHT,
    PANEL,
    WIDTH,
)
from cardbeat.cards.drawing.templates import lay_out
from cardbeat.cards.request import TEMPLATES, card_from
from tests.kit.fonts import FONTS
from tests.pictures.cards.test_render import FULL

ARABIC = {
    "title": "تصميم مهام خلفية موثوقة في ملف واحد من دون أي خادم وسيط",
    "description": "كيف نقلنا مليوني مهمة يوميًا",
    "author": "ليلى",
    "tag": "هندسة",
    "domain": "x.example",
}
TALL = dict.fromkeys(FULL, "ཧཱུྃ ནྡྷྲ ครู้ป์ ใู้ نستعلیقؓؒ ញ៉ាំ")
STACKED = dict.fromkeys(FULL, "ก" + "้" * 9)
LONG = {name: f"{text} " * 12 for name, text in FULL.items()}
TITLES = (
    "Changelog",
    "About me",
    "Why we left the cloud",
    FULL["title"],
    LONG["title"],
    "日本語のタイトル",
)
LABELS = ("Ada Lovelace", "Engineering", "engineering.example.com")
SQUARE_LEFT = (WIDTH - HEIGHT) // 2

Box = tuple[float, float, float, float]


def layout_of(template, **texts):
    return lay_out(FONTS, card_from({**texts, "template": template}))


def subsets(texts):
    """The title alone, and with each choice of the others."""
    (title, *others) = texts.items()
    chosen = []
    for size in range(len(others) + 1):
        for some in combinations(others, size):
            chosen.append(dict([title, *some]))
    return chosen


def title_of(layout):
    """The largest text that begins where titles do."""
    return max(
        layout.texts,
        key=lambda text: (text.align != "center", text.block.size_px),
    )


def shown(text):
    return " ".join(line.text.strip() for line in text.block.lines)


def all_shown(layout):
    return [*map(shown, layout.texts)]


def box_of(text):
    """Where a text's ink can be."""
    spare = text.width - text.block.width_px
    left = (
        text.x
        + {"left": 0, "center": spare / 2, "right": spare}[text.align]
    )
    return (
        left,
        text.y,
        left + text.block.width_px,
        text.y + text.block.height_px,
    )


def overlap(one, other):
    return (
        one[0] < other[2]
        and other[0] < one[2]
        and one[1] < other[3]
        and other[1] < one[3]
    )


@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize(
    "texts",
    [FULL, ARABIC, TALL, STACKED, LONG],
    ids=["full", "arabic", "tall", "stacked", "long"],
)
def test_no_text_overlaps_another_or_leaves_the_card(template, texts):
    for given in subsets(texts):
        boxes = [*map(box_of, layout_of(template, **given).texts)]
        assert not any(
            overlap(*pair) for pair in combinations(boxes, 2)
        ), given.keys()
        for left, top, right, bottom in boxes:
            assert 24 <= left <= right <= WIDTH - 24
            assert 8 <= top <= bottom <= HEIGHT - 8


@pytest.mark.parametrize("template", TEMPLATES)
def test_every_title_begins_on_one_axis_inside_the_middle_square(
    template,
):
    assert SQUARE_LEFT < AXIS < SQUARE_LEFT + 30
    given = subsets(FULL)
    for title in TITLES:
        given += [{"title": title}, FULL | {"title": title}]
    for texts in given:
        text = title_of(layout_of(template, **texts))
        assert text.x == AXIS
        assert text.align == "left"


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_right_to_left_card_is_the_mirror_image(template):
    layout = layout_of(template, **ARABIC)
    title = title_of(layout)
    assert layout.mirrored
    assert title.x + title.width == WIDTH - AXIS
    assert title.align == "right"
    assert layout.mirror_image().mirror_image() == layout
    sign = max(
        layout.shapes, key=lambda shape: shape.width * shape.height
    )
    assert sign.x + sign.width / 2 > WIDTH / 2


@pytest.mark.parametrize("template", TEMPLATES)
def test_labels_share_one_row_and_none_is_cut_where_there_is_room(
    template,
):
    layout = layout_of(template, **FULL | {"domain": LABELS[-1]})
    baselines = []
    for text in layout.texts:
        if shown(text) in LABELS:
            baselines.append(text.y + text.block.first_baseline_px)
    assert len(baselines) == 3
    if template != "article":
        assert len(set(baselines)) == 1


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_long_domain_keeps_its_end_and_an_encoded_one_is_decoded(
    template,
):
    long = "a-very-long-subdomain.of-another-long-domain.and-of-a-third.example.com"
    layout = layout_of(template, title="x", domain=long)
    assert re.search(
        r"…\S*\.example\.com$", "\n".join(all_shown(layout)), re.MULTILINE
    )
    encoded = layout_of(
        template, title="x", domain="xn--mnchen-3ya.example"
    )
    assert "münchen.example" in all_shown(encoded)


@pytest.mark.parametrize("template", TEMPLATES)
def test_the_description_gives_up_its_lines_until_the_title_is_large(
    template,
):
    lines = []
    for repeats in (1, 2, 4):
        layout = layout_of(
            template,
            **FULL
            | {
                "title": f"{FULL['title']} " * repeats,
                "description": FULL["description"] * 3,
            },
        )
        described = [
            text
            for text in layout.texts
            if shown(text).startswith("How we")
        ]
        lines.append(len(described[0].block.lines) if described else 0)
        assert not (described and title_of(layout).block.is_cut)
    assert lines[0] == 3
    assert lines == sorted(lines, reverse=True)
    assert lines[-1] == 0


@pytest.mark.parametrize("template", TEMPLATES)
def test_an_ordinary_description_is_whole_and_one_line_stays_below_a_long_title(
    template,
):
    description = (
        "A job queue is a table, a lock and a loop. How we moved two million jobs a day from a"
        " message broker to a single file, and what we learned on the way."
    )
    assert description in all_shown(
        layout_of(template, **FULL | {"description": description})
    )
    title = (
        "Is it time to stop writing unit tests? An argument – and three counterarguments – from"
        " a team that tried"
    )
    below = "Twelve months without one."
    assert below in all_shown(
        layout_of(
            template, **FULL | {"title": title, "description": below}
        )
    )


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_title_is_large_and_at_most_six_lines(template):
    for title in TITLES:
        block = title_of(layout_of(template, title=title)).block
        assert 56 <= block.size_px <= 152
        assert block.size_px >= 96 or title == LONG["title"]
        assert len(block.lines) <= 6


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_title_that_no_font_has_gives_way_to_the_domain(
    template,
):
    layout = layout_of(template, title="\ue000", domain="example.com")
    assert shown(title_of(layout)) == "example.com"
    alone = all_shown(layout_of(template, title="\ue000"))
    assert "".join(alone).strip() in ("", "“")


@pytest.mark.parametrize(
    ("given", "letter"),
    [
        ({"author": "ada", "domain": "example.com"}, "A"),
        ({"domain": "www.example.com"}, "E"),
        ({"author": "--"}, "“"),
        ({}, "“"),
    ],
)
def test_an_avatar_shows_the_initial_of_the_author_else_of_the_domain_else_a_quotation_mark(
    given, letter
):
    layout = layout_of("blog", title="x", **given)
    (avatar,) = [text for text in layout.texts if text.align == "center"]
    assert shown(avatar) == letter


def test_a_text_on_the_bubble_is_inside_it():
    layout = layout_of("blog", **FULL)
    for text in layout.texts:
        if text.over == layout.theme.panel:
            left, top, right, bottom = box_of(text)
            assert PANEL.x < left < right < PANEL.x + PANEL.width
            assert PANEL.y < top < bottom < PANEL.bottom


def test_a_language_chooses_letter_shapes():
    pictures = set()
    for lang in ("ja", "zh-TW", "zh-CN", "ko"):
        [line, *_] = title_of(
            layout_of("default", title="骨直", lang=lang)
        ).block.lines
        pictures.add(line.ink.tobytes())
    assert len(pictures) >= 3
    unknown = title_of(layout_of("default", title="骨直", lang="tlh"))
    assert unknown.block.lines[0].ink.getbbox()
