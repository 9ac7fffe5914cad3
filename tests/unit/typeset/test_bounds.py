"""What drawing a text costs is bounded, whatever the text: counted, because times differ between machines."""

import gc
import random
import weakref
from collections.abc import Iterator

import pytest
from PIL import ImageFont, features

from cardbeat.cards.page import TEXT_FONT_BYTES
from cardbeat.cards.render import Renderer
from cardbeat.cards.request import card_from
from cardbeat.typeset.clusters import clusters
from cardbeat.typeset.fonts import Fonts
from cardbeat.typeset.paragraph import Paragraph, Room
from cardbeat.typeset.text import fit
from tests.bench.hostile_texts import Fields, hostile_fields, mixed_scripts

ENGINES = [pytest.param(False, id="basic")] + [pytest.param(True, id="raqm")] * bool(features.check("raqm"))
BOX = {"width_px": 1056, "max_lines": 5, "size_px": 96, "min_size_px": 40}
MIXED = "".join(mixed_scripts(random.Random(4))["title"] for _ in range(4))
FACES_OF_A_CARD, DRAWINGS_OF_A_CARD = 150, 1_500
"""Of fonts, most are 20 to 30 KB long; a text has at most some 500 graphemes, drawn a few times."""


class Counted:
    """Calls to Pillow."""

    def __init__(self) -> None:
        self.faces = self.drawings = 0


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counted]:
    calls = Counted()
    truetype, getmask2 = ImageFont.truetype, ImageFont.FreeTypeFont.getmask2

    def opened(*args: object, **options: object) -> ImageFont.FreeTypeFont:
        calls.faces += 1
        return truetype(*args, **options)

    def drawn(*args: object, **options: object) -> object:
        calls.drawings += 1
        return getmask2(*args, **options)

    monkeypatch.setattr(ImageFont, "truetype", opened)
    monkeypatch.setattr(ImageFont.FreeTypeFont, "getmask2", drawn)
    return calls


@pytest.fixture(scope="module", params=ENGINES)
def renderer(request: pytest.FixtureRequest) -> Renderer:
    return Renderer(Fonts(shaping=request.param))


def hostile() -> list[Fields]:
    chance = random.Random(11)
    return [make(chance) for _ in range(6) for make in (mixed_scripts, hostile_fields)]


@pytest.mark.parametrize("fields", hostile())
def test_a_hostile_card_opens_and_draws_a_bounded_number_of_times(
    renderer: Renderer, counted: Counted, fields: Fields
) -> None:
    renderer.render(card_from(fields))
    assert counted.faces <= FACES_OF_A_CARD
    assert counted.drawings <= DRAWINGS_OF_A_CARD


def test_no_text_opens_more_of_the_font_files_than_it_may() -> None:
    assert fit(Fonts(), MIXED, **BOX, max_work=TEXT_FONT_BYTES).font_bytes <= TEXT_FONT_BYTES + 50_000


def test_what_is_left_out_for_its_many_fonts_counts_as_missing_and_the_rest_is_drawn() -> None:
    few, many = (fit(Fonts(), MIXED[:80], **BOX, max_work=most) for most in (200_000, 10_000_000))
    assert few.missing > many.missing
    assert few.lines


def test_what_a_text_lacks_does_not_depend_on_what_was_open_before() -> None:
    fonts = Fonts()
    first, again = (fit(fonts, MIXED, **BOX, max_work=500_000) for _ in range(2))
    assert (first.missing, first.font_bytes, first.size_px) == (again.missing, again.font_bytes, again.size_px)


def test_a_full_title_of_different_han_is_not_cut_for_its_fonts() -> None:
    poem = "天地玄黄宇宙洪荒日月盈昃辰宿列张寒来暑往秋收冬藏闰余成岁律吕调阳云腾致雨露结为霜金生丽水玉出昆冈"
    assert fit(Fonts(), poem, **BOX, weight=700).missing == 0


def test_a_text_in_one_script_is_drawn_however_long_its_font_is() -> None:
    assert fit(Fonts(), "བོད་སྐད", **BOX, max_work=1).missing == 0


def test_letters_are_measured_without_opening_their_fonts(counted: Counted) -> None:
    fonts = Fonts()
    for text in ("Designing", "Ελληνικά", "हिन्दी", "日本語", "∀x∈ℝ"):
        for choice in fonts.fallback.choose(clusters(text), "ja"):
            for subset, piece in choice.pieces:
                fonts.advances.width_em(subset, 400, [piece], rtl=False)
    assert counted.faces == 0


def test_a_text_far_longer_than_its_box_is_not_measured_to_its_end() -> None:
    room = Room(graphemes=1_000, width_em=20)
    paragraph = Paragraph(Fonts(), "w" * 900, room=room, weight=400, language=None, max_work=10**6)
    assert paragraph.truncated
    assert len(paragraph) < 60


def test_a_run_that_stands_in_several_lines_is_drawn_once(counted: Counted) -> None:
    room = Room(graphemes=100, width_em=100)
    paragraph = Paragraph(Fonts(), "abc", room=room, weight=400, language=None, max_work=10**6)
    assert paragraph.line(0, 3, 40).text == paragraph.line(0, 3, 40).text
    assert counted.drawings == 1


def test_a_paragraph_goes_at_once_with_all_it_holds() -> None:
    room = Room(graphemes=100, width_em=100)
    paragraph = Paragraph(Fonts(), "abc", room=room, weight=400, language=None, max_work=10**6)
    paragraph.line(0, 3, 40)
    gc.disable()
    try:
        gone = weakref.ref(paragraph)
        del paragraph
        assert gone() is None
    finally:
        gc.enable()
