"""Font files opened at a size, some of them kept open."""

import threading
import zlib
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from weakref import WeakValueDictionary

from PIL import ImageFont, features

from cardbeat.resources import read_bytes
from cardbeat.typeset import unshaped
from cardbeat.typeset.anchors import NO_ANCHORS, Anchors, PlacedText, placed
from cardbeat.typeset.catalogue import FontSubset

FaceKey = tuple[str, int, bool]
"""File, size in pixels, and whether Raqm shapes its text."""


_HEADER, _TRAILER = 10, 8
"""Bytes of a gzip file without a name, before and after its DEFLATE stream (RFC 1952)."""
_BOLDER_EM = 0.036, 0.018
"""About what the strokes of Noto Sans Bold are wider and higher than those of Regular, where they stand close."""


@dataclass(frozen=True, slots=True)
class Face:
    """A font at one size. Several threads may draw with it: Pillow holds the interpreter's lock meanwhile."""

    font: ImageFont.FreeTypeFont
    raqm: bool
    """Raqm orders, joins and places the glyphs; else `unshaped` and `anchors` do, as far as characters go."""
    anchors: Anchors = NO_ANCHORS
    """Where marks stand on letters, for text that Raqm does not shape."""
    rise_px: float = 0
    """How far above the baseline it is drawn."""
    bolder_px: tuple[int, int] = (0, 0)
    """How much wider its upright strokes are to be drawn, and how much higher its level ones."""

    def to_draw(self, graphemes: Sequence[str], rtl: bool) -> str:
        """The string to give to Pillow for graphemes in logical order."""
        return "".join(graphemes) if self.raqm else unshaped.characters_to_draw(graphemes, rtl)

    def placed(self, text: str) -> list[PlacedText]:
        """What `to_draw` returned, in parts that Pillow draws right, and where they stand."""
        if self.raqm or not self.anchors.marks:
            return [PlacedText(text, 0, 0)]
        return placed(text, self.anchors, self.font.size, self.font.getlength)

    def direction(self, rtl: bool) -> str | None:
        """Pillow's argument of this name, which it takes only with Raqm."""
        return ("rtl" if rtl else "ltr") if self.raqm else None


class Faces:
    """Opens faces and keeps the most recently used, at most `max_bytes` of their inflated files.

    A face that some text still holds is found again although it is no longer kept: a line of Han can need more faces
    than that. Any thread may call it: what is kept changes under `_lock`.
    """

    def __init__(self, max_bytes: int, shaping: bool | None = None) -> None:
        """`shaping` False does without Raqm even where it is there."""
        self.shaping = bool(features.check("raqm")) if shaping is None else shaping
        self.bytes = 0
        """Of the inflated files of the faces that are kept."""
        self._max_bytes = max_bytes
        self._kept: OrderedDict[FaceKey, tuple[ImageFont.FreeTypeFont, int]] = OrderedDict()
        self._alive: WeakValueDictionary[FaceKey, ImageFont.FreeTypeFont] = WeakValueDictionary()
        self._newest: WeakValueDictionary[str, ImageFont.FreeTypeFont] = WeakValueDictionary()
        """By file: holds it inflated, so that another face of it opens ten times as fast."""
        self._lock = threading.Lock()
        self._anchors: dict[str, Anchors] = {}
        """By the subset's name. Any thread writes without a lock: all write the same."""

    def face(self, subset: FontSubset, weight: int, size_px: int, shaped: bool = True) -> Face:
        """The face that draws a subset's part of a text of this size. Han and emoji need no shaping, which is slow.

        Nor do European letters that are drawn one by one, for which `shaped` is False.
        """
        raqm = self.shaping and shaped and not subset.square
        font = self.font(subset.file(weight), round(size_px * subset.scale), raqm)
        anchors = NO_ANCHORS if subset.square or self.shaping else self.anchors(subset)
        bolder = _bolder_px(size_px) if subset.is_emboldened(weight) else (0, 0)
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
        """The caller holds the lock."""
        file, size_px, raqm = key
        other = self._newest.get(file)
        data = other.font_bytes if other else _inflated(file)
        font = self._alive[key] = self._newest[file] = _opened(data, size_px, raqm)
        length = len(data)
        self._kept[key] = font, length
        self.bytes += length
        while self.bytes > self._max_bytes:
            self.bytes -= self._kept.popitem(last=False)[1][1]
        return font

    def anchors(self, subset: FontSubset) -> Anchors:
        """Where the marks of a subset stand on its letters."""
        if subset.name not in self._anchors:
            try:
                anchors = Anchors.read(_inflated(f"{subset.name}.json.gz"))
            except OSError:
                anchors = NO_ANCHORS
            self._anchors[subset.name] = anchors
        return self._anchors[subset.name]


def _bolder_px(size_px: int) -> tuple[int, int]:
    """Of whole pixels, so that one drawing is enough: a bold letter is seen to be one in any size."""
    return max(1, round(size_px * _BOLDER_EM[0])), round(size_px * _BOLDER_EM[1])


def _inflated(file: str) -> bytes:
    """A compressed file of the package, whose check sum is not looked at. Raises `OSError` if there is none."""
    data = read_bytes(f"fonts/{file}")
    return zlib.decompress(data[_HEADER:-_TRAILER], wbits=-15, bufsize=int.from_bytes(data[-4:], "little"))


def _opened(data: bytes, size_px: int, raqm: bool) -> ImageFont.FreeTypeFont:
    engine = ImageFont.Layout.RAQM if raqm else ImageFont.Layout.BASIC
    return ImageFont.truetype(BytesIO(data), size_px, layout_engine=engine)
