"""Emoji that the card's colour would swallow."""

from io import BytesIO

import pytest
from PIL import Image, ImageChops, ImageStat

from cardbeat.cards.drawing.canvas import (
    needs_ink,
    needs_outline,
    outlined,
)
from cardbeat.cards.drawing.render import Renderer
from cardbeat.cards.request import TEMPLATES, card_from
from cardbeat.typeset.faces.fonts import emoji_parts
from tests.kit.fonts import FONTS

RENDERER = Renderer(FONTS)
ON_DARK = "#f6f8fd"
ON_LIGHT = "#0f121c"
"""Colours of text."""


@pytest.mark.parametrize(
    ("emoji", "needs"),
    [
        *((sign, "ink") for sign in ("✔️", "➕", "™️", "©️", "♠️", "✖️")),
        *(
            (emoji, "outline on dark")
            for emoji in ("🖤", "🎓", "🎩", "⚫", "⬛", "💲", "🕷️")
        ),
        *((emoji, "outline on light") for emoji in ("🤍", "👻")),
        *(
            (emoji, "")
            for emoji in (
                "♥️",
                "♦️",
                "❗",
                "🚀",
                "❤️",
                "😀",
                "👩🏿‍💻",
                "🇧🇷",
                "1️⃣",
            )
        ),
    ],
)
def test_what_would_not_be_seen_is_inked_or_outlined(emoji, needs):
    [drawn] = emoji_parts(emoji)
    assert needs_ink(drawn) == (needs == "ink")
    assert needs_outline(drawn, ON_DARK) == (needs == "outline on dark")
    assert needs_outline(drawn, ON_LIGHT) == (needs == "outline on light")


def test_an_outline_is_as_wide_on_each_side():
    picture = Image.new("RGBA", (20, 10), "black")
    around, width = outlined(picture, 40)
    assert around.size == (20 + 2 * width, 10 + 2 * width)
    assert around.getbbox() == (0, 0, *around.size)


@pytest.mark.parametrize("emoji", ["✔️", "➕", "™️", "🖤", "🎓"])
@pytest.mark.parametrize("template", TEMPLATES)
def test_a_dark_emoji_is_seen_on_a_dark_card(template, emoji):
    """A part of it has a brightness far from all that the same card without it has there."""
    pictures = []
    for title in (f"A {emoji}", "A \ue000"):
        png = RENDERER.render(
            card_from({"title": title, "template": template})
        ).png
        pictures.append(Image.open(BytesIO(png)).convert("L"))
    assert (
        ImageStat.Stat(ImageChops.difference(*pictures)).extrema[0][1]
        > 120
    )
