"""Font files opened at a size, of which the most recently used are kept open, and the advances of their characters."""

import json
import threading
import zlib
from collections import OrderedDict
from collections.abc import Sequence
from functools import cache, lru_cache
from io import BytesIO
from math import floor
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

from PIL import Image, ImageChops, ImageFont, features

from cardbeat.resources import read_bytes
from cardbeat.typeset.faces.catalogue import ADVANCE_UNITS, FontSubset
from cardbeat.typeset.faces.unshaped import NO_ANCHORS, Anchors, PlacedText, characters_to_draw, placed

FaceKey = tuple[str, int, bool]  # file, size in pixels, and whether Raqm shapes its text

_HEADER, _TRAILER = 10, 8  # bytes of a gzip file without a name, before and after its DEFLATE stream (RFC 1952)
_ADVANCES_KEPT = 4_000  # characters that are not in the catalogue, and pairs of letters
_BOLDER_EM = 0.036, 0.018  # how much wider and higher close strokes of Noto Sans Bold are than those of Regular


class Ink(NamedTuple):
    """Coverage as Pillow returns it, `left` right of and `top` below the origin."""

    bitmap: Any
    left: int
    top: int


class Face(NamedTuple):
    """A font at one size. Several threads may draw with it: Pillow does so under the interpreter's lock."""

    font: ImageFont.FreeTypeFont
    raqm: bool
    """Whether Raqm orders, joins and places the glyphs; else `unshaped` does so for characters."""
    anchors: Anchors = NO_ANCHORS  # where marks stand on letters, for text that Raqm does not shape
    rise_px: float = 0  # height above the baseline, of superscripts and subscripts
    bolder_px: tuple[int, int] = (0, 0)
    """Pixels added to the width of upright strokes, and to the height of level ones."""

    def to_draw(self, graphemes: Sequence[str], rtl: bool) -> str:
        """The string to give to Pillow for graphemes in logical order."""
        return "".join(graphemes) if self.raqm else characters_to_draw(graphemes, rtl)

    def placed(self, text: str) -> list[PlacedText]:
        """The parts of what `to_draw` returned that Pillow draws right, and where they stand."""
        if self.raqm or not self.anchors.marks:
            return [PlacedText(text, 0, 0)]
        return placed(text, self.anchors, self.font.size, self.font.getlength)

    def drawn(self, text: str, rtl: bool, x: float) -> Ink:
        """The ink of a string whose origin is at `x` on the baseline."""
        wider, higher = self.bolder_px
        if not wider:
            return self._plain(text, rtl, x, 0)
        ink = self._plain(text, rtl, x - wider / 2, -higher / 2)
        image = Image.new("L", (ink.bitmap.size[0] + wider, ink.bitmap.size[1] + higher))
        image.paste(ink.bitmap, (0, 0, *ink.bitmap.size))
        # A stroke and its copy, moved by less than its width, leave no gap, and its corners stay sharp.
        for right, down in ((wider, 0), (0, higher)):
            moved = Image.new("L", image.size)
            moved.paste(image, (right, down))
            image = ImageChops.lighter(image, moved)
        return Ink(image.im, ink.left, ink.top)

    def _plain(self, text: str, rtl: bool, x: float, y: float) -> Ink:
        # Pillow takes a direction only with Raqm.
        direction = ("rtl" if rtl else "ltr") if self.raqm else None
        start = x - floor(x), y - floor(y)
        bitmap, (left, top) = self.font.getmask2(text, "L", direction=direction, anchor="ls", start=start)
        return Ink(bitmap, left + floor(x), top + floor(y))


class Faces:
    """Opens faces and keeps the most recently used, at most `max_bytes` of their inflated files. Gives widths in em.

    A line of Han can need more faces than that. So a face that is no longer kept is still found while some text holds
    it. Any thread may call it: what is kept changes under `_lock`.
    """

    def __init__(self, max_bytes: int, shaping: bool | None = None) -> None:
        """`shaping` False leaves Raqm unused even where it is installed."""
        self.shaping = bool(features.check("raqm")) if shaping is None else shaping
        self.bytes = 0  # the inflated files of the faces that are kept
        self._max_bytes = max_bytes
        self._kept: OrderedDict[FaceKey, tuple[ImageFont.FreeTypeFont, int]] = OrderedDict()
        self._alive: WeakValueDictionary[FaceKey, ImageFont.FreeTypeFont] = WeakValueDictionary()
        self._newest: WeakValueDictionary[str, ImageFont.FreeTypeFont] = WeakValueDictionary()
        """By file. It holds the inflated bytes, with which another face of the file opens ten times as fast."""
        self._lock = threading.Lock()
        # `lru_cache` has a lock of its own. Two threads may measure the same once each.
        self.kerning_em = lru_cache(_ADVANCES_KEPT)(self._kerning_em)
        self._measured = lru_cache(_ADVANCES_KEPT)(self._measure)

    def face(self, weight: int, subset: FontSubset, size_px: int, shaped: bool = True) -> Face:
        """The face that draws a subset's part of a text of this size.

        Han and emoji need no shaping, which is slow. Nor do European letters that are drawn one by one: for those
        `shaped` is False.
        """
        raqm = self.shaping and shaped and not subset.square
        font = self.font(subset.file(weight), round(size_px * subset.scale), raqm)
        anchors = NO_ANCHORS if subset.square or self.shaping else anchors_of(subset.name)
        bolder = (0, 0)
        if subset.is_emboldened(weight):
            # At least 1 px, so that a bold letter looks bold at any size.
            bolder = max(1, round(size_px * _BOLDER_EM[0])), round(size_px * _BOLDER_EM[1])
        return Face(font, raqm, anchors, size_px * subset.rise_em, bolder)

    def font(self, file: str, size_px: int, raqm: bool) -> ImageFont.FreeTypeFont:
        """A font file of the package, opened."""
        key = (file, size_px, raqm)
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key][0]
            font = self._alive.get(key)
            return self._open(key) if font is None else font

    def _open(self, key: FaceKey) -> ImageFont.FreeTypeFont:
        """A new face. The caller holds the lock."""
        file, size_px, raqm = key
        other = self._newest.get(file)
        data = other.font_bytes if other else _inflated(file)
        engine = ImageFont.Layout.RAQM if raqm else ImageFont.Layout.BASIC
        font = ImageFont.truetype(BytesIO(data), size_px, layout_engine=engine)
        self._alive[key] = self._newest[file] = font
        self._kept[key] = font, len(data)
        self.bytes += len(data)
        while self.bytes > self._max_bytes:
            self.bytes -= self._kept.popitem(last=False)[1][1]
        return font

    def width_em(self, subset: FontSubset, weight: int, graphemes: Sequence[str], rtl: bool) -> float:
        """The width of graphemes, in logical order, without shaping and kerning."""
        if subset.advance_em:
            return subset.scale * subset.advance_em * sum(map(len, graphemes))
        return subset.scale * self._unshaped_em(subset, weight, graphemes, rtl)

    def shaping_factor(self, subset: FontSubset, weight: int, graphemes: Sequence[str], rtl: bool) -> float:
        """The shaped width of a sample, in parts of its `width_em`; 1 for an empty one. To shape each word is slow."""
        plain = self._unshaped_em(subset, weight, graphemes, rtl)
        if not (plain and self.shaping and subset.shaped):
            return 1.0
        font = self.font(subset.file(weight), ADVANCE_UNITS, raqm=True)
        return float(font.getlength("".join(graphemes), direction="rtl" if rtl else "ltr")) / ADVANCE_UNITS / plain

    def _kerning_em(self, subset: FontSubset, weight: int, pair: str) -> float:
        """The distance added between two characters, mostly less than 0."""
        font = self.font(subset.file(weight), ADVANCE_UNITS, self.shaping)
        return subset.scale * float(font.getlength(pair)) / ADVANCE_UNITS - self.width_em(subset, weight, pair, False)

    def _unshaped_em(self, subset: FontSubset, weight: int, graphemes: Sequence[str], rtl: bool) -> float:
        characters = characters_to_draw(graphemes, rtl)
        return sum(self._advance(subset, weight, character) / ADVANCE_UNITS for character in characters)

    def _advance(self, subset: FontSubset, weight: int, character: str) -> float:
        kept = subset.advance(character, weight)
        return self._measured(subset.file(weight), character) if kept is None else kept

    def _measure(self, file: str, character: str) -> float:
        """The advance of a character that the font does not have, in parts of the size."""
        return float(self.font(file, ADVANCE_UNITS, raqm=False).getlength(character))


@cache
def anchors_of(name: str) -> Anchors:
    """Where the marks of a subset of this name stand on its letters."""
    try:
        return Anchors(**json.loads(_inflated(f"{name}.json.gz")))
    except OSError:
        return NO_ANCHORS


def _inflated(file: str) -> bytes:
    """The content of a gzip file of the package, unchecked. Raises `OSError` if there is none."""
    data = read_bytes(f"fonts/{file}")
    return zlib.decompress(data[_HEADER:-_TRAILER], wbits=-15, bufsize=int.from_bytes(data[-4:], "little"))
