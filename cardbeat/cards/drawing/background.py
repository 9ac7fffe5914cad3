"""The empty card of a theme: for every pixel an index into a palette, as `build` has made it."""

from functools import cache, lru_cache
from typing import NamedTuple

from PIL import Image

from cardbeat.cards.drawing.colours import Rgb, mix, rgb, shades
from cardbeat.cards.drawing.layout import HEIGHT, WIDTH
from cardbeat.cards.drawing.png import inflated
from cardbeat.cards.drawing.themes import Theme
from cardbeat.resources import read_bytes

STRIDE = WIDTH + 1
"""Bytes of a row as in a PNG. The first is its filter type, 0 for none. Images here have it as their first column."""
BAND_END = b"\0\0\xff\xff"
"""The empty stored block that ends a band. In these files no band holds it elsewhere."""


class Background(NamedTuple):
    """Indices into `colours` in `bands`, compressed as in the PNG: at most 24 KB instead of 750.

    The first `steps` colours are the ramp, from no light to full light. Those of the disc and of the panel follow.
    """

    steps: int
    colours: tuple[Rgb, ...]
    bands: tuple[bytes, ...]


# All threads share what these two keep. Their caches have locks of their own; two threads may each make the same.
@cache
def empty_card(theme: Theme, mirrored: bool) -> Background:
    """The background of a theme's cards."""
    parts = read_bytes(f"light/{theme.light}{'-mirrored' * mirrored}.bin").split(BAND_END)
    under = (rgb(theme.ramp[0]),)
    colours = [*ramp_of(theme), *(c for over in (theme.disc, theme.panel) if over for c in shades(under, over))]
    return Background(theme.steps, tuple(colours), tuple(part + BAND_END for part in parts[:-1]))


@lru_cache(1)
def rows_of(background: Background) -> Image.Image:
    """The indices as an "L" image, `STRIDE` wide. Don't change it. Most sites draw in one theme: it is kept."""
    return Image.frombytes("L", (STRIDE, HEIGHT), inflated(background.bands))


def ramp_of(theme: Theme) -> tuple[Rgb, ...]:
    """The colours of all steps of a theme's light."""
    stops, steps = theme.ramp, theme.steps
    if len(stops) == 1:
        return (rgb(stops[0]),)
    positions = [n * (len(stops) - 1) / (steps - 1) for n in range(steps)]
    low = [min(int(position), len(stops) - 2) for position in positions]
    return tuple(mix(rgb(stops[n]), rgb(stops[n + 1]), at - n) for n, at in zip(low, positions, strict=True))
