"""Which font draws what, and that the files are those of the record."""

import hashlib
import json
from importlib import resources

import pytest

from cardbeat.typeset.clusters import clusters
from cardbeat.typeset.emoji import Emoji
from cardbeat.typeset.fonts import Fonts, Glyphs, Slice, language_of

FOLDER = resources.files("cardbeat") / "fonts"


@pytest.fixture(scope="module")
def fonts() -> Fonts:
    return Fonts()


def slices(fonts: Fonts, graphemes: list[str], language: str = "zh-Hans") -> list[str]:
    return [slice_.name if (slice_ := slice_of(glyphs)) else "" for glyphs in fonts.choose(graphemes, language)]


def slice_of(glyphs: Glyphs) -> Slice | None:
    return glyphs.pieces[0].slice if glyphs.pieces else None


def text_of(glyphs: Glyphs) -> str:
    return "".join(piece.text for piece in glyphs.pieces)


def is_picture(glyphs: Glyphs) -> bool:
    return bool(glyphs.pieces) and glyphs.pieces[0].slice.emoji


def test_every_file_is_the_one_in_the_record() -> None:
    made = json.loads((FOLDER / "sources.json").read_text())["made"]
    assert {name: hashlib.sha256((FOLDER / name).read_bytes()).hexdigest() for name in made} == made
    assert {file.name for file in FOLDER.iterdir() if file.name.endswith(".woff2")} <= set(made)


def test_every_package_brings_its_licence() -> None:
    for source in json.loads((FOLDER / "sources.json").read_text())["sources"]:
        assert "license" in (FOLDER / source["licence"]).read_text("utf-8").lower(), source["package"]


def test_every_slice_of_the_index_has_its_files() -> None:
    names = {file.name for file in FOLDER.iterdir()}
    for name, weights, *_ in json.loads((FOLDER / "index.json").read_text()):
        assert {f"{name}-{weight}.woff2" for weight in weights} <= names


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("日本語のタイトル", "ja"),
        ("한국어 漢字", "ko"),
        ("简体中文标题", "zh-Hans"),
        ("繁體中文標題", "zh-Hant"),
        ("東京大学駅", "ja"),
        ("中文", "zh-Hans"),
        ("plain", "zh-Hans"),
    ],
)
def test_the_text_tells_whose_han_shapes_it_wants(text: str, language: str) -> None:
    assert language_of(text) == language


def test_a_text_that_can_not_tell_takes_the_language_of_its_card() -> None:
    assert language_of("田中", "ja") == "ja"
    assert language_of("한국", "ja") == "ko"


@pytest.mark.parametrize(("language", "region"), [("ja", "j"), ("ko", "k"), ("zh-Hans", "s"), ("zh-Hant", "t")])
def test_each_region_draws_its_own_shape(fonts: Fonts, language: str, region: str) -> None:
    for character in "直骨角次海":
        chosen = slice_of(fonts.choose([character], language)[0])
        assert chosen
        assert region in chosen.regions


def test_a_character_that_one_region_lacks_is_borrowed(fonts: Fonts) -> None:
    assert slice_of(fonts.choose(["们"], "ko")[0])


def test_punctuation_goes_with_the_script_beside_it(fonts: Fonts) -> None:
    assert slices(fonts, ["a", "“", "b"])[1].startswith("inter")
    assert slices(fonts, ["中", "“", "文"])[1].startswith("han")
    assert slices(fonts, ["ا", " ", "ب"])[1] == slices(fonts, ["ا"])[0]
    assert fonts.choose(["₂", ",", "a"], "ja")[1].pieces == fonts.choose([","], "ja")[0].pieces


def test_an_emoji_family_is_one_glyph(fonts: Fonts) -> None:
    for emoji in ("👩‍👩‍👧‍👦", "👍🏽", "🇩🇪", "1️⃣", "🏴󠁧󠁢󠁳󠁣󠁴󠁿", "❤️", "☕"):
        chosen = fonts.choose([emoji], "ja")[0]
        assert is_picture(chosen)
        assert len(text_of(chosen)) == 1


def test_an_emoji_in_text_style_is_text(fonts: Fonts) -> None:
    assert not is_picture(fonts.choose(["☕\ufe0e"], "ja")[0])
    assert not any(is_picture(glyphs) for glyphs in fonts.choose(["1", "#", "©"], "ja"))


def test_an_unknown_sequence_draws_its_parts(fonts: Fonts) -> None:
    assert len(text_of(fonts.choose(["🐢\u200d🚀"], "ja")[0])) == 2


@pytest.mark.parametrize(
    ("sequence", "parts"),
    [
        ("🐦‍🔥", "🐦🔥"),
        ("🙂‍↕️", "🙂 ↕️"),
        ("🏃🏽‍➡️", "🏃🏽 ➡️"),
        ("🧑‍🧑‍🧒", "🧑🧑🧒"),
        ("👨‍👩‍👦‍👶", "👨‍👩‍👦👶"),
        ("🇽🇽", "🇽 🇽"),
        ("👩‍\U0001fae9", "👩"),
        ("😀\ufe0e", "😀"),  # no font has it as text
        ("a\ufe0f", "a"),
        ("🐢\u20e0", "🐢"),
        ("🐢\u200d→", "🐢→"),
    ],
)
def test_an_emoji_sequence_without_a_picture_draws_each_part(fonts: Fonts, sequence: str, parts: str) -> None:
    each = [glyphs for glyphs in fonts.choose(clusters(parts), "ja") if text_of(glyphs) != " "]
    (chosen,) = fonts.choose([sequence], "ja")
    assert chosen.pieces == tuple(piece for glyphs in each for piece in glyphs.pieces)
    assert all(piece.slice.covers(character) for piece in chosen.pieces for character in piece.text)


def test_the_part_of_an_emoji_that_no_font_has_is_counted(fonts: Fonts) -> None:
    assert fonts.drawable("👩‍\U0001fae9")[1] == 1
    assert fonts.drawable("🏃🏽‍➡️ 🇽🇽")[1] == 0


def test_no_emoji_sequence_is_longer_than_is_looked_for(fonts: Fonts) -> None:
    emoji = Emoji()
    assert all(len(list(emoji.parts(sequence))) == 1 for sequence in fonts.emoji_sequences())


def test_what_no_font_has_is_counted(fonts: Fonts) -> None:
    graphemes = ["\U00012000", "a\u0358", "\ue000", "\U0010ffff", "\u200e"]
    assert [fonts.drawable(grapheme)[1] for grapheme in graphemes] == [1, 1, 1, 1, 0]
    assert [text_of(glyphs) for glyphs in fonts.choose(graphemes, "ja")] == ["", "a", "", "", ""]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("\U000f0000 \U000f0fff", 2),  # the emoji fonts keep their pictures there
        ("e\u0301\u0302", 0),  # two fonts have one of the marks each
        ("👍🏽 🏴\U000e0067\U000e007f \u200d", 0),
        ("plain “text” 漢字", 0),
    ],
)
def test_a_character_that_some_font_has_is_not_missing(fonts: Fonts, text: str, count: int) -> None:
    assert fonts.drawable(text)[1] == count


@pytest.mark.parametrize(
    ("text", "drawn"),
    [
        ("CO₂ x⁵ 10⁻³ ⁿ", "CO₂ x⁵ 10⁻³ ⁿ"),
        ("⅓ ⅞ ⅒ ⅟ ½", "¹⁄₃ ⁷⁄₈ ¹⁄₁₀ ¹⁄ ½"),
        ("℠ ™ ℅ ℆ ‾", "SM ™ ℅ c/u ¯"),
    ],
)
def test_what_no_font_has_is_written_with_what_they_have(fonts: Fonts, text: str, drawn: str) -> None:
    assert fonts.drawable(text) == (drawn, 0)
    assert all(slice_of(glyphs) for glyphs in fonts.choose(list(drawn), "ja"))


def test_superscripts_and_subscripts_that_no_font_has_are_small_letters(fonts: Fonts) -> None:
    line, above, below = (fonts.choose([character], "ja")[0].pieces[0] for character in "5⁵₅")
    assert above.text == below.text == line.text
    assert above.slice.rise_em > 0 > below.slice.rise_em
    assert fonts.width_em(above.slice, 400, ["5"], False) == pytest.approx(
        0.6 * fonts.width_em(line.slice, 400, ["5"], False)
    )
    assert slice_of(fonts.choose(["₂"], "ja")[0]) is slice_of(fonts.choose(["₃"], "ja")[0])


def test_opened_faces_are_bounded() -> None:
    fonts = Fonts(max_bytes=100_000)
    for weight in (400, 500, 600, 700, 800):
        for size in (20, 30, 40, 50, 60):
            slice_ = slice_of(fonts.choose(["a"], "ja")[0])
            assert slice_
            fonts.face(slice_, weight, size)
    assert fonts.faces.bytes <= 100_000
