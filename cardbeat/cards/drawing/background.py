"""The light of a theme: for every pixel an index into the theme's ramp of colours."""

import math
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce

from PIL import Image, ImageChops

from cardbeat.cards.drawing.colours import Rgb, mix, rgb
from cardbeat.cards.drawing.layout import HEIGHT, WIDTH
from cardbeat.cards.drawing.png import BAND_ROWS, deflated_bands, inflated
from cardbeat.cards.drawing.themes import Light, Theme

STRIDE = WIDTH + 1
"""Bytes of a row as in a PNG. The first is its filter type, 0 for none. Images here have it as their first column."""

EDGE_PX = 2
_THRESHOLDS = (0, 4, 2, 6, 1, 5, 3, 7)  # in eighths of a step
_GRID_PX = 8  # distances are computed for every eighth pixel and row
_PER_PIXEL = 4  # steps of a distance
_FARTHEST = 1350  # pixels: farther than any light, which may be outside the card, is from any pixel of it


@dataclass(frozen=True, slots=True)
class Background:
    """Indices into `colours` in `bands`, compressed as in the PNG: 20 KB instead of 750.

    The first `steps` colours are the ramp, from no light to full light. Those of all else that is painted follow.
    """

    steps: int
    colours: tuple[Rgb, ...]
    bands: tuple[bytes, ...]


def background(theme: Theme, mirrored: bool) -> Background:
    """The light of a theme, without its discs and its panel. Takes some 50 ms: callers keep it."""
    lit = _from_above(theme) if theme.fading else _around(theme)
    if theme.edge:
        frame = Image.new("L", lit.size, int(theme.edge * theme.steps))
        frame.paste(0, (EDGE_PX, EDGE_PX, WIDTH - EDGE_PX, HEIGHT - EDGE_PX))
        lit = ImageChops.lighter(lit, frame)
    rows = Image.new("L", (STRIDE, HEIGHT))
    rows.paste(lit.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if mirrored else lit, (1, 0))
    return of_rows(theme.steps, ramp_of(theme), rows)


def of_rows(steps: int, colours: Sequence[Rgb], rows: Image.Image) -> Background:
    """A background of indices as `rows_of` returns them."""
    return Background(steps, tuple(colours), tuple(deflated_bands(rows.tobytes(), STRIDE * BAND_ROWS)))


@lru_cache(1)
def rows_of(background: Background) -> Image.Image:
    """The indices as an "L" image, `STRIDE` wide. Don't change it. Most sites draw in one theme: it is kept.

    All threads share it. `lru_cache` has a lock of its own; two threads may each make the same.
    """
    return Image.frombytes("L", (STRIDE, HEIGHT), inflated(background.bands))


def ramp_of(theme: Theme) -> tuple[Rgb, ...]:
    """The colours of all steps of a theme's light."""
    stops, steps = theme.ramp, theme.steps
    if len(stops) == 1:
        return (rgb(stops[0]),)
    positions = [n * (len(stops) - 1) / (steps - 1) for n in range(steps)]
    low = [min(int(position), len(stops) - 2) for position in positions]
    return tuple(mix(rgb(stops[n]), rgb(stops[n + 1]), at - n) for n, at in zip(low, positions, strict=True))


def _from_above(theme: Theme) -> Image.Image:
    """Steps of light that fades downwards. Of eight rows between two steps, more and more have the next one.

    So no step is seen, and a row of one colour takes next to no bytes.
    """
    column = bytes(
        int((theme.steps - 1) * math.exp(-((y / theme.fading) ** 2)) + _THRESHOLDS[y % 8] / 8) for y in range(HEIGHT)
    )
    return Image.frombytes("L", (1, HEIGHT), column).resize((WIDTH, HEIGHT))


def _around(theme: Theme) -> Image.Image:
    """Steps of the light of all points together."""
    lit = reduce(ImageChops.add, map(_lit, theme.lights), Image.new("L", (WIDTH, HEIGHT)))
    return lit.point([(light * (theme.steps - 1) + 127) // 255 for light in range(256)])


def _lit(light: Light) -> Image.Image:
    """How much of one light, 0 to 255, reaches every pixel, looked up by its distance."""
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
    """The distance of every pixel from a point, times `_PER_PIXEL`, interpolated in a grid."""
    step = _GRID_PX
    columns, rows = WIDTH // step + 1, HEIGHT // step + 2
    offsets = ((column * step - x, row * step - y) for row in range(rows) for column in range(columns))
    small = Image.frombytes("F", (columns, rows), array("f", (_PER_PIXEL * math.hypot(*p) for p in offsets)).tobytes())
    part = (0.5, 0.5, 0.5 + WIDTH / step, 0.5 + HEIGHT / step)
    return small.resize((WIDTH, HEIGHT), Image.Resampling.BICUBIC, box=part).convert("I")
