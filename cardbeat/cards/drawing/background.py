"""The empty card of a theme: for every pixel an index into a palette, from a picture in `light`."""

from functools import lru_cache
from typing import NamedTuple

from PIL import Image

from cardbeat.cards.drawing.colours import SHADES, Rgb, mix, rgb, shades
from cardbeat.cards.drawing.layout import HEIGHT, WIDTH
from cardbeat.cards.drawing.png import rows_of
from cardbeat.cards.drawing.themes import Theme
from cardbeat.files import read_bytes

TONES = 3
"""Parts of the background's ramp that an ink is mixed with."""


class Background(NamedTuple):
    """Indices ("L") into `colours`: the ramp in `steps`, from no light to full, then the panel's.

    As in a PNG, each row begins with its filter type, 0: the picture stands in the columns from 1
    on.
    """

    rows: Image.Image
    tones: Image.Image
    """For each pixel, how much later in the palette the shades over its part of the ramp are.

    That is no more than the pixel's index, as ramps have one step or `TONES * SHADES` at least.
    """
    colours: list[Rgb]
    steps: int


@lru_cache(4)
def empty_card(theme: Theme, mirrored: bool) -> Background:
    """The background of a theme's cards. It is kept: don't change it."""
    data = rows_of(read_bytes(f"light/{theme.light}.png"))
    rows = Image.frombytes("L", (WIDTH + 1, HEIGHT), data)
    if mirrored:
        picture = rows.crop((1, 0, WIDTH + 1, HEIGHT))
        rows.paste(picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT), (1, 0))
    colours = ramp_of(theme)
    if theme.panel:
        colours += shades((rgb(theme.ramp[0]),), theme.panel)
    parts = [step * TONES // theme.steps * (step < theme.steps) for step in range(256)]
    tones = rows.point([part * SHADES for part in parts])
    return Background(rows, tones, colours, theme.steps)


def ramp_of(theme: Theme) -> list[Rgb]:
    """The colours of all steps of a theme's light."""
    stops = [rgb(colour) for colour in theme.ramp]
    if len(stops) == 1:
        return stops
    found = []
    for step in range(theme.steps):
        position = step * (len(stops) - 1) / (theme.steps - 1)
        low = min(int(position), len(stops) - 2)
        found.append(mix(stops[low], stops[low + 1], position - low))
    return found
