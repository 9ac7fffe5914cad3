"""Emoji that can't be seen on their background: dark ones on a dark card, white on white.

Which ones these are was judged when the fonts were made: `fonts/emoji_contrast.json`.
"""

import json
from functools import cache
from math import cos, pi, sin

from PIL import Image, ImageChops

from cardbeat.cards.drawing.colours import luminance, rgb
from cardbeat.cards.drawing.themes import Colour
from cardbeat.files import read_text

_OUTLINE_EM = 0.03
_DIRECTIONS = [(cos(n * pi / 6), sin(n * pi / 6)) for n in range(12)]


def needs_ink(drawn: str) -> bool:
    """Whether it is a black sign, such as a tick, that is drawn in the colour of the text."""
    return drawn in _judged()["ink"]


def needs_outline(drawn: str, ink: Colour) -> bool:
    """Whether an emoji would not be seen beside text of that colour."""
    return drawn in _judged()["dark" if luminance(rgb(ink)) > 0.2 else "light"]


def outlined(picture: Image.Image, size_px: int) -> tuple[Image.Image, int]:
    """Coverage of an emoji with a line around it, and the width of that line."""
    width = max(2, round(_OUTLINE_EM * size_px))
    alpha = Image.new("L", (picture.width + 2 * width, picture.height + 2 * width))
    alpha.paste(picture.getchannel("A"), (width, width))
    grown = alpha
    for x, y in _DIRECTIONS:
        moved = ImageChops.offset(alpha, round(x * width), round(y * width))
        grown = ImageChops.lighter(grown, moved)
    return grown, width


@cache
def _judged() -> dict[str, frozenset[str]]:
    found = json.loads(read_text("fonts/emoji_contrast.json"))
    return {name: frozenset(drawn) for name, drawn in found.items()}
