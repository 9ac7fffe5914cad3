"""Where the templates put things, for any text and any subset of the fields."""

from itertools import combinations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cardbeat.cards.background import Rgb, background, rgb
from cardbeat.cards.layout import BOTTOM, HEIGHT, MARGIN, TOP, WIDTH, Layout, Text
from cardbeat.cards.request import TEMPLATES, TEXTS, card_from
from cardbeat.cards.templates import lay_out
from cardbeat.cards.themes import THEME_OF
from cardbeat.errors import Invalid
from cardbeat.typeset.fonts import Fonts

FONTS = Fonts()
SERIF = FONTS.with_serif()
FULL = {
    "title": "Designing reliable background jobs with nothing but SQLite",
    "description": "How we moved two million jobs a day from a message broker to a single file, and what we learned.",
    "author": "Ada Lovelace",
    "tag": "Engineering",
    "domain": "blog.example.com",
}
ARABIC = {
    "title": "تصميم مهام خلفية موثوقة",
    "description": "كيف نقلنا مليوني مهمة يوميًا",
    "author": "ليلى",
    "tag": "هندسة",
    "domain": "x.example",
}
TALL = dict.fromkeys(FULL, "ཧཱུྃ ནྡྷྲ ครู้ป์ ใู้ نستعلیقؓؒ ញ៉ាំ")
LONG = {name: f"{text} " * 12 for name, text in FULL.items()}
SHORT = {name: text[:3] for name, text in FULL.items()}

Box = tuple[float, float, float, float]


def layout_of(template: str, theme: str = "dark", **texts: str) -> Layout:
    return lay_out(FONTS, SERIF, card_from({**texts, "template": template, "theme": theme}))


def subsets(texts: dict[str, str]) -> list[dict[str, str]]:
    others = [name for name in texts if name != "title"]
    chosen = [names for size in range(len(others) + 1) for names in combinations(others, size)]
    return [{name: texts[name] for name in ("title", *names)} for names in chosen]


def box_of(text: Text) -> Box:
    """Where a text's ink can be."""
    spare = text.width - text.block.width_px
    left = text.x + {"left": 0, "center": spare / 2, "right": spare}[text.align]
    return left, text.y, left + text.block.width_px, text.y + text.block.height_px


def overlap(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def assert_composed(layout: Layout) -> None:
    boxes = [box_of(text) for text in layout.texts]
    for left, top, right, bottom in boxes:
        assert left >= MARGIN - 0.5
        assert right <= WIDTH - MARGIN + 0.5
        assert top >= TOP - 4
        assert bottom <= BOTTOM + 4
    assert not any(overlap(*pair) for pair in combinations(boxes, 2))
    for shape in layout.shapes:
        assert shape.x >= MARGIN
        assert shape.x + shape.width <= WIDTH - MARGIN
        assert shape.y >= TOP
        assert shape.y + shape.height <= BOTTOM


@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize("texts", [FULL, LONG, SHORT, ARABIC, TALL], ids=["full", "long", "short", "arabic", "tall"])
def test_every_subset_of_the_fields_stays_apart_and_in_the_safe_area(template: str, texts: dict[str, str]) -> None:
    for subset in subsets(texts):
        layout = layout_of(template, **subset)
        assert_composed(layout)
        drawn = {"title", *subset} - ({"author"} if template == "blog" else set())
        assert len(layout.texts) >= len(drawn)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(TEMPLATES), st.fixed_dictionaries({name: st.text(max_size=120) for name in TEXTS}))
def test_no_text_overlaps_another_or_leaves_the_safe_area(template: str, texts: dict[str, str]) -> None:
    try:
        layout = layout_of(template, **texts)
    except Invalid:
        return
    assert_composed(layout)


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_right_to_left_card_is_the_mirror_image(template: str) -> None:
    layout = layout_of(template, **ARABIC)
    assert layout.mirrored
    title = layout.texts[
        [text.block.size_px for text in layout.texts].index(max(t.block.size_px for t in layout.texts))
    ]
    assert title.align == "right"
    assert box_of(title)[2] == pytest.approx(WIDTH - MARGIN)
    assert not layout_of(template, **FULL).mirrored


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_description_of_the_other_direction_keeps_to_its_own_side(template: str) -> None:
    layout = layout_of(template, title=FULL["title"], description=ARABIC["description"])
    [description] = [text for text in layout.texts if text.block.rtl]
    assert description.align == "right"


@pytest.mark.parametrize("texts", [FULL, LONG, SHORT, ARABIC], ids=["full", "long", "short", "arabic"])
@pytest.mark.parametrize(("template", "theme"), THEME_OF)
def test_all_text_has_enough_contrast(template: str, theme: str, texts: dict[str, str]) -> None:
    for subset in subsets(texts):
        layout = layout_of(template, theme, **subset)
        for text in layout.texts:
            for behind in seen_behind(layout, text):
                assert contrast(rgb(text.colour), behind) >= 4.5, (text.colour, behind)


EMPTY = {(*key, mirrored): background(THEME_OF[key], mirrored) for key in THEME_OF for mirrored in (False, True)}
SEEN = {key: (empty.ramp, empty.rows()) for key, empty in EMPTY.items()}


def seen_behind(layout: Layout, text: Text) -> list[Rgb]:
    """The darkest and the lightest of the background behind a text, or the shape it stands on."""
    if text.over:
        return [rgb(text.over)]
    [key] = [key for key, theme in THEME_OF.items() if theme is layout.theme]
    ramp, rows = SEEN[(*key, layout.mirrored)]
    left, top, right, bottom = map(int, box_of(text))
    return [ramp[place] for place in rows.crop((left + 1, top, right + 1, bottom)).getextrema()]


def contrast(one: Rgb, other: Rgb) -> float:
    """As the Web Content Accessibility Guidelines define it."""
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def luminance(colour: Rgb) -> float:
    parts = [part / 255 for part in colour]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_avatars_and_pills_have_enough_contrast_for_every_author() -> None:
    for (template, _), theme in THEME_OF.items():
        if template == "blog":
            assert all(contrast(rgb(theme.on_avatar), rgb(colour)) >= 4.5 for colour in theme.avatars)
            assert contrast(rgb(theme.accent), rgb(theme.fill)) >= 4.5


def test_an_author_keeps_their_colour() -> None:
    colours = {layout_of("blog", title=title, author="Ada").shapes[-1].colour for title in ("a", "b", "c")}
    assert len(colours) == 1


def test_a_short_title_stands_larger_than_a_long_one() -> None:
    sizes = [layout_of("default", title=title).texts[0].block.size_px for title in ("Pricing", FULL["title"])]
    assert sizes[0] > sizes[1]


def test_the_card_is_what_crawlers_expect() -> None:
    assert (WIDTH, HEIGHT) == (1200, 630)
