"""Where the templates put things, for any text and any subset of the fields."""

from itertools import combinations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import ImageChops

from cardbeat.cards.drawing.background import empty_card, rows_of
from cardbeat.cards.drawing.colours import Rgb, rgb
from cardbeat.cards.drawing.layout import BOTTOM, HEIGHT, MARGIN, PANEL, TOP, WIDTH, Layout, Text
from cardbeat.cards.drawing.templates import NAME_PX, PADDING, lay_out
from cardbeat.cards.drawing.themes import THEME_OF
from cardbeat.cards.request import TEMPLATES, TEXTS, THEMES, card_from
from cardbeat.errors import Invalid
from cardbeat.light.build.lights import LIGHTS
from cardbeat.light.build.lights import rows_of as made_rows_of
from cardbeat.typeset.faces.fonts import Fonts, SerifFonts

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
    "title": "تصميم مهام خلفية موثوقة في ملف واحد من دون أي خادم وسيط",
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


def title_of(layout: Layout) -> Text:
    """The largest text in the colour of titles."""
    inked = [text for text in layout.texts if text.colour == layout.theme.ink]
    return max(inked, key=lambda text: text.block.size_px)


def shown(text: Text) -> str:
    return " ".join(line.text for line in text.block.lines)


def box_of(text: Text) -> Box:
    """Where a text's ink can be."""
    spare = text.width - text.block.width_px
    left = text.x + {"left": 0, "center": spare / 2, "right": spare}[text.align]
    return left, text.y, left + text.block.width_px, text.y + text.block.height_px


def overlap(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


BLOG_TOP = 24
"""Farther from the edge than the 15 pixels that X cuts."""


def assert_composed(layout: Layout) -> None:
    blog = bool(layout.theme.panel)
    highest = BLOG_TOP if blog else TOP
    boxes = [box_of(text) for text in layout.texts]
    for text, (left, top, right, bottom) in zip(layout.texts, boxes, strict=True):
        assert left >= MARGIN - 0.5
        assert right <= WIDTH - MARGIN + 0.5
        assert top >= highest - 4
        assert bottom <= BOTTOM + 4
        if blog:
            assert top >= PANEL.y if text.over == layout.theme.panel else bottom <= PANEL.y
    assert not any(overlap(*pair) for pair in combinations(boxes, 2))
    for shape in layout.shapes:
        assert shape.x >= MARGIN
        assert shape.x + shape.width <= WIDTH - MARGIN
        assert shape.y >= highest
        assert shape.y + shape.height <= BOTTOM


@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize("texts", [FULL, LONG, SHORT, ARABIC, TALL], ids=["full", "long", "short", "arabic", "tall"])
def test_every_subset_of_the_fields_stays_apart_and_in_the_safe_area(template: str, texts: dict[str, str]) -> None:
    for subset in subsets(texts):
        layout = layout_of(template, **subset)
        assert_composed(layout)
        yields = {"description"} if texts in (LONG, TALL) else set()
        assert len(layout.texts) >= len({"title", *subset} - yields)


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
    title = title_of(layout)
    assert title.align == "right"
    assert box_of(title)[2] == pytest.approx(WIDTH - (PANEL.x + PADDING if template == "blog" else MARGIN))
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


EMPTY = {(*key, mirrored): empty_card(THEME_OF[key], mirrored) for key in THEME_OF for mirrored in (False, True)}
SEEN = {key: (empty.colours, rows_of(empty)) for key, empty in EMPTY.items()}


@pytest.mark.parametrize("key", EMPTY)
def test_an_empty_card_is_as_the_build_makes_it(key: tuple[str, str, bool]) -> None:
    """But for a step here and there: versions of Pillow round differently."""
    differences = ImageChops.difference(SEEN[key][1], made_rows_of(THEME_OF[key[:2]].light, key[2])).histogram()
    assert sum(differences[1:]) <= 500
    assert len(EMPTY[key].colours) > SEEN[key][1].getextrema()[1]


def seen_behind(layout: Layout, text: Text) -> list[Rgb]:
    """The darkest and the lightest of the background behind a text, or the shape it stands on."""
    if text.over:
        return [rgb(text.over)]
    return background_behind(layout, text)


def background_behind(layout: Layout, text: Text) -> list[Rgb]:
    [key] = [key for key, theme in THEME_OF.items() if theme is layout.theme]
    colours, rows = SEEN[(*key, layout.mirrored)]
    left, top, right, bottom = map(int, box_of(text))
    return [colours[place] for place in rows.crop((left + 1, top, right + 1, bottom)).getextrema()]


@pytest.mark.parametrize("texts", [FULL, LONG, ARABIC], ids=["full", "long", "arabic"])
@pytest.mark.parametrize("theme", THEMES)
def test_what_a_text_is_blended_with_is_what_it_stands_on(theme: str, texts: dict[str, str]) -> None:
    layout = layout_of("blog", theme, **texts)
    on_background = [text for text in layout.texts if text.over != layout.theme.accent]
    assert len(on_background) >= 4
    for text in on_background:
        assert {*background_behind(layout, text)} == {rgb(text.over or "")}


def contrast(one: Rgb, other: Rgb) -> float:
    """As the Web Content Accessibility Guidelines define it."""
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def luminance(colour: Rgb) -> float:
    parts = [part / 255 for part in colour]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_an_avatar_has_the_accent_of_its_theme_and_enough_contrast() -> None:
    for theme in THEMES:
        layout = layout_of("blog", theme, title="x", author="Ada")
        assert layout.shapes[0].colour == layout.theme.accent
        assert contrast(rgb(layout.theme.on_avatar), rgb(layout.theme.accent)) >= 4.5


@pytest.mark.parametrize(
    ("others", "inside"),
    [
        ({"author": "ada", "domain": "example.com"}, "A"),
        ({"domain": "www.example.com"}, "E"),
        ({"author": "…", "domain": "example.com"}, "E"),
        ({}, "“"),
        ({"author": "…"}, "“"),
    ],
)
def test_an_avatar_shows_the_initial_of_the_author_else_of_the_domain_else_a_quotation_mark(
    others: dict[str, str], inside: str
) -> None:
    layout = layout_of("blog", title="x", **others)
    disc, tail = layout.shapes
    [shown_inside] = [text for text in layout.texts if text.over == layout.theme.accent]
    assert shown(shown_inside) == inside
    assert disc.radius == disc.width / 2
    assert tail.points_up
    assert (tail.x + tail.width / 2, tail.y + tail.height) == (disc.x + disc.width / 2, PANEL.y)


def test_the_disc_of_a_blog_card_is_clear_of_the_bubble_and_of_the_widest_name() -> None:
    x, y, radius = LIGHTS["blog"].disc or (0, 0, 0)
    assert radius
    assert y + radius < PANEL.y
    box = (x - radius, 0, x + radius, y + radius)
    for theme in THEMES:
        for title in ("x", FULL["title"]):
            layout = layout_of("blog", theme, title=title, author="Wolfeschlegelsteinhausenbergerdorff the Elder")
            assert not any(overlap(box, box_of(text)) for text in layout.texts if text.y < PANEL.y)


def test_the_domain_of_a_blog_card_stands_in_the_authors_place_where_there_is_none() -> None:
    sizes = {shown(t): t.block.size_px for t in layout_of("blog", title="Some title", domain="example.com").texts}
    assert sizes["example.com"] == NAME_PX


def test_the_domain_and_the_tag_of_an_article_share_one_row() -> None:
    texts = {shown(text): text for text in layout_of("article", **FULL).texts}
    domain, tag = texts[FULL["domain"]], texts[FULL["tag"]]
    assert domain.y + domain.block.first_baseline_px == tag.y + tag.block.first_baseline_px
    assert box_of(domain)[0] == MARGIN
    assert box_of(tag)[2] == WIDTH - MARGIN


@pytest.mark.parametrize(
    ("domain", "begins"),
    [
        ("notebookreview.example", "notebookreview.example"),
        ("engineering.acme-industries.com", "…acme-industries.com"),
        ("a.very.long.chain.of.names.example.com", "….names.example.com"),
    ],
)
@pytest.mark.parametrize("template", TEMPLATES)
def test_a_domain_never_reads_like_another_one(template: str, domain: str, begins: str) -> None:
    for tag in ("", "Engineering", "Engineering culture and everything else"):
        texts = [shown(text) for text in layout_of(template, title=FULL["title"], tag=tag, domain=domain).texts]
        [seen] = [text for text in texts if text.endswith((".com", ".example"))]
        assert seen == domain or (seen.startswith("…") and domain.endswith("." + seen[1:]))
        assert len(seen) >= len(begins) - 1


@pytest.mark.parametrize("template", TEMPLATES)
def test_labels_are_large_enough_for_a_thumbnail(template: str) -> None:
    """At 300 pixels they are 8 pixels high."""
    assert min(text.block.size_px for text in layout_of(template, **FULL).texts) >= 32


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_short_title_stands_very_large(template: str) -> None:
    scale = 1.12 if template == "article" else 1
    assert title_of(layout_of(template, title="Hi")).block.size_px == round(240 * scale)
    assert title_of(layout_of(template, title="Lists", domain="acme.io")).block.size_px >= 220
    assert title_of(layout_of(template, title="Changelog")).block.size_px >= 116
    assert title_of(layout_of(template, title="Terms of Use")).block.size_px >= 140
    assert title_of(layout_of(template, title=FULL["title"])).block.size_px <= 104


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_title_is_short_by_its_width_and_words_not_by_its_characters(template: str) -> None:
    def is_centred(title: str) -> bool:
        return title_of(layout_of(template, title=title)).align == "center"

    assert is_centred("東京の夜")
    assert is_centred("if it is, it is it")
    assert is_centred("Designing reliable background jobs with SQLite")
    assert not is_centred("如何设计非常可靠的后台任务系统")
    assert not is_centred("SQLiteだけで信頼できるバックグラウンドジョブを設計する")
    assert not is_centred(FULL["title"])


SIX_WORDS = (
    "Hi",
    "Changelog",
    "Terms of Use",
    "Why our queue is a table",
    "On writing less code every day",
    "Designing reliable background jobs with SQLite",
    "Debugging memory leaks in Kubernetes clusters",
    "Implementing authentication with WebAssembly components",
    "Understanding internationalization",
    "Internationalization",
    "Troubleshooting",
    "State-of-the-art sign-ups",
    "Rückwärtskompatibilität",
    "Datenschutzgrundverordnung erklärt",
    "Die Datenschutzgrundverordnung erklärt",
    "Observability-driven development explained",
    "How I moved my blog & cron",
    "What 漢字 taught me about typography",
    "バックグラウンドジョブ",
    "Достопримечательности Москвы",
    "Как мы ускорили сборку проекта",
    "東京の夜",
    "איך בונים תור אמין",
)


@pytest.mark.parametrize("title", SIX_WORDS)
@pytest.mark.parametrize("template", TEMPLATES)
def test_a_square_crop_of_a_title_of_six_words_shows_its_beginning_and_a_mark_of_the_template(
    template: str, title: str
) -> None:
    left, right = (WIDTH - HEIGHT) / 2 + 8, (WIDTH + HEIGHT) / 2 - 8
    for subset in subsets({**FULL, "title": title}):
        layout = layout_of(template, **subset)
        seen = title_of(layout)
        start, end = first_line_of(seen)
        if seen.block.rtl:
            start, end = WIDTH - end, WIDTH - start
        assert start >= left
        assert min(end, right) - start >= min(end - start, 4 * seen.block.size_px)
        marks = [s for s in layout.shapes if s.colour == layout.theme.accent and left <= s.x <= right - s.width]
        if template == "default":
            colours, rows = SEEN["default", "dark", layout.mirrored]
            marks = [colours[place] for place in set(rows.crop((int(left), 0, int(right), HEIGHT)).tobytes())]
        assert marks


def first_line_of(text: Text) -> tuple[float, float]:
    """Where the first line of a text begins and ends."""
    width = text.block.lines[0].width_px
    left = text.x + {"left": 0, "center": (text.width - width) / 2, "right": text.width - width}[text.align]
    return left, left + width


@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize("title", SIX_WORDS)
def test_a_short_title_is_as_large_as_a_wide_card_allows_or_hardly_smaller(template: str, title: str) -> None:
    texts = {**FULL, "title": title}
    size_px = title_of(layout_of(template, **texts)).block.size_px
    longer = title_of(layout_of(template, **{**texts, "title": f"{title} a b c d e f g"})).block.size_px
    assert size_px >= min(110, 0.7 * longer)


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_compound_breaks_where_the_title_would_get_much_smaller_to_keep_it_whole(template: str) -> None:
    block = title_of(layout_of(template, title="Container-Orchestrierungsplattform für Anfänger")).block
    assert block.lines[0].text == "Container-"
    assert block.size_px >= 100


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_short_title_keeps_its_description(template: str) -> None:
    for title in SIX_WORDS:
        layout = layout_of(template, **{**FULL, "title": title})
        assert any(shown(text).startswith("How we moved") for text in layout.texts)


@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize("texts", [FULL, LONG, SHORT, ARABIC], ids=["full", "long", "short", "arabic"])
def test_neither_the_chip_of_x_nor_its_crop_covers_an_author_or_a_domain(template: str, texts: dict[str, str]) -> None:
    """X cuts 15 pixels at the top and at the bottom, and puts the page's title over the lowest 115 of the others."""
    for subset in subsets(texts):
        for text in layout_of(template, **subset).texts:
            if shown(text)[:8] in (texts["author"][:8], texts["domain"][:8]) or "example.com" in shown(text):
                assert text.y >= 15
                assert text.y + text.block.height_px <= HEIGHT - 15 - 115


@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize("words", [12, 20, 30, 40, 60, 200])
def test_no_title_is_smaller_than_56_pixels_or_longer_than_six_lines(template: str, words: int) -> None:
    text = " ".join(["one server and a queue of jobs in a file that never lost any"] * 20).split()[:words]
    title = title_of(layout_of(template, **{**FULL, "title": " ".join(text)}))
    assert title.block.size_px >= 56
    assert len(title.block.lines) <= 6


@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize("letters", range(36, 60, 4))
def test_one_long_word_is_large_and_breaks_with_a_hyphen(template: str, letters: int) -> None:
    word = "Llanfairpwllgwyngyllgogerychwyrndrobwllllantysiliogogogoch"[:letters]
    block = title_of(layout_of(template, title=word, domain="example.com")).block
    assert block.size_px >= 72
    lines = [line.text for line in block.lines]
    assert all(line.endswith("-") for line in lines[:-1])
    assert "".join(lines).replace("-", "") == word


@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize(
    "title",
    [
        "How sign-ups doubled after we removed the state-of-the-art onboarding",
        "A state-of-the-art, server-side-rendered, zero-dependency form",
        "More sign-ups",
    ],
)
def test_a_compound_stays_whole_where_its_line_has_room(template: str, title: str) -> None:
    for subset in subsets({**FULL, "title": title}):
        lines = [line.text for line in title_of(layout_of(template, **subset)).block.lines]
        assert not any(line.endswith("-") for line in lines)


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_compound_breaks_where_nothing_else_fits(template: str) -> None:
    lines = [line.text for line in title_of(layout_of(template, title="-".join(["compound"] * 6))).block.lines]
    assert len(lines) > 1
    assert all(line.endswith("compound-") for line in lines[:-1])


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_title_that_cannot_be_large_keeps_its_description_where_that_costs_little(template: str) -> None:
    title = "std::collections::HashMap<String, Vec<u8>> vs BTreeMap"
    layout = layout_of(template, title=title, description="Benchmarks of both.", domain="docs.rs", tag="rust")
    assert "Benchmarks of both." in [shown(text) for text in layout.texts]


def with_description(title: str, template: str = "default") -> tuple[Text, int]:
    """The title, and how many lines of a long description stand under it."""
    layout = layout_of(template, title=title, description=LONG["description"], tag="Tag", author="Ada", domain="x.org")
    under = [text for text in layout.texts if text.colour == layout.theme.muted and "million" in shown(text)]
    return title_of(layout), len(under[0].block.lines) if under else 0


@pytest.mark.parametrize("template", TEMPLATES)
def test_the_description_gives_up_its_lines_until_the_title_is_large(template: str) -> None:
    words = (
        "one server and a queue of jobs in a file that never lost any, nor gave two to one worker, and yet " * 2
    ).split()
    seen = []
    for end in range(6, len(words), 2):
        title, lines = with_description(" ".join(words[:end]), template)
        assert title.block.size_px >= 72 or not lines
        assert not (title.block.cut and lines)
        seen.append(lines)
    assert seen == sorted(seen, reverse=True)
    assert {2, 0} <= set(seen)


@pytest.mark.parametrize("template", TEMPLATES)
def test_what_no_font_has_is_counted_also_in_a_description_that_gave_up_its_place(template: str) -> None:
    texts = {"title": LONG["title"], "description": "So many \ue000\ue001 of them"}
    layout = layout_of(template, **texts)
    assert not any("many" in shown(text) for text in layout.texts)
    assert (layout.missing_glyphs, layout.left_out) == (2, True)
    assert not layout_of(template, title="Short", description="Shown").left_out
    assert not layout_of(template, title=LONG["title"]).left_out


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(TEMPLATES), st.text(st.characters(max_codepoint=0x24F), min_size=40, max_size=600))
def test_a_title_is_never_cut_while_a_description_shows(template: str, title: str) -> None:
    try:
        layout = layout_of(template, title=title, description=FULL["description"])
    except Invalid:
        return
    described = any("million" in shown(text) for text in layout.texts)
    assert not (described and title_of(layout).block.cut)


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_domain_keeps_its_end_and_other_texts_their_beginning(template: str) -> None:
    layout = layout_of(template, **{**LONG, "domain": "a-very-long-name." * 6 + "docs.example.com"})
    texts = [shown(text) for text in layout.texts]
    assert any(text.startswith("…") and text.endswith("docs.example.com") for text in texts)
    assert any(text.startswith("Engineering") and text.endswith("Engineering…") for text in texts)


def test_a_title_has_serifs_unless_most_of_its_letters_have_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def ink(title: str) -> bytes:
        drawn = title_of(layout_of("article", title=title)).block.lines[0].ink
        assert drawn
        return drawn.tobytes()

    serif = {title: ink(title) for title in ("Ship it", "Rust入門", "SQLite فقط", "केवल SQLite", "Rust ᏣᎳ")}
    plain = {title: ink(title) for title in ("Ἐν ἀρχῇ ἦν ὁ λόγος", "ᏣᎳᎩ ᎦᏬᏂᎯᏍᏗ Rust")}
    monkeypatch.setattr(SerifFonts, "suits", lambda *_: False)
    assert not {title for title, drawn in serif.items() if ink(title) == drawn}
    assert all(ink(title) == drawn for title, drawn in plain.items())


def test_lines_of_latin_greek_and_cyrillic_stand_close() -> None:
    for title in (FULL["title"], "Как мы перенесли два миллиона задач в один файл", "Πώς μεταφέραμε δύο εκατομμύρια"):
        block = title_of(layout_of("default", title=title)).block
        assert block.line_height_px <= 1.1 * block.size_px
    block = title_of(layout_of("default", title="信頼できるバックグラウンドジョブを設計するためのやさしい入門")).block
    assert block.line_height_px >= 1.15 * block.size_px


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_title_that_no_font_has_gives_way_to_the_domain(template: str) -> None:
    layout = layout_of(template, title="\ue000\ue001", domain="example.com", author="Ada")
    assert shown(title_of(layout)) == "example.com"
    assert [shown(text) for text in layout.texts].count("example.com") == 1
    assert layout.missing_glyphs == 2


@pytest.mark.parametrize("template", TEMPLATES)
def test_without_a_domain_the_templates_mark_stands_for_it(template: str) -> None:
    usual, instead = layout_of(template, title="x"), layout_of(template, title="\ue000", tag="Tag", domain="\ue001")
    assert len(instead.shapes) > len(usual.shapes)
    assert instead.missing_glyphs == 2
    assert_composed(instead)


def test_the_card_is_what_crawlers_expect() -> None:
    assert (WIDTH, HEIGHT) == (1200, 630)
