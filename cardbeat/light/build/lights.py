"""The light of an empty card: for every pixel an index into the theme's palette.

The palette begins with the ramp, from no light to full light. The shades of the disc follow, and those of the panel.
"""

import math
from array import array
from dataclasses import dataclass
from functools import reduce

from PIL import Image, ImageChops

from cardbeat.cards.drawing.background import STRIDE
from cardbeat.cards.drawing.canvas import PAINTED, SHADE_OF
from cardbeat.cards.drawing.colours import SHADES
from cardbeat.cards.drawing.layout import HEIGHT, PANEL, PANEL_RADIUS, WIDTH
from cardbeat.cards.drawing.render import disc, rounded
from cardbeat.cards.drawing.themes import THEME_OF, Theme

EDGE_PX = 2
_THRESHOLDS = (0, 4, 2, 6, 1, 5, 3, 7)  # in eighths of a step
_GRID_PX = 8  # distances are computed for every eighth pixel and row
_PER_PIXEL = 4  # steps of a distance
_FARTHEST = 1350  # pixels: farther than any light, which may be outside the card, is from any pixel of it


@dataclass(frozen=True, slots=True)
class Lamp:
    """Round light around a point, in parts of the ramp.

    The glow fades over `reach` pixels. Each disc, a radius and a strength, is brightest at its sharp edge.
    """

    x: int
    y: int
    reach: int
    glow: float
    discs: tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True)
class Light:
    """What is on an empty card."""

    lamps: tuple[Lamp, ...] = ()
    fading: int = 0
    """The distance from the upper edge at which 37 % of a light from there are left, in pixels; 0 for `lamps`."""
    edge: float = 0
    """Light of the card's edges, in parts of the ramp: without it a card has none on a page of its colour."""
    disc: tuple[int, int, int] | None = None  # its centre and its radius


WAVES = (Lamp(1136, 16, 640, 0.5, ((152, 0.34), (304, 0.26), (472, 0.2), (656, 0.14), (856, 0.1))),)
LIGHTS = {
    "default-dark": Light(WAVES, edge=0.5),
    "default-light": Light(WAVES, edge=0.75),
    "blog": Light(disc=(1080, -60, 180)),
    "article-dark": Light(fading=640),
    "article-light": Light(fading=640),
}


def rows_of(name: str, mirrored: bool) -> Image.Image:
    """The indices of an empty card as an "L" image, with the filter types of a PNG as its first column."""
    light, theme = LIGHTS[name], next(theme for theme in THEME_OF.values() if theme.light == name)
    lit = _from_above(light.fading, theme.steps) if light.fading else _around(light, theme.steps)
    if light.edge:
        frame = Image.new("L", lit.size, int(light.edge * theme.steps))
        frame.paste(0, (EDGE_PX, EDGE_PX, WIDTH - EDGE_PX, HEIGHT - EDGE_PX))
        lit = ImageChops.lighter(lit, frame)
    if mirrored:
        lit = lit.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    _paint_shapes(lit, light, theme, mirrored)
    rows = Image.new("L", (STRIDE, HEIGHT))
    rows.paste(lit, (1, 0))
    return rows


def _paint_shapes(lit: Image.Image, light: Light, theme: Theme, mirrored: bool) -> None:
    shapes = []
    if light.disc:
        x, y, radius = light.disc
        shapes.append((disc(2 * radius), (WIDTH - x if mirrored else x) - radius, y - radius))
    if theme.panel:
        shapes.append((rounded(PANEL.width, PANEL.height, PANEL_RADIUS), PANEL.x, PANEL.y))
    for before, (coverage, left, top) in enumerate(shapes):
        indices = coverage.point([theme.steps + before * SHADES + shade - 1 if shade else 0 for shade in SHADE_OF])
        lit.paste(indices, (left, top), coverage.point(PAINTED))


def _from_above(fading: int, steps: int) -> Image.Image:
    """Steps of light that fades downwards. Of eight rows between two steps, more and more have the next one.

    So no step is seen, and a row of one colour takes next to no bytes.
    """
    column = bytes(int((steps - 1) * math.exp(-((y / fading) ** 2)) + _THRESHOLDS[y % 8] / 8) for y in range(HEIGHT))
    return Image.frombytes("L", (1, HEIGHT), column).resize((WIDTH, HEIGHT))


def _around(light: Light, steps: int) -> Image.Image:
    """Steps of the light of all lamps together."""
    lit = reduce(ImageChops.add, map(_lit, light.lamps), Image.new("L", (WIDTH, HEIGHT)))
    return lit.point([(part * (steps - 1) + 127) // 255 for part in range(256)])


def _lit(lamp: Lamp) -> Image.Image:
    """How much of one lamp's light, 0 to 255, reaches every pixel, looked up by its distance."""
    reached = [int(_strength(lamp, n / _PER_PIXEL) * 255 + 0.5) for n in range(_FARTHEST * _PER_PIXEL)]
    lookup = reached + [0] * (65536 - len(reached))
    return _distances(lamp.x, lamp.y).point(lookup, "L")


def _strength(lamp: Lamp, distance: float) -> float:
    glow = lamp.glow * math.exp(-((distance / lamp.reach) ** 2))
    return glow + sum(
        strength * (0.25 + 0.75 * (distance / radius) ** 3) * min(1, radius - distance)
        for radius, strength in lamp.discs
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
