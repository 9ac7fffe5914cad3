"""The font files of the package: the characters that each covers, and its weights."""

import json
import struct
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Any

from cardbeat.files import read_bytes, read_text


class FontFile:
    """A part of a font in one or more weights, which cover the same characters.

    Each weight is a gzip file of TrueType. Two are equal if they are one.
    """

    def __init__(self, listed: Sequence[Any], boundaries: Sequence[int]) -> None:
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
            for start, stop in zip(boundaries[::2], boundaries[1::2], strict=True):
                self._places[start:stop] = array("H", [place]) * (stop - start)

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
        return self._places[codepoint] if codepoint < len(self._places) else 0


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
