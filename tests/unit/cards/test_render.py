"""Drawings: valid, small, inside the safe area for any text, and looking as they were approved."""

import os
import random
import shutil
import struct
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Iterator
from io import BytesIO
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image, ImageChops, ImageStat

from build_zipapp import contents
from cardbeat.cards.drawing import canvas
from cardbeat.cards.drawing.background import empty_card, rows_of
from cardbeat.cards.drawing.layout import HEIGHT, MARGIN, WIDTH
from cardbeat.cards.drawing.render import (
    DRAWING_FOLDERS,
    OTHER_DRAWING_FILES,
    Drawing,
    Renderer,
    own_version,
    renderer_version,
)
from cardbeat.cards.drawing.themes import THEME_OF
from cardbeat.cards.request import TEMPLATES, TEXTS, THEMES, card_from
from cardbeat.errors import Invalid
from cardbeat.typeset.faces.fonts import Fonts
from tests.systems import RAQM

RENDERER = Renderer(Fonts())
UNSHAPED = Renderer(Fonts(shaping=False))
HIGHEST = {"default": 60, "blog": 24, "article": 60}
ROOT = Path(__file__).parents[3]
GOLDEN = ROOT / "tests" / "golden"
GOLDEN_WIDTH = 300
NO_DRAWING_MODULES = {"cardbeat.cards", "cardbeat.errors", "cardbeat.resources", "cardbeat.web"}
"""Modules that the renderer imports and that no drawing depends on."""
TOLERANCE = {True: 3.0, False: 6.0}
"""Mean difference of a channel, with and without a shaping engine, which kerns: letters stand a little elsewhere."""
FULL = {
    "title": "Designing reliable background jobs with nothing but SQLite",
    "description": "How we moved two million jobs a day from a message broker to a single file, and what we learned "
    "about locks, retries and back-pressure along the way.",
    "author": "Ada Lovelace",
    "tag": "Engineering",
    "domain": "blog.example.com",
}


def drawing_of(**texts: str) -> Drawing:
    return RENDERER.render(card_from(texts))


def picture(png: bytes) -> Image.Image:
    image = Image.open(BytesIO(png))
    image.load()
    return image


def thumbnail(drawing: Drawing) -> Image.Image:
    """As a chat shows it."""
    card = picture(drawing.png).convert("RGB")
    return card.resize((GOLDEN_WIDTH, GOLDEN_WIDTH * HEIGHT // WIDTH), Image.Resampling.BOX)


def chunks(png: bytes) -> Iterator[tuple[bytes, bytes]]:
    place = 8
    while place < len(png):
        length, kind = struct.unpack_from(">I4s", png, place)
        data = png[place + 8 : place + 8 + length]
        (checksum,) = struct.unpack_from(">I", png, place + 8 + length)
        assert checksum == zlib.crc32(kind + data)
        yield kind, data
        place += 12 + length


def assert_sound(png: bytes, template: str = "default", theme: str = "dark") -> None:
    """A PNG of the right size, under 100 KB, with nothing painted outside the safe area."""
    assert len(png) < 100_000 - 200
    image = picture(png)
    assert (image.size, image.mode) == ((WIDTH, HEIGHT), "P")
    bare = [rows_of(empty_card(THEME_OF[template, theme], mirrored)) for mirrored in (False, True)]
    indices = Image.frombytes("L", image.size, image.tobytes())
    painted = [ImageChops.difference(indices, rows.crop((1, 0, WIDTH + 1, HEIGHT))).getbbox() for rows in bare]
    safe = (MARGIN - 2, HIGHEST[template], WIDTH - MARGIN + 2, HEIGHT - 60)
    assert any(
        box and safe[0] <= box[0] and safe[1] <= box[1] and box[2] <= safe[2] and box[3] <= safe[3] for box in painted
    )


def test_a_drawing_is_a_well_formed_png() -> None:
    png = drawing_of(**FULL).png
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    parts = dict(chunks(png))
    assert list(parts) == [b"IHDR", b"PLTE", b"IDAT", b"IEND"]
    assert len(zlib.decompress(parts[b"IDAT"])) == (WIDTH + 1) * HEIGHT
    assert len(parts[b"PLTE"]) <= 768


def test_the_same_card_gives_the_same_bytes() -> None:
    assert drawing_of(**FULL).png == Renderer(Fonts()).render(card_from(FULL)).png


@pytest.mark.parametrize("first", ["jjjj", "Їжак", "îî", "ĵĵ"])
def test_what_hangs_out_at_the_left_stays_near_the_margin(first: str) -> None:
    """A tail or a mark reaches at most 0.12 em of the title beyond it."""
    title = first + " and so on, until the title is much too long for the middle of a card"
    card, empty = picture(drawing_of(title=title).png), rows_of(empty_card(THEME_OF["default", "dark"], mirrored=False))
    indices = Image.frombytes("L", card.size, card.tobytes())
    box = ImageChops.difference(indices, empty.crop((1, 0, WIDTH + 1, HEIGHT))).getbbox()
    assert box
    assert MARGIN - 13 <= box[0] < MARGIN


@pytest.mark.parametrize("theme", THEMES)
def test_the_templates_are_told_apart_in_a_thumbnail_by_more_than_their_text(theme: str) -> None:
    """Of each two, in grey: a fifth of the pixels differ by more than a little, although the words are the same."""
    thumbnails = [thumbnail(drawing_of(title=FULL["title"], template=t, theme=theme)).convert("L") for t in TEMPLATES]
    for one, other in combinations(thumbnails, 2):
        counts = ImageChops.difference(one, other).histogram()
        assert sum(counts[12:]) >= 0.2 * sum(counts)


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_title_of_which_nothing_can_be_drawn_leaves_no_empty_card(template: str) -> None:
    drawing = drawing_of(title="\ue000", template=template)
    assert drawing.missing_glyphs == 1
    assert_sound(drawing.png, template)


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_typical_card_is_under_60_kb(template: str) -> None:
    assert len(drawing_of(**FULL, template=template).png) < 60_000


def of_letters(first: int, last: int, spaces: bool = False) -> dict[str, str]:
    chance = random.Random(first)
    letters = [chr(codepoint) for codepoint in range(first, last)] + [" "] * (20 if spaces else 0)
    return {name: "".join(chance.choices(letters, k=600)) for name in TEXTS}


BUSY = (
    "🪗🎡🍜🚵🪩😹🎉👹⛲🪺🍝🎎👫👭😸🦓🤼😿🌋🦝🥶😻🚳👯🙀🦋🦚🥳👬🧁😺🏟🎊🥁🤣🪅🎆🪹🍣🐯🧞🏄☕🥗🦧🦪🐹"
    "🎇💸🏂🏇🍱🤡😱🥵😽🥸😰🏕🫣🦀🍵"
)
"""The emoji that take the most bytes: many colours, many edges."""


def of_emoji(count: int) -> dict[str, str]:
    chance = random.Random(0)
    return {name: "".join(chance.choices(BUSY, k=count)) for name in ("title", "description")}


HOSTILE = {
    "han": of_letters(0x4E00, 0x5600),
    "hangul": of_letters(0xAC00, 0xB000),
    "yi": of_letters(0xA000, 0xA48C),
    "emoji": of_letters(0x1F600, 0x1F64F),
    "some varied emoji": of_emoji(80),
    "many varied emoji": of_emoji(200),
    "varied emoji beside text": {**of_letters(0x4E00, 0x5600), **of_emoji(200)},
    "bengali": of_letters(0x985, 0x9B9, spaces=True),
    "stacked marks": dict.fromkeys(TEXTS, ("a" + "\u0301\u0323" * 40 + " ") * 40),
    "only marks": dict.fromkeys(TEXTS, "\u0301" * 500),
    "bidi controls": dict.fromkeys(TEXTS, "abc\u202e\u2066אבג\u202d 123 \u2069\u202c\u200f" * 30),
    "joiners": dict.fromkeys(TEXTS, "\u200d\u200c\ufe0f\u034f\u00adx" * 80),
    "one long word": dict.fromkeys(TEXTS, "w" * 4_000),
    "a very long text": dict.fromkeys(TEXTS, "lorem ipsum " * 10_000),
    "noncharacters": dict.fromkeys(TEXTS, "x\ufffe\uffff\U0010ffff\ue000\U000f0000\ufdd0" * 50),
    "tall scripts": dict.fromkeys(TEXTS, "ཧཱུྃ ནྡྷྲ ครู้ป์ ใู้ نستعلیقؓؒ ញ៉ាំ " * 30),
}


@pytest.mark.parametrize(
    "template", ["default", *(pytest.param(name, marks=pytest.mark.slow) for name in TEMPLATES if name != "default")]
)
@pytest.mark.parametrize("texts", HOSTILE.values(), ids=HOSTILE)
def test_hostile_texts_stay_small_and_inside(template: str, texts: dict[str, str]) -> None:
    assert_sound(drawing_of(**texts, template=template).png, template)


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_wall_of_emoji_busier_than_ours_would_still_fit(template: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(canvas, "MAX_BYTES", 75_000)
    assert len(drawing_of(**of_emoji(200), template=template).png) <= 75_000


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_wall_of_emoji_keeps_many_colours(template: str) -> None:
    plain = picture(drawing_of(title="I", template=template).png).convert("RGB")
    wall = picture(drawing_of(**of_emoji(80), template=template).png).convert("RGB")
    new = {colour for _, colour in wall.getcolors(256)} - {colour for _, colour in plain.getcolors(256)}
    assert len(new) >= 16


ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=80)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.sampled_from(TEMPLATES),
    st.sampled_from(THEMES),
    st.fixed_dictionaries({"title": ANY_TEXT}, optional=dict.fromkeys(TEXTS[1:], ANY_TEXT)),
)
def test_any_text_draws(template: str, theme: str, texts: dict[str, str]) -> None:
    try:
        drawing = drawing_of(**texts, template=template, theme=theme)
    except Invalid:
        return
    assert len(drawing.png) < 100_000
    assert picture(drawing.png).size == (WIDTH, HEIGHT)


def test_colour_emoji_keep_their_colours() -> None:
    plain = picture(drawing_of(title="I").png).convert("RGB")
    heart = picture(drawing_of(title="I ❤️").png).convert("RGB")
    new = {colour for _, colour in heart.getcolors(256)} - {colour for _, colour in plain.getcolors(256)}
    assert any(red > 180 and blue < 90 for red, _, blue in new)


@pytest.mark.parametrize("title", ["\u0301", "\u093f", "\u064e", "\u0e33", "\u20e3", "🏽"])
def test_a_title_that_is_no_letter_is_drawn(title: str) -> None:
    png = drawing_of(title=title).png
    assert_sound(png)
    assert picture(png).tobytes() != picture(drawing_of(title="\ue000").png).tobytes()


def test_an_avatar_shows_the_authors_first_grapheme() -> None:
    family = picture(drawing_of(title="x", author="👨‍👩‍👧 Smith", template="blog").png)
    letter = picture(drawing_of(title="x", author="Smith", template="blog").png)
    assert family.tobytes() != letter.tobytes()


def test_missing_glyphs_are_counted_over_all_texts() -> None:
    assert drawing_of(title="x").missing_glyphs == 0
    assert drawing_of(title="x\ue000", description="\ue001\ue002").missing_glyphs == 3
    assert drawing_of(title="a" * 1_500 + "\ue000").missing_glyphs == 1


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_missing_glyph_is_counted_once_however_often_it_stands_on_the_card(template: str) -> None:
    assert drawing_of(title="x", author="\ue000 Smith", template=template).missing_glyphs == 1


def test_the_renderer_version_names_a_folder() -> None:
    assert own_version().replace("-", "").isalnum()


def test_the_renderer_version_changes_with_every_module_that_draws(tmp_path: Path) -> None:
    names = "import sys, cardbeat.cards.drawing.render; print(*(n for n in sys.modules if n.startswith('cardbeat.')))"
    loaded = subprocess.run([sys.executable, "-c", names], cwd=ROOT, capture_output=True, text=True, check=True)
    package = tmp_path / "cardbeat"
    shutil.copytree(ROOT / "cardbeat", package, ignore=shutil.ignore_patterns("*.gz", "*.woff2", "__pycache__"))
    version = renderer_version(package)
    drawing = {name for name in loaded.stdout.split() if name not in NO_DRAWING_MODULES}
    assert {"cardbeat.characters", "cardbeat.cards.request", "cardbeat.typeset.line"} < drawing
    for name in drawing:
        path = package.joinpath(*name.split(".")[1:])
        path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        before = path.read_bytes()
        path.write_bytes(before + b"#")
        assert renderer_version(package) != version, name
        path.write_bytes(before)
    assert renderer_version(package) == version


def test_the_renderer_version_is_of_files_in_any_sub_folder_and_not_of_what_draws_nothing(tmp_path: Path) -> None:
    for name in OTHER_DRAWING_FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    for name in DRAWING_FOLDERS:
        (tmp_path / name / "deep" / "deeper").mkdir(parents=True)
    version = renderer_version(tmp_path)
    (tmp_path / "fonts" / "build").mkdir()
    for name in ("cards/store.py", "fonts/build/tool.py", "fonts/licence.md"):
        (tmp_path / name).write_text("other")
        assert renderer_version(tmp_path) == version, name
    for name in ("typeset/deep/deeper/new.py", "fonts/deep/table.bin"):
        (tmp_path / name).write_text("other")
        assert renderer_version(tmp_path) != version, name
        (tmp_path / name).unlink()


def test_the_renderer_version_is_the_same_on_disk_and_in_the_artifact(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "package.zip", "w") as archive:
        for name, content in contents().items():
            archive.writestr(name, content)
    with zipfile.ZipFile(tmp_path / "package.zip") as archive:
        assert renderer_version(zipfile.Path(archive, "cardbeat/")) == own_version()


@pytest.mark.parametrize("shaping", [pytest.param(True, marks=RAQM), False], ids=["shaped", "unshaped"])
@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("template", TEMPLATES)
def test_a_card_looks_as_approved(template: str, theme: str, shaping: bool) -> None:
    """`CARDBEAT_APPROVE=1` makes what is drawn now the approved picture."""
    drawing = (RENDERER if shaping else UNSHAPED).render(card_from({**FULL, "template": template, "theme": theme}))
    small = thumbnail(drawing)
    approved = GOLDEN / f"{template}-{theme}.png"
    if os.environ.get("CARDBEAT_APPROVE") and shaping:
        small.save(approved, optimize=True)
    difference = ImageStat.Stat(ImageChops.difference(small, Image.open(approved).convert("RGB")))
    assert max(difference.mean) <= TOLERANCE[shaping], difference.mean
