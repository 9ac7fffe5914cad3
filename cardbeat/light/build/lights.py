"""The light of an empty card: for every pixel an index into the theme's palette.

The palette begins with the ramp, from no light to full light. The shades of the panel follow.
"""

import math
from array import array
from dataclasses import dataclass

from PIL import Image, ImageChops

from cardbeat.cards.drawing.canvas import SHADE_OF
from cardbeat.cards.drawing.colours import THEME_OF, Theme
from cardbeat.cards.drawing.layout import HEIGHT, PANEL, WIDTH
from cardbeat.cards.drawing.render import rounded
from cardbeat.cards.drawing.templates import SOURCE

EDGE_PX = 2
_PANEL_RADIUS = 40
_THRESHOLDS = (0, 4, 2, 6, 1, 5, 3, 7)  # in eighths of a step
_GRID_PX = 8  # distances are computed for every eighth pixel and row
_PER_PIXEL = 4  # steps of a distance
_FARTHEST = 1350  # pixels: farther than any pixel of a card is from the light


@dataclass(frozen=True, slots=True)
class Light:
    """What is on an empty card, in parts of the ramp."""

    rings: tuple[tuple[int, float], ...] = ()
    """Radius and strength of discs around the source, each brightest at its sharp edge."""
    reach: int = 0
    """The distance from the source, or from the upper edge, at which 37 % of the glow are left."""
    glow: float = 1.0
    edge: float = 0
    """Light of the card's edges: without it a card has none on a page of its colour."""


RINGS = ((150, 0.34), (304, 0.26), (472, 0.2), (656, 0.14), (856, 0.1))
LIGHTS = {
    "default-dark": Light(RINGS, reach=640, glow=0.5, edge=0.5),
    "default-light": Light(RINGS, reach=640, glow=0.5, edge=0.75),
    "blog": Light(),
    "article-dark": Light(reach=640),
    "article-light": Light(reach=640),
}


def indices_of(name: str) -> Image.Image:
    """The indices of an empty card as an "L" image."""
    light = LIGHTS[name]
    theme = next(theme for theme in THEME_OF.values() if theme.light == name)
    if light.rings:
        lit = _around(light, theme.steps)
    elif light.reach:
        lit = _from_above(light.reach, theme.steps)
    else:
        lit = Image.new("L", (WIDTH, HEIGHT))
    if light.edge:
        frame = Image.new("L", lit.size, int(light.edge * theme.steps))
        frame.paste(0, (EDGE_PX, EDGE_PX, WIDTH - EDGE_PX, HEIGHT - EDGE_PX))
        lit = ImageChops.lighter(lit, frame)
    if theme.panel:
        _paint_panel(lit, theme)
    return lit


def _paint_panel(lit: Image.Image, theme: Theme) -> None:
    coverage = rounded(PANEL.width, PANEL.height, _PANEL_RADIUS)
    indices = coverage.point([theme.steps + shade - 1 if shade else 0 for shade in SHADE_OF])
    lit.paste(indices, (PANEL.x, PANEL.y), coverage.point([255 * (shade > 0) for shade in SHADE_OF]))


def _from_above(reach: int, steps: int) -> Image.Image:
    """Steps of light that fades downwards. Of eight rows between two steps, more and more have the next one.

    So no step is seen, and a row of one colour takes next to no bytes.
    """
    rows = []
    for y in range(HEIGHT):
        strength = (steps - 1) * math.exp(-((y / reach) ** 2))
        rows.append(int(strength + _THRESHOLDS[y % 8] / 8))
    return Image.frombytes("L", (1, HEIGHT), bytes(rows)).resize((WIDTH, HEIGHT))


def _around(light: Light, steps: int) -> Image.Image:
    """Steps of the light around the source, looked up by each pixel's distance."""
    strengths = [_strength(light, n / _PER_PIXEL) for n in range(_FARTHEST * _PER_PIXEL)]
    lookup = [int(min(strength, 1) * (steps - 1) + 0.5) for strength in strengths]
    return _distances(*SOURCE).point(lookup + [0] * (65536 - len(lookup)), "L")


def _strength(light: Light, distance: float) -> float:
    strength = light.glow * math.exp(-((distance / light.reach) ** 2))
    for radius, brightest in light.rings:
        if distance < radius:
            strength += brightest * (0.25 + 0.75 * (distance / radius) ** 3) * min(1, radius - distance)
    return strength


def _distances(x: int, y: int) -> Image.Image:
    """The distance of every pixel from a point, times `_PER_PIXEL`, interpolated in a grid."""
    columns = WIDTH // _GRID_PX + 1
    rows = HEIGHT // _GRID_PX + 2
    distances = array("f")
    for row in range(rows):
        for column in range(columns):
            distances.append(_PER_PIXEL * math.hypot(column * _GRID_PX - x, row * _GRID_PX - y))
    small = Image.frombytes("F", (columns, rows), distances.tobytes())
    part = (0.5, 0.5, 0.5 + WIDTH / _GRID_PX, 0.5 + HEIGHT / _GRID_PX)
    return small.resize((WIDTH, HEIGHT), Image.Resampling.BICUBIC, box=part).convert("I")
