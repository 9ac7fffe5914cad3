"""The font files of the package: which characters each covers, and in which weights it is there."""

import json
import sys
from array import array
from bisect import bisect_right
from dataclasses import dataclass

from cardbeat.resources import read_bytes, read_text

_EMOJI = "emoji"
_SERIF = "source-serif"


@dataclass(frozen=True, slots=True, eq=False)
class FontSubset:
    """A part of a font in one or more weights, each a WOFF2 file, which cover the same characters."""

    name: str
    weights: tuple[int, ...]
    shaped: bool
    """Letters join, move or carry marks: only a shaping engine knows their width."""
    regions: str
    """Of Han: whose shapes these are, one or more of the letters in `han.REGIONS`; else empty."""
    advance_em: float
    """The advance of every character, where it is one for all; else 0."""
    boundaries: "array[int]"
    """Sorted codepoints: at even indices a covered range begins, at odd ones it has ended."""
    scale: float = 1.0
    """Size of the letters in parts of the text's: less than 1 for superscripts and subscripts."""
    rise_em: float = 0.0
    """How far above the baseline they are drawn, in em of the text."""

    def covers(self, character: str) -> bool:
        return bisect_right(self.boundaries, ord(character)) % 2 == 1

    @property
    def emoji(self) -> bool:
        return self.name.startswith(_EMOJI)

    @property
    def serif(self) -> bool:
        return self.name.startswith(_SERIF)

    @property
    def square(self) -> bool:
        """Han and emoji: characters are drawn one by one, each in a square."""
        return bool(self.regions) or self.emoji

    def file(self, weight: int) -> str:
        """The file of the nearest weight there is."""
        return f"{self.name}-{min(self.weights, key=lambda w: abs(w - weight))}.woff2"


def read_catalogue() -> list[FontSubset]:
    """All subsets in order of preference, as `fonts/build/index.py` describes them."""
    numbers = array("I", read_bytes("fonts/index.bin"))
    if sys.byteorder == "big":
        numbers.byteswap()
    subsets, start = [], 0
    for name, weights, shaped, regions, advance_em, count in json.loads(read_text("fonts/index.json")):
        boundaries = numbers[start : start + count]
        subsets.append(FontSubset(name, tuple(weights), shaped, regions, advance_em, boundaries))
        start += count
    return subsets
