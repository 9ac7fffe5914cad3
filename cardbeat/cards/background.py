"""The empty card of a theme: for every pixel a place on the theme's ramp, lit by its round lights."""

import math
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from PIL import Image, ImageChops

from cardbeat.cards.png import BAND_ROWS, packed_bands, unpacked
from cardbeat.cards.templates import HEIGHT, WIDTH
from cardbeat.cards.themes import Colour, Light, Theme

Rgb = tuple[int, int, int]

STRIDE = WIDTH + 1
"""Bytes of a row: the first is the filter type that PNG wants, 0 for none, which is painted on like a column."""

_FIELD_STEP = 8
_PER_PIXEL = 4
_FARTHEST = 1350
"""Pixels between a light, which may stand outside the card, and the pixel farthest from it."""


@dataclass(frozen=True, slots=True)
class Background:
    """`ramp` are the colours; `bands` the picture in places on it, as packed for the PNG: 20 KB instead of 750."""

    ramp: tuple[Rgb, ...]
    bands: tuple[bytes, ...]

    def rows(self) -> Image.Image:
        """The picture, `STRIDE` wide. Takes a millisecond."""
        return Image.frombytes("L", (STRIDE, HEIGHT), unpacked(self.bands))


def background(theme: Theme, mirrored: bool) -> Background:
    """Costs some 50 ms: keep it."""
    lit = reduce(ImageChops.add, map(_lit, theme.lights))
    lit = lit.point([(light * (theme.steps - 1) + 127) // 255 for light in range(256)])
    rows = Image.new("L", (STRIDE, HEIGHT))
    rows.paste(lit.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if mirrored else lit, (1, 0))
    bands = packed_bands(rows.tobytes(), STRIDE * BAND_ROWS)
    return Background(_ramp(theme.ramp, theme.steps), tuple(bands))


def rgb(colour: Colour) -> Rgb:
    """`#rrggbb` as numbers."""
    red, green, blue = bytes.fromhex(colour[1:])
    return red, green, blue


def mix(under: Rgb, over: Rgb, part: float) -> Rgb:
    """`part` of one colour over the other."""
    red, green, blue = (round(u + (o - u) * part) for u, o in zip(under, over, strict=True))
    return red, green, blue


def _ramp(stops: Sequence[Colour], steps: int) -> tuple[Rgb, ...]:
    places = [n * (len(stops) - 1) / (steps - 1) for n in range(steps)]
    low = [min(int(place), len(stops) - 2) for place in places]
    return tuple(mix(rgb(stops[n]), rgb(stops[n + 1]), place - n) for n, place in zip(low, places, strict=True))


def _lit(light: Light) -> Image.Image:
    """How much of one light reaches every pixel, 255 for all, looked up by its distance."""
    reached = [int(_strength(light, n / _PER_PIXEL) * 255 + 0.5) for n in range(_FARTHEST * _PER_PIXEL)]
    lookup = reached + [0] * (65536 - len(reached))
    return _distances(light.x, light.y).point(lookup, "L")


def _strength(light: Light, distance: float) -> float:
    glow = light.glow * math.exp(-((distance / light.reach) ** 2))
    return glow + sum(
        strength * (0.25 + 0.75 * (distance / radius) ** 3) * min(1, radius - distance)
        for radius, strength in light.discs
        if distance < radius
    )


def _distances(x: int, y: int) -> Image.Image:
    """The distance of every pixel from a point, times `_PER_PIXEL`: few are computed, and the rest between them."""
    step = _FIELD_STEP
    columns, rows = WIDTH // step + 1, HEIGHT // step + 2
    places = ((column * step - x, row * step - y) for row in range(rows) for column in range(columns))
    small = Image.frombytes("F", (columns, rows), array("f", (_PER_PIXEL * math.hypot(*p) for p in places)).tobytes())
    part = (0.5, 0.5, 0.5 + WIDTH / step, 0.5 + HEIGHT / step)
    return small.resize((WIDTH, HEIGHT), Image.Resampling.BICUBIC, box=part).convert("I")
