"""Drawings: valid, small, inside the card for any text, and looking as they were approved."""

import os
import random
import shutil
import zipfile
from io import BytesIO
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image, ImageChops, ImageStat, features

from build_zipapp import contents
from cardbeat.cards.drawing.layout import HEIGHT, WIDTH
from cardbeat.cards.drawing.render import (
    Renderer,
    own_version,
    renderer_version,
)
from cardbeat.cards.request import TEMPLATES, TEXTS, THEMES, card_from
from cardbeat.errors import Invalid
from cardbeat.files import read_bytes
from cardbeat.light.build.lights import LIGHTS, indices_of
from tests.bench.hostile_texts import hostile_fields, mixed_scripts
from tests.kit.fonts import BASIC, FONTS
from tests.kit.lists import times

RENDERERS = (Renderer(FONTS), Renderer(BASIC))
ROOT = Path(__file__).parents[3]
GOLDEN = ROOT / "cardbeat" / "pages" / "looks"
GOLDEN_WIDTH = 300
TOLERANCE = {True: 3.0, False: 6.0}
"""Mean difference of a channel, with and without a shaping engine, which kerns."""
FULL = {
    "title": "Designing reliable background jobs with nothing but SQLite",
    "description": "How we moved two million jobs a day from a message broker to a single file.",
    "author": "Ada Lovelace",
    "tag": "Engineering",
    "domain": "blog.example.com",
}


def drawing_of(**texts):
    return RENDERERS[0].render(card_from(texts))


def image_of(drawing):
    return Image.open(BytesIO(drawing.png)).convert("RGB")


def is_sound(drawing):
    """Whether it is a small picture of the size of a card."""
    with Image.open(BytesIO(drawing.png)) as image:
        image.load()
        return (
            image.size == (WIDTH, HEIGHT) and len(drawing.png) < 100_000
        )


@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize("theme", THEMES)
def test_a_card_is_under_65_kb_and_the_same_each_time(template, theme):
    first, second = times(
        2, drawing_of, **FULL, template=template, theme=theme
    )
    assert first == second
    assert len(first.png) < 65_000
    assert is_sound(first)


@pytest.mark.parametrize("renderer", RENDERERS, ids=["raqm", "basic"])
@pytest.mark.parametrize("seed", range(4))
def test_cards_of_hostile_texts_stay_small(renderer, seed):
    chance = random.Random(seed)
    for fields in (mixed_scripts(chance), hostile_fields(chance)):
        assert is_sound(renderer.render(card_from(fields)))


@pytest.mark.parametrize("renderer", RENDERERS, ids=["raqm", "basic"])
@settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    st.dictionaries(
        st.sampled_from(TEXTS), st.text(max_size=80), min_size=1
    ),
    st.sampled_from(TEMPLATES),
)
def test_any_text_draws(renderer, texts, template):
    try:
        card = card_from({**texts, "template": template})
    except Invalid:
        return
    assert is_sound(renderer.render(card))


def emoji(first, count):
    return "".join(map(chr, range(first, first + count)))


def test_a_wall_of_emoji_stays_small_and_keeps_many_colours():
    labels = {
        "author": emoji(0x1F600, 24),
        "tag": emoji(0x1F680, 16),
        "domain": emoji(0x1F340, 16),
    }
    drawing = drawing_of(
        title=emoji(0x1F400, 60), description=emoji(0x1F440, 64), **labels
    )
    assert is_sound(drawing)
    assert len(image_of(drawing).getcolors(1 << 20) or []) > 60


def test_what_no_font_has_is_counted_over_all_texts_once():
    assert (
        drawing_of(
            title="a\ue000b", author="\ue000", domain="x\ue001.example"
        ).missing_glyphs
        == 3
    )
    assert drawing_of(title="plain 漢字 🎉").missing_glyphs == 0


@pytest.mark.parametrize("theme", THEMES)
def test_the_templates_are_told_apart_in_a_thumbnail_by_more_than_their_text(
    theme,
):
    small = [
        image_of(
            drawing_of(title="\ue000", template=template, theme=theme)
        ).resize((60, 32))
        for template in TEMPLATES
    ]
    for one, other in combinations(small, 2):
        assert (
            max(ImageStat.Stat(ImageChops.difference(one, other)).mean)
            > 8
        )


def test_a_right_to_left_card_has_its_light_from_the_right():
    left = image_of(drawing_of(title="a"))
    right = image_of(drawing_of(title="א"))
    lit = [
        (left.getpixel((x, 40)), right.getpixel((WIDTH - 1 - x, 40)))
        for x in range(0, WIDTH, 25)
    ]
    assert all(one == other for one, other in lit)
    assert lit[0] != lit[-1]


@pytest.mark.parametrize("name", LIGHTS)
def test_an_empty_card_is_as_the_build_makes_it(name):
    picture = Image.open(BytesIO(read_bytes(f"light/{name}.png")))
    assert picture.tobytes() == indices_of(name).tobytes()


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("template", TEMPLATES)
def test_a_card_looks_as_approved(template, theme):
    """The builder shows the approved look. With CARDBEAT_APPROVE=1 it is the present one."""
    drawing = drawing_of(**FULL, template=template, theme=theme)
    path = GOLDEN / f"{template}-{theme}.png"
    if os.environ.get("CARDBEAT_APPROVE"):
        path.write_bytes(drawing.png)
    assert path.stat().st_size <= 60_000
    size = GOLDEN_WIDTH, GOLDEN_WIDTH * HEIGHT // WIDTH
    pictures = image_of(drawing), Image.open(path).convert("RGB")
    small, approved = (
        picture.resize(size, Image.Resampling.LANCZOS)
        for picture in pictures
    )
    assert (
        max(ImageStat.Stat(ImageChops.difference(small, approved)).mean)
        < TOLERANCE[bool(features.check("raqm"))]
    )


@pytest.mark.parametrize(
    "path",
    [
        "cards/drawing/canvas.py",
        "cards/request.py",
        "typeset/unicode/bidi.py",
        "words/khmer.gz",
        "words/small.txt",
        "words/ja.json.gz",
        "fonts/made.json",
        "light/blog.png",
    ],
)
def test_the_renderers_version_changes_with_whatever_draws(
    tmp_path, path
):
    package = tmp_path / "cardbeat"
    shutil.copytree(
        ROOT / "cardbeat",
        package,
        ignore=shutil.ignore_patterns(
            "*.ttf.gz", "__pycache__", "docs", "pages"
        ),
    )
    before = renderer_version(package)
    (package / path).write_bytes((package / path).read_bytes() + b"\n")
    assert renderer_version(package) != before
    assert renderer_version(package, "#112233") != renderer_version(
        package
    )


def test_the_renderers_version_is_the_same_on_disk_and_in_the_artifact(
    tmp_path,
):
    artifact = tmp_path / "x.pyz"
    with zipfile.ZipFile(artifact, "w") as archive:
        for name, data in contents().items():
            archive.writestr(name, data)
    with zipfile.ZipFile(artifact) as archive:
        assert (
            renderer_version(zipfile.Path(archive, "cardbeat/"))
            == own_version()
        )
    assert own_version().partition("-")[0].isalnum()
