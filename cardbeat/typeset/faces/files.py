"""The font files of the package: what each covers; and opened at a size, measuring and drawing."""

import json
import struct
import zlib
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache
from io import BytesIO
from typing import Any

from PIL import ImageDraw, ImageFont

from cardbeat.files import read_bytes, read_text
from cardbeat.typeset.faces.unshaped import (
    NO_ANCHORS,
    Anchors,
    PlacedText,
    characters_to_draw,
    placed,
)

_GZIP = 31
"""What `zlib` calls files of gzip."""
_MEASURED_PX = 1000
"""The size at which characters are measured."""
_SAMPLED_PX = 100
"""The size at which whole texts are measured."""
_EMBOLDENED_FROM = 200
"""A difference of weights that is seen."""
_STROKE_EM = 0.018
"""Half of how much wider strokes of Noto Sans Bold are than those of Regular."""
_SQUARE_ASCENT_EM = 0.92
_SQUARE_DESCENT_EM = 0.16
"""The height of Han and emoji: of their squares, not their ink, so that lines are equal."""


class FontFile:
    """A part of a font in one or more weights, which cover the same characters.

    Each weight is a gzip file of TrueType. Two are equal if they are one.
    """

    def __init__(
        self, listed: Sequence[Any], boundaries: Sequence[int]
    ) -> None:
        """`listed` is an entry of `fonts/index.json`, as `fonts.build.index` writes it.

        `boundaries` are sorted codepoints: at even places a covered range begins, at odd ones it
        ends.
        """
        kinds: str = listed[2]
        self.name: str = listed[0]
        self.weights: list[int] = listed[1]
        self.boundaries = boundaries
        self.regions: str = listed[3]
        """Letters of `han.REGIONS` whose Han shapes these are; empty for other scripts."""
        self.advance_em: float = listed[4]
        """The advance of every character if it is the same, else 0."""
        self.is_serif = "serif" in kinds
        """Whether it is for headlines with serifs, or what other scripts have in their place."""
        self.is_shaped = "shaped" in kinds
        """Whether letters join, move or carry marks, as only a shaping engine knows how."""
        self.is_emoji = "emoji" in kinds
        self.is_square = bool(self.regions) or self.is_emoji
        """Whether characters are drawn as they are, each in a square: Han and emoji."""
        self.has_letters = "letters" in kinds
        """Whether it is made bolder where it lacks a bold weight: not signs and emoji."""

    def covers(self, character: str) -> bool:
        return bisect_right(self.boundaries, ord(character)) % 2 == 1

    def nearest(self, weight: int) -> int:
        return min(self.weights, key=lambda own: abs(own - weight))

    def path(self, weight: int) -> str:
        """The file of the nearest weight."""
        return f"{self.name}-{self.nearest(weight)}.ttf.gz"


class Coverage:
    """Font files in an order of preference. The first that has a character is found in one step."""

    def __init__(self, fonts: Sequence[FontFile]) -> None:
        self._fonts = fonts
        # For each codepoint the place of its first font, counted from 1; 0 where there is none.
        end = max(font.boundaries[-1] for font in fonts)
        self._places = array("H", bytes(2 * end))
        for place in range(len(fonts), 0, -1):
            boundaries = fonts[place - 1].boundaries
            for start, stop in zip(
                boundaries[::2], boundaries[1::2], strict=True
            ):
                self._places[start:stop] = array("H", [place]) * (
                    stop - start
                )

    def all_with(self, text: str) -> Iterator[FontFile]:
        """The fonts that have all characters of a text, in their order."""
        places = [self._place(character) for character in text]
        if not all(places):
            return
        for font in self._fonts[max(places) - 1 :]:
            if all(map(font.covers, text)):
                yield font

    def _place(self, character: str) -> int:
        codepoint = ord(character)
        if codepoint >= len(self._places):
            return 0
        return self._places[codepoint]


def read_catalogue() -> list[FontFile]:
    """All font files in order of preference."""
    data = read_bytes("fonts/index.bin")
    numbers = struct.unpack(f"<{len(data) // 4}I", data)
    fonts = []
    start = 0
    for listed in json.loads(read_text("fonts/index.json")):
        end = start + listed[-1]
        fonts.append(FontFile(listed, numbers[start:end]))
        start = end
    return fonts


class Face:
    """A font file in one weight. `shaping`: Raqm orders, joins and places its letters.

    Han and emoji need no shaping, which is slow.
    """

    def __init__(
        self, font: FontFile, weight: int, shaping: bool
    ) -> None:
        self.font = font
        self._path = font.path(weight)
        self._raqm = shaping and not font.is_square
        self._anchors = NO_ANCHORS if shaping else anchors_of(font.name)
        self._is_emboldened = (
            font.has_letters
            and font.nearest(weight) + _EMBOLDENED_FROM <= weight
        )
        self._shaping = shaping

    def opened(self, size_px: int) -> ImageFont.FreeTypeFont:
        return _opened(self._path, size_px, self._raqm)

    def advance_em(self, grapheme: str) -> float:
        """The width of a grapheme by itself, as the sum of its characters."""
        if self.font.advance_em:
            return self.font.advance_em * len(grapheme)
        return sum(
            _advance_em(self._path, character) for character in grapheme
        )

    def extent(self, text: str, rtl: bool) -> tuple[float, float, float]:
        """The width of a text as one run, and its height above and below the baseline, in em."""
        if self.font.is_square:
            return (
                self.advance_em(text),
                _SQUARE_ASCENT_EM,
                _SQUARE_DESCENT_EM,
            )
        opened = self.opened(_SAMPLED_PX)
        # At another size, the ink may reach a pixel farther.
        width = 0.0
        ascent = 1.0
        descent = 1.0
        for part, x, y in self._parts(text, _SAMPLED_PX, rtl):
            box = opened.getbbox(
                part, direction=self._direction(rtl), anchor="ls"
            )
            width = max(width, x + box[2])
            ascent = max(ascent, 1 - box[1] - y)
            descent = max(descent, 1 + box[3] + y)
        return (
            width / _SAMPLED_PX,
            ascent / _SAMPLED_PX,
            descent / _SAMPLED_PX,
        )

    def draw(
        self,
        onto: ImageDraw.ImageDraw,
        origin: tuple[int, int],
        text: str,
        size_px: int,
        rtl: bool,
    ) -> None:
        """Draw a text, given in logical order, from a point of the baseline on."""
        # At least 1 px, to be seen at any size.
        stroke_px = (
            max(1, round(size_px * _STROKE_EM))
            if self._is_emboldened
            else 0
        )
        for part, right, below in self._parts(text, size_px, rtl):
            onto.text(
                (round(origin[0] + right), round(origin[1] + below)),
                part,
                fill=255,
                font=self.opened(size_px),
                anchor="ls",
                direction=self._direction(rtl),
                stroke_width=stroke_px,
            )

    def length_px(self, text: str, size_px: int, rtl: bool) -> float:
        """The width of a text as it is drawn: marks that stand on letters have none."""
        if self.font.is_square:
            return self.advance_em(text) * size_px
        marks = self._anchors.marks
        letters = "".join(
            c for c in self._to_draw(text, rtl) if c not in marks
        )
        return float(
            self.opened(size_px).getlength(
                letters, direction=self._direction(rtl)
            )
        )

    def _parts(
        self, text: str, size_px: int, rtl: bool
    ) -> list[PlacedText]:
        length = self.opened(size_px).getlength
        return placed(
            self._to_draw(text, rtl), self._anchors, size_px, length
        )

    def _to_draw(self, text: str, rtl: bool) -> str:
        if self._shaping:
            return text
        return characters_to_draw(text, rtl)

    def _direction(self, rtl: bool) -> str | None:
        """Pillow takes a direction only with Raqm."""
        if not self._raqm:
            return None
        return "rtl" if rtl else "ltr"


@lru_cache(256)
def anchors_of(name: str) -> Anchors:
    """Where the marks of a font stand on its letters."""
    try:
        return Anchors(**json.loads(_inflated(f"{name}.json.gz")))
    except OSError:
        return NO_ANCHORS


@lru_cache(8_000)
def _advance_em(path: str, character: str) -> float:
    font = _opened(path, _MEASURED_PX, False)
    length: float = font.getlength(character)
    return length / _MEASURED_PX


@lru_cache(128)
def _opened(
    path: str, size_px: int, raqm: bool
) -> ImageFont.FreeTypeFont:
    engine = ImageFont.Layout.RAQM if raqm else ImageFont.Layout.BASIC
    return ImageFont.truetype(
        BytesIO(_inflated(path)), size_px, layout_engine=engine
    )


@lru_cache(48)
def _inflated(path: str) -> bytes:
    """The content of a gzip file of `fonts`. Raises `OSError` if there is none."""
    return zlib.decompress(read_bytes(f"fonts/{path}"), wbits=_GZIP)
