"""A card in palette indices: backgrounds, shapes and text are painted as what they become in the PNG, one byte a pixel.

The palette holds the background's ramp, then for each ink its shades over each part of that ramp. So nothing is
ever quantised, except emoji, which get the places that are left.
"""

import math
import struct
import zlib
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce

from PIL import Image, ImageChops, ImageDraw

from cardbeat.cards.templates import HEIGHT, WIDTH
from cardbeat.cards.text import Line
from cardbeat.cards.themes import Colour, Light, Theme

Rgb = tuple[int, int, int]

SHADES = 16
"""Anti-aliasing steps of an ink, the last one the ink itself."""
TONES = 3
"""Parts of the background's ramp that an ink is mixed with."""
COLOURS = 256
_SUPERSAMPLING = 4
_FIELD_STEP = 8
_PER_PIXEL = 4
MAX_DISTANCE = 1600
"""Of a pixel from a light, which may stand outside the card."""


@dataclass(frozen=True, slots=True)
class Background:
    """`tones` holds a place on the ramp for every pixel."""

    tones: Image.Image
    ramp: tuple[Rgb, ...]


def background(theme: Theme) -> Background:
    """The empty card of a theme. Costs some 30 ms: keep it."""
    light = reduce(ImageChops.add, (_light(source, theme.steps) for source in theme.lights))
    top = theme.steps - 1
    return Background(light.point([min(v, top) for v in range(256)]), _ramp(theme.ramp, theme.steps))


class Canvas:
    """One card while it is painted."""

    def __init__(self, background: Background, mirrored: bool) -> None:
        flip = Image.Transpose.FLIP_LEFT_RIGHT
        self._tones = background.tones.transpose(flip) if mirrored else background.tones
        self._ramp = background.ramp
        self._colours = list(background.ramp)
        self._inks: dict[tuple[Colour, Colour | None], int] = {}
        self._emoji: list[tuple[Image.Image, int, int]] = []
        # The first column is the filter type that PNG wants before each row: 0, none.
        self._rows = Image.new("L", (WIDTH + 1, HEIGHT))
        self._rows.paste(self._tones, (1, 0))

    def paint(self, coverage: Image.Image, x: int, y: int, colour: Colour, over: Colour | None = None) -> None:
        """Paints a colour where there is coverage, over the background or over a shape of the colour `over`."""
        first = self._ink(colour, over)
        indices = coverage.point([max(0, first - 1 + _shade(value)) for value in range(256)])
        if over is None:
            box = (x, y, x + coverage.width, y + coverage.height)
            indices = ImageChops.add(indices, self._tones.crop(box).point(self._tone_offsets()))
        self._rows.paste(indices, (x + 1, y), coverage.point([255 * bool(_shade(v)) for v in range(256)]))

    def colour_at(self, x: int, y: int) -> Colour:
        """Of the background."""
        return "#" + bytes(self._ramp[self._tones.crop((x, y, x + 1, y + 1)).tobytes()[0]]).hex()

    def emoji(self, line: Line, x: float, y: int, *, baseline: int, width: int, height: int) -> None:
        """Keeps the colour emoji of a line for the end, when it is known how many colours are left."""
        layer = Image.new("RGBA", (width, height))
        line.emoji(layer, x - int(x), baseline)
        self._emoji.append((layer, int(x), y))

    def png(self) -> bytes:
        """The finished picture."""
        self._paint_emoji()
        return _png(self._rows.tobytes(), self._colours)

    def _ink(self, colour: Colour, over: Colour | None) -> int:
        """The first of the palette places of an ink."""
        ink = self._inks.get((colour, over))
        if ink is None:
            ink = self._inks[colour, over] = len(self._colours)
            tones = [rgb(over)] if over else _middles(self._ramp)
            self._colours += [_mix(tone, rgb(colour), (n + 1) / SHADES) for tone in tones for n in range(SHADES)]
        return ink

    def _tone_offsets(self) -> list[int]:
        steps = len(self._ramp)
        return [min(v * TONES // steps, TONES - 1) * SHADES for v in range(256)]

    def _paint_emoji(self) -> None:
        if not self._emoji:
            return
        left = COLOURS - len(self._colours)
        sheet = Image.new("RGB", (WIDTH, sum(layer.height for layer, _, _ in self._emoji)))
        top = 0
        for layer, x, y in self._emoji:
            box = (x + 1, y, x + 1 + layer.width, y + layer.height)
            under = self._rows.crop(box)
            under.putpalette(_flat(self._colours), "RGB")
            sheet.paste(under.convert("RGB"), (0, top))
            sheet.paste(layer, (0, top), layer)
            top += layer.height
        reduced = sheet.quantize(left, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
        first = len(self._colours)
        palette = reduced.getpalette() or []
        self._colours += [tuple(palette[n : n + 3]) for n in range(0, 3 * left, 3)]  # type: ignore[misc]
        indices = Image.frombytes("L", reduced.size, reduced.tobytes()).point([min(255, v + first) for v in range(256)])
        top = 0
        for layer, x, y in self._emoji:
            part = indices.crop((0, top, layer.width, top + layer.height))
            self._rows.paste(part, (x + 1, y), layer.getchannel("A").point([255 * (v > 8) for v in range(256)]))
            top += layer.height


@lru_cache(maxsize=64)
def rounded(width: int, height: int, radius: int) -> Image.Image:
    """Coverage of a rectangle with rounded corners."""
    scale = _SUPERSAMPLING
    large = Image.new("L", (width * scale, height * scale))
    box = (0, 0, width * scale - 1, height * scale - 1)
    ImageDraw.Draw(large).rounded_rectangle(box, radius * scale, fill=255)
    return large.reduce(scale)


def rgb(colour: Colour) -> Rgb:
    """`#rrggbb` as numbers."""
    red, green, blue = bytes.fromhex(colour[1:])
    return red, green, blue


def _shade(coverage: int) -> int:
    """0 for none, else 1 to `SHADES`."""
    return (coverage * SHADES + 127) // 255


def _mix(under: Rgb, over: Rgb, part: float) -> Rgb:
    red, green, blue = (round(u + (o - u) * part) for u, o in zip(under, over, strict=True))
    return red, green, blue


def _middles(ramp: Sequence[Rgb]) -> list[Rgb]:
    return [ramp[len(ramp) * (2 * n + 1) // (2 * TONES)] for n in range(TONES)]


def _ramp(stops: Sequence[Colour], steps: int) -> tuple[Rgb, ...]:
    places = [n * (len(stops) - 1) / (steps - 1) for n in range(steps)]
    low = [min(int(place), len(stops) - 2) for place in places]
    return tuple(_mix(rgb(stops[n]), rgb(stops[n + 1]), p - n) for n, p in zip(low, places, strict=True))


def _light(light: Light, steps: int) -> Image.Image:
    """One light's part of the ramp for every pixel, looked up by its distance."""
    reached = [int(_strength(light, n / _PER_PIXEL) * (steps - 1) + 0.5) for n in range(MAX_DISTANCE * _PER_PIXEL)]
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


def _flat(colours: Sequence[Rgb]) -> list[int]:
    return [part for colour in colours for part in colour]


def _png(rows: bytes, colours: Sequence[Rgb]) -> bytes:
    header = struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, 3, 0, 0, 0)
    packer = zlib.compressobj(6, memLevel=9)
    pixels = packer.compress(rows) + packer.flush()
    chunks = ((b"IHDR", header), (b"PLTE", bytes(_flat(colours))), (b"IDAT", pixels), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in chunks)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(data, zlib.crc32(kind)))
