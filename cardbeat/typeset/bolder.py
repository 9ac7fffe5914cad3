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
    # A stroke that is moved by less than its width covers all that it passes, and its corners stay sharp.
    image = _moved_over(_moved_over(_image(ink), wider, 0), 0, higher)
    return Ink(image.im, ink.left, ink.top)


def _plain(face: Face, text: str, rtl: bool, x: float, y: float) -> Ink:
    bitmap, (left, top) = face.font.getmask2(
        text, "L", direction=face.direction(rtl), anchor="ls", start=(x - floor(x), y - floor(y))
    )
    return Ink(bitmap, left + floor(x), top + floor(y))


def _image(ink: Ink) -> Image.Image:
    image = Image.new("L", ink.bitmap.size)
    image.paste(ink.bitmap, (0, 0, *image.size))
    return image


def _moved_over(image: Image.Image, right: int, down: int) -> Image.Image:
    """What it covers where it is, or moved by so many pixels."""
    here = Image.new("L", (image.width + right, image.height + down))
    there = here.copy()
    here.paste(image, (0, 0))
    there.paste(image, (right, down))
    return ImageChops.lighter(here, there)
