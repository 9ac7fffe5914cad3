"""Emoji that the card's colour would swallow."""

from io import BytesIO

import pytest
from PIL import Image, ImageChops, ImageStat

from cardbeat.cards.drawing.emoji_contrast import EmojiContrast, Rescue, cells
from cardbeat.cards.drawing.render import Renderer
from cardbeat.cards.drawing.themes import THEME_OF
from cardbeat.cards.request import TEMPLATES, card_from
from cardbeat.typeset.faces.fonts import Fonts
from cardbeat.typeset.paragraph import Style
from cardbeat.typeset.text import fit

FONTS = Fonts()
RENDERER = Renderer(FONTS)
LIGHT, DARK = "#f6f8fd", "#0f121c"
"""Colours of text: on dark cards and on light ones."""


def judged(emoji: str, ink: str) -> Rescue:
    [line] = fit(FONTS, emoji, Style(400, 64, 64), 300).lines
    layer = Image.new("RGBA", (line.width_px, line.ascent_px + line.descent_px))
    line.draw_emoji(layer, 0, line.ascent_px)
    [(drawn, box)] = cells(line, layer.height)
    return EmojiContrast().judge(drawn, layer.crop(box), ink)


@pytest.mark.parametrize("sign", ["✔️", "➕", "™️", "©️", "♠️", "✖️"])
def test_a_dark_sign_has_the_colour_of_the_text(sign: str) -> None:
    assert judged(sign, LIGHT) is Rescue.INK
    assert judged(sign, DARK) is Rescue.INK


@pytest.mark.parametrize("sign", ["♥️", "♦️", "❗", "❓", "‼️"])
def test_a_red_sign_stays_red(sign: str) -> None:
    assert judged(sign, LIGHT) is judged(sign, DARK) is Rescue.NONE


@pytest.mark.parametrize("emoji", ["🖤", "🎓", "🎩", "⚫", "⬛", "💲", "🕷️"])
def test_what_is_mostly_dark_or_means_to_be_black_is_outlined_on_a_dark_card(emoji: str) -> None:
    assert judged(emoji, LIGHT) is Rescue.OUTLINE
    assert judged(emoji, DARK) is Rescue.NONE


@pytest.mark.parametrize("emoji", ["🤍", "👻"])
def test_what_is_nearly_white_is_outlined_on_a_light_card(emoji: str) -> None:
    assert judged(emoji, DARK) is Rescue.OUTLINE
    assert judged(emoji, LIGHT) is Rescue.NONE


@pytest.mark.parametrize("emoji", ["🚀", "❤️", "😀", "👩🏿‍💻", "🇧🇷", "1️⃣"])
def test_what_is_seen_on_either_stays_as_it_is(emoji: str) -> None:
    assert judged(emoji, LIGHT) is judged(emoji, DARK) is Rescue.NONE


@pytest.mark.parametrize("emoji", ["✔️", "➕", "™️", "©️", "🖤", "♠️", "🎓"])
@pytest.mark.parametrize("template", TEMPLATES)
def test_a_dark_emoji_is_seen_on_the_dark_theme(template: str, emoji: str) -> None:
    """A part of it has a brightness far from all that the empty card has there."""
    with_emoji, without = (picture(title, template) for title in (f"A {emoji}", "A"))
    assert ImageStat.Stat(ImageChops.difference(with_emoji, without)).extrema[0][1] > 120


def picture(title: str, template: str) -> Image.Image:
    png = RENDERER.render(card_from({"title": title, "template": template, "theme": "dark"})).png
    return Image.open(BytesIO(png)).convert("L")


def test_the_colours_of_text_are_what_the_judgement_is_made_by() -> None:
    assert {theme for (_, theme), colours in THEME_OF.items() if int(colours.ink[1:3], 16) > 127} == {"dark"}
