"""Draws text, and makes it bolder where its font has no bold file."""

from math import floor
from typing import Any, NamedTuple

from PIL import Image, ImageChops

from cardbeat.typeset.faces import Face


class Ink(NamedTuple):
    """Coverage as Pillow returns it, `left` right of and `top` below the origin."""

    bitmap: Any
    left: int
    top: int


def drawn(face: Face, text: str, rtl: bool, x: float) -> Ink:
    """A string whose origin is at `x`, and on the baseline."""
    wider, higher = face.bolder_px
    if not wider:
        return _plain(face, text, rtl, x, 0)
    ink = _plain(face, text, rtl, x - wider / 2, -higher / 2)
    image = Image.new("L", (ink.bitmap.size[0] + wider, ink.bitmap.size[1] + higher))
    image.paste(ink.bitmap, (0, 0, *ink.bitmap.size))
    # A stroke that is moved by less than its width covers all that it passes, and its corners stay sharp.
    for right, down in ((wider, 0), (0, higher)):
        moved = Image.new("L", image.size)
        moved.paste(image, (right, down))
        image = ImageChops.lighter(image, moved)
    return Ink(image.im, ink.left, ink.top)


def _plain(face: Face, text: str, rtl: bool, x: float, y: float) -> Ink:
    bitmap, (left, top) = face.font.getmask2(
        text, "L", direction=face.direction(rtl), anchor="ls", start=(x - floor(x), y - floor(y))
    )
    return Ink(bitmap, left + floor(x), top + floor(y))
