"""A card while it is painted, in palette indices: one byte a pixel, as in the PNG.

The palette holds the background's ramp, then for each ink its shades over each part of that ramp. So nothing is
quantised but emoji, which share the indices that are left.
"""

from bisect import bisect_left
from collections.abc import Sequence

from PIL import Image

from cardbeat.cards.drawing.background import STRIDE, Background, rows_of
from cardbeat.cards.drawing.colours import SHADES, Rgb, rgb, shades
from cardbeat.cards.drawing.layout import HEIGHT, WIDTH
from cardbeat.cards.drawing.png import BAND_ROWS, DENSEST, LEVEL, png_file, zlib_stream
from cardbeat.cards.drawing.themes import Colour

TONES = 3  # parts of the background's ramp that an ink is mixed with
COLOURS = 256
MAX_BYTES = 99_000
"""Limit of the PNG. With the seal it stays under 100 KB, as `docs/cards.md` promises."""
REDUCED = ((SHADES, COLOURS), (4, COLOURS), (1, COLOURS), (4, 64), (4, 32), (4, 24), (4, 16), (4, 8), (1, 4))
"""Shades of an ink and colours of the emoji, from most to least. With the least any picture is short enough."""

SHADE_OF = [(coverage * SHADES + 127) // 255 for coverage in range(256)]
PAINTED = [255 * (shade > 0) for shade in SHADE_OF]
_SEEN = [255 * (alpha > 8) for alpha in range(256)]
_DENSER = 1.14
"""A file up to 1.14 times the limit fits it at level `DENSEST`, which takes twice as long as `LEVEL`."""
_LITTLE, _DENSER_LEVEL = 1.05, 5  # the same for this level, which takes 1.5 times as long


class Canvas:
    """One card, in one thread. It starts as the empty background; `png` finishes it."""

    def __init__(self, background: Background) -> None:
        self._background = background
        self._empty = rows_of(background)
        self._rows = self._empty.copy()
        self._changed: set[int] = set()
        self._colours = list(background.colours)
        self._inks: dict[tuple[Colour, Colour | None], range] = {}
        self._emoji: list[tuple[Image.Image, int, int]] = []
        self._first_emoji_index = COLOURS
        steps = background.steps
        self._tone_offsets = [min(index * TONES // steps, TONES - 1) * SHADES for index in range(256)]

    def paint(self, coverage: Image.Image, x: int, y: int, colour: Colour, over: Colour | None = None) -> None:
        """Paint a colour where there is coverage, over the background or over a shape of the colour `over`."""
        before = self._ink(colour, over).start - 1
        # `Image.point` would round each table again, which takes longer than to paint a line.
        covered, empty = coverage.im, self._empty.im
        indices = covered.point([before + shade if shade else 0 for shade in SHADE_OF], None)
        box = (x + 1, y, x + 1 + coverage.width, y + coverage.height)
        if over is None:
            indices = indices.chop_add(empty.crop(box).point(self._tone_offsets, None), 1.0, 0)
        self._rows.im.paste(indices, box, covered.point(PAINTED, None))
        self._note(y, coverage.height)

    def colour_at(self, x: int, y: int) -> Colour:
        """The background's colour there."""
        (index,) = self._empty.crop((x + 1, y, x + 2, y + 1)).tobytes()
        return self._hex(index)

    def add_emoji(self, layer: Image.Image, x: int, y: int) -> None:
        """Add an "RGBA" layer, which `png` paints when it knows how many colours are left."""
        box = layer.getbbox()
        if box:
            self._emoji.append((layer.crop(box), x + box[0], y + box[1]))

    def png(self) -> bytes:
        """The finished picture, at most `MAX_BYTES` long."""
        if self._emoji:
            self._paint_emoji()
        rows = self._rows.tobytes()
        picture = self._file(rows, self._colours)
        return picture if len(picture) <= MAX_BYTES else self._denser(rows, len(picture))

    def _denser(self, rows: bytes, length: int) -> bytes:
        """A picture that was too long, compressed more and, if that is not enough, in fewer colours."""
        if length <= MAX_BYTES * _LITTLE:
            picture = self._file(rows, self._colours, _DENSER_LEVEL)
            if len(picture) <= MAX_BYTES:
                return picture
        first = 0 if length <= MAX_BYTES * _DENSER else self._first_short(rows)
        for count, emoji_colours in REDUCED[first:]:
            table, colours = self._merged(SHADES // count, emoji_colours)
            picture = self._file(rows.translate(table), colours, DENSEST)
            if len(picture) <= MAX_BYTES:
                break
        return picture

    def _first_short(self, rows: bytes) -> int:
        """The place in `REDUCED` of the most colours with which `DENSEST` will be enough."""

        def is_short(place: int) -> bool:
            table, _ = self._merged(SHADES // REDUCED[place][0], REDUCED[place][1])
            return len(self._packed(rows.translate(table))) <= MAX_BYTES * _DENSER

        return bisect_left(range(len(REDUCED) - 1), True, lo=1, key=is_short)

    def _file(self, rows: bytes, colours: Sequence[Rgb], level: int = LEVEL) -> bytes:
        return png_file(WIDTH, HEIGHT, _flat(colours), self._packed(rows, level))

    def _packed(self, rows: bytes, level: int = LEVEL) -> bytes:
        return zlib_stream(rows, STRIDE * BAND_ROWS, self._background.bands, self._changed, level)

    def _merged(self, count: int, emoji_colours: int) -> tuple[bytes, list[Rgb]]:
        """A table from palette indices to those that replace them, and the palette's colours.

        In an ink, the strongest of `count` neighbouring shades replaces them; emoji keep `emoji_colours` colours.
        """
        table = list(range(COLOURS))
        for ink in self._inks.values():
            for index in ink:
                table[index] = index - (index - ink.start) % count + count - 1
        first = self._first_emoji_index
        emoji = self._colours[first:]
        if len(emoji) <= emoji_colours:
            return bytes(table), self._colours
        # Each colour counts once, however many pixels have it, so that rare ones stay different.
        row = Image.frombytes("RGB", (len(emoji), 1), _flat(emoji))
        reduced = row.quantize(emoji_colours, Image.Quantize.MEDIANCUT)
        table[first : len(self._colours)] = [first + colour for colour in reduced.tobytes()]
        return bytes(table), self._colours[:first] + _palette(reduced, emoji_colours)

    def _hex(self, index: int) -> Colour:
        return "#" + bytes(self._background.colours[index]).hex()

    def _ink(self, colour: Colour, over: Colour | None) -> range:
        """The palette indices of an ink: over one colour, or over the middle colour of each part of the ramp."""
        if (colour, over) not in self._inks:
            ramp, first = self._background.colours[: self._background.steps], len(self._colours)
            tones = tuple(ramp[len(ramp) * (2 * n + 1) // (2 * TONES)] for n in range(TONES))
            self._colours += shades((rgb(over),) if over else tones, colour)
            self._inks[colour, over] = range(first, len(self._colours))
        return self._inks[colour, over]

    def _note(self, top: int, height: int) -> None:
        """Rows were painted."""
        self._changed.update(range(top // BAND_ROWS, (top + height - 1) // BAND_ROWS + 1))

    def _paint_emoji(self) -> None:
        """Paint all emoji, reduced together to the colours that are left, over the picture under each."""
        first = len(self._colours)
        left = COLOURS - first
        width = max(layer.width for layer, _, _ in self._emoji)
        tops = [0]
        for layer, _, _ in self._emoji:
            tops.append(tops[-1] + layer.height)
        sheet = Image.new("RGB", (width, tops[-1]))
        for (layer, x, y), top in zip(self._emoji, tops, strict=False):
            sheet.paste(self._seen(x, y, layer.size), (0, top))
            sheet.paste(layer, (0, top), layer)
        reduced = sheet.quantize(left, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
        self._first_emoji_index = first
        self._colours += _palette(reduced, left)
        indices = Image.frombytes("L", reduced.size, reduced.tobytes()).point([min(v + first, 255) for v in range(256)])
        for (layer, x, y), top in zip(self._emoji, tops, strict=False):
            part = indices.crop((0, top, layer.width, top + layer.height))
            self._rows.paste(part, (x + 1, y), layer.getchannel("A").point(_SEEN))
            self._note(y, layer.height)

    def _seen(self, x: int, y: int, size: tuple[int, int]) -> Image.Image:
        """A part of the picture so far, as "RGB"."""
        part = self._rows.crop((x + 1, y, x + 1 + size[0], y + size[1]))
        seen = Image.frombytes("P", size, part.tobytes())
        seen.putpalette(_flat(self._colours))
        return seen.convert("RGB")


def _palette(image: Image.Image, count: int) -> list[Rgb]:
    parts = (image.getpalette() or [])[: 3 * count]
    return list(zip(parts[::3], parts[1::3], parts[2::3], strict=True))


def _flat(colours: Sequence[Rgb]) -> bytes:
    return bytes(part for colour in colours for part in colour)
