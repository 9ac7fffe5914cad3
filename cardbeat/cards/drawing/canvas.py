"""A card while it is painted, in palette indices: one byte a pixel, as in the PNG.

The palette holds the background's ramp, then for each ink its shades over each part of that ramp.
So nothing is quantised but emoji, which share the indices that are left. Those that would not be
seen, such as black ones on a dark card, are listed in `fonts/emoji_contrast.json`.
"""

import json
import struct
import zlib
from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import chain
from math import cos, pi, sin
from typing import NamedTuple

from PIL import Image, ImageChops

from cardbeat.cards.drawing.colours import (
    SHADES,
    Colour,
    Rgb,
    Theme,
    hex_of,
    luminance,
    mix,
    rgb,
    shades,
)
from cardbeat.cards.drawing.layout import HEIGHT, WIDTH
from cardbeat.files import read_bytes, read_text

SIGNATURE = b"\x89PNG\r\n\x1a\n"
LEVEL = 2
"""Takes a quarter of the time of zlib's default, 6, and makes a quarter more bytes."""
DENSEST = 6
_MEMORY = 7
"""Less than zlib's default, 8, is faster to clear, and the file no longer."""
_BAND_ROWS = 9
"""Rows of the background that are compressed once, for all cards that leave them empty."""
_PART_ROWS = 54
"""Rows that are compressed at a time, of 65 KB together: of more, zlib moves all that it remembers,
again and again, which takes a fifth of the time."""
_RAW = -15
"""What `zlib` calls a stream without a beginning and an end."""
_BEGINNING = b"\x78\x5e"
_END = b"\x03\x00"

_OUTLINE_EM = 0.03
_DIRECTIONS = [(cos(n * pi / 6), sin(n * pi / 6)) for n in range(12)]

TONES = 3
"""Parts of the background's ramp that an ink is mixed with."""

COLOURS = 256
MAX_BYTES = 99_000
"""Limit of the PNG. With the seal it stays under 100 KB, as `docs/cards.md` promises."""
_RUNGS = ((SHADES, COLOURS), (4, 64), (4, 16), (1, 4))
"""Shades of an ink and colours of the emoji, until a file is short enough."""

SHADE_OF = [(coverage * SHADES + 127) // 255 for coverage in range(256)]
_SEEN = [255 * (alpha > 8) for alpha in range(256)]


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
    bands: list[bytes]
    """The same rows, `_BAND_ROWS` at a time."""


def empty_card(theme: Theme, mirrored: bool) -> Background:
    """The background of a theme's cards."""
    data = rows_of(read_bytes(f"light/{theme.light}.png"))
    rows = Image.frombytes("L", (WIDTH + 1, HEIGHT), data)
    if mirrored:
        picture = rows.crop((1, 0, WIDTH + 1, HEIGHT))
        rows.paste(
            picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT), (1, 0)
        )
    colours = ramp_of(theme)
    if theme.panel:
        colours += shades((rgb(theme.ramp[0]),), theme.panel)
    parts = [
        step * TONES // theme.steps * (step < theme.steps)
        for step in range(256)
    ]
    tones = rows.point([part * SHADES for part in parts])
    return Background(rows, tones, colours, theme.steps, [])


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


class Canvas:
    """One card. It starts as the empty background; `png` finishes it."""

    def __init__(self, background: Background) -> None:
        self._background = background
        self._image = background.rows.copy()
        self._colours = list(background.colours)
        self._inks: dict[tuple[Colour, Colour | None], int] = {}
        self._emoji: list[tuple[Image.Image, int, int]] = []

    def paint(
        self,
        coverage: Image.Image,
        x: int,
        y: int,
        colour: Colour,
        over: Colour | None = None,
    ) -> None:
        """Paint a colour where there is coverage, over the background or over the colour `over`."""
        box = (x + 1, y, x + 1 + coverage.width, y + coverage.height)
        indices = coverage.point(_indices_from(self._ink(colour, over)))
        if over is None:
            indices = ImageChops.add_modulo(
                indices, self._background.tones.crop(box)
            )
        # The inks come later in the palette than what is under them.
        self._image.paste(
            ImageChops.lighter(self._image.crop(box), indices), box
        )

    def colour_at(self, x: int, y: int) -> Colour:
        """The background's colour there."""
        (index,) = self._background.rows.crop(
            (x + 1, y, x + 2, y + 1)
        ).tobytes()
        return hex_of(self._background.colours[index])

    def background(self) -> Background:
        """What was painted, without emoji, as the background of other cards."""
        rows = self._image.tobytes()
        size = _BAND_ROWS * (WIDTH + 1)
        return self._background._replace(
            rows=self._image,
            colours=self._colours,
            bands=[
                rows[start : start + size]
                for start in range(0, len(rows), size)
            ],
        )

    def add_emoji(self, picture: Image.Image, x: int, y: int) -> None:
        """Add an "RGBA" picture, which `png` paints when it knows how many colours are left."""
        self._emoji.append((picture, x, y))

    def png(self) -> bytes:
        """The finished picture, at most `MAX_BYTES` long."""
        inks_end = len(self._colours)
        if self._emoji:
            self._paint_emoji()
        rows = self._image.tobytes()
        bands = self._background.bands
        picture = png_file(_flat(self._colours), rows, bands)
        for shade_count, emoji_count in _RUNGS:
            if len(picture) <= MAX_BYTES:
                break
            table, colours = self._reduced(
                shade_count, emoji_count, inks_end
            )
            # The filter types of the rows are 0, which stands for itself.
            reduced = rows.translate(table)
            picture = png_file(_flat(colours), reduced, bands, DENSEST)
        return picture

    def _reduced(
        self, shade_count: int, emoji_count: int, inks_end: int
    ) -> tuple[bytes, list[Rgb]]:
        """A table from palette indices to those that replace them, and the palette.

        In an ink, the strongest of neighbouring shades replaces them; emoji keep so many colours.
        """
        table = list(range(COLOURS))
        each = SHADES // shade_count
        first_ink = len(self._background.colours)
        for index in range(first_ink, inks_end):
            table[index] = index + each - 1 - (index - first_ink) % each
        emoji = self._colours[inks_end:]
        if len(emoji) <= emoji_count:
            return bytes(table), self._colours
        # Each colour counts once, however many pixels have it, so that rare ones stay different.
        row = Image.frombytes("RGB", (len(emoji), 1), _flat(emoji))
        fewer = row.quantize(emoji_count, Image.Quantize.MEDIANCUT)
        table[inks_end : len(self._colours)] = [
            inks_end + index for index in fewer.tobytes()
        ]
        return bytes(table), self._colours[:inks_end] + _palette(
            fewer, emoji_count
        )

    def _ink(self, colour: Colour, over: Colour | None) -> int:
        """The first index of an ink over one colour, or over each part of the ramp."""
        if (colour, over) not in self._inks:
            self._inks[colour, over] = len(self._colours)
            ramp = self._background.colours[: self._background.steps]
            tones = [
                ramp[len(ramp) * (2 * n + 1) // (2 * TONES)]
                for n in range(TONES)
            ]
            self._colours += shades(
                (rgb(over),) if over else tuple(tones), colour
            )
        return self._inks[colour, over]

    def _paint_emoji(self) -> None:
        """Paint all emoji, reduced together to the colours that are left."""
        first = len(self._colours)
        left = COLOURS - first
        reduced = self._sheet().quantize(
            left, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE
        )
        self._colours += _palette(reduced, left)
        indices = Image.frombytes("L", reduced.size, reduced.tobytes())
        indices = indices.point(
            [min(index + first, COLOURS - 1) for index in range(256)]
        )
        top = 0
        for picture, x, y in self._emoji:
            part = indices.crop(
                (0, top, picture.width, top + picture.height)
            )
            self._image.paste(
                part, (x + 1, y), picture.getchannel("A").point(_SEEN)
            )
            top += picture.height

    def _sheet(self) -> Image.Image:
        """All emoji below each other, each over the picture that is under it."""
        width = max(picture.width for picture, _, _ in self._emoji)
        sheet = Image.new(
            "RGB",
            (width, sum(picture.height for picture, _, _ in self._emoji)),
        )
        palette = _flat(self._colours)
        top = 0
        for picture, x, y in self._emoji:
            part = self._image.crop(
                (x + 1, y, x + 1 + picture.width, y + picture.height)
            )
            under = Image.frombytes("P", picture.size, part.tobytes())
            under.putpalette(palette)
            sheet.paste(under.convert("RGB"), (0, top))
            sheet.paste(picture, (0, top), picture)
            top += picture.height
        return sheet


@lru_cache(COLOURS)
def _indices_from(first: int) -> list[int]:
    """For each coverage the index of its shade of an ink whose first index that is; 0 for none."""
    return [first - 1 + shade if shade else 0 for shade in SHADE_OF]


def _palette(image: Image.Image, count: int) -> list[Rgb]:
    parts = (image.getpalette() or [])[: 3 * count]
    return list(zip(parts[::3], parts[1::3], parts[2::3], strict=True))


def _flat(colours: Sequence[Rgb]) -> bytes:
    return bytes(chain.from_iterable(colours))


def needs_ink(drawn: str) -> bool:
    """Whether it is a black sign, such as a tick, that is drawn in the colour of the text."""
    return drawn in _judged()["ink"]


def needs_outline(drawn: str, ink: Colour) -> bool:
    """Whether an emoji would not be seen beside text of that colour."""
    return (
        drawn
        in _judged()["dark" if luminance(rgb(ink)) > 0.2 else "light"]
    )


def outlined(
    picture: Image.Image, size_px: int
) -> tuple[Image.Image, int]:
    """Coverage of an emoji with a line around it, and the width of that line."""
    width = max(2, round(_OUTLINE_EM * size_px))
    alpha = Image.new(
        "L", (picture.width + 2 * width, picture.height + 2 * width)
    )
    alpha.paste(picture.getchannel("A"), (width, width))
    grown = alpha
    for x, y in _DIRECTIONS:
        moved = ImageChops.offset(
            alpha, round(x * width), round(y * width)
        )
        grown = ImageChops.lighter(grown, moved)
    return grown, width


@cache
def _judged() -> dict[str, frozenset[str]]:
    found = json.loads(read_text("fonts/emoji_contrast.json"))
    return {name: frozenset(drawn) for name, drawn in found.items()}


def png_file(
    palette: bytes,
    rows: bytes,
    background: Sequence[bytes] = (),
    level: int = LEVEL,
) -> bytes:
    """A card as a PNG with a palette, one byte a pixel. Each row begins with its filter type, 0."""
    header = struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, 3, 0, 0, 0)
    picture = (
        SIGNATURE + _chunk(b"IHDR", header) + _chunk(b"PLTE", palette)
    )
    return (
        picture
        + _chunk(b"IDAT", _compressed(rows, background, level))
        + _chunk(b"IEND", b"")
    )


def rows_of(png: bytes) -> bytes:
    """The rows of a picture that `png_file` wrote."""
    start = png.index(b"IDAT")
    length = int.from_bytes(png[start - 4 : start], "big")
    return zlib.decompress(png[start + 4 : start + 4 + length])


def _compressed(
    data: bytes, background: Sequence[bytes], level: int
) -> bytes:
    """Data in parts, each compressed by itself: bands that are as in the background only once."""
    parts = [_BEGINNING]
    view = memoryview(data)
    start = 0
    end = 0
    for band in background:
        is_empty = data.startswith(band, end)
        if start < end and (
            is_empty or end - start == _PART_ROWS * (WIDTH + 1)
        ):
            parts.append(_packed(view[start:end], level))
            start = end
        end += len(band)
        if is_empty:
            parts.append(_packed_band(band))
            start = end
    if start < len(data):
        parts.append(_packed(view[start:], level))
    return b"".join((*parts, _END, struct.pack(">I", zlib.adler32(data))))


def _packed(data: bytes | memoryview, level: int) -> bytes:
    packer = zlib.compressobj(level, wbits=_RAW, memLevel=_MEMORY)
    return packer.compress(data) + packer.flush(zlib.Z_SYNC_FLUSH)


@lru_cache(4 * HEIGHT // _BAND_ROWS)
def _packed_band(band: bytes) -> bytes:
    return _packed(band, DENSEST)


def _chunk(kind: bytes, data: bytes) -> bytes:
    checksum = zlib.crc32(data, zlib.crc32(kind))
    return (
        struct.pack(">I", len(data))
        + kind
        + data
        + struct.pack(">I", checksum)
    )
