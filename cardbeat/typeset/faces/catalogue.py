"""The font files of the package: the characters that each covers, and its weights."""

import json
import sys
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import accumulate, chain
from typing import NamedTuple

from cardbeat.resources import read_bytes, read_text

ADVANCE_UNITS = 1000  # parts of the size in which advances are kept
NASTALIQ = "noto-nastaliq-urdu"
_EUROPEAN = ("inter", "source-serif")
_SERIF = ("source-serif", "noto-")
_EMBOLDENED = ("han", "sans", "serif", "marks")
"""Fonts of letters, some of which have one weight only. Signs are as heavy in every text."""
_EMBOLDENED_FROM = 200  # a difference of weights that is seen


class FontSubset(NamedTuple):
    """A part of a font in one or more weights, which cover the same characters. Each is a gzip file of TrueType."""

    name: str
    weights: tuple[int, ...]
    shaped: bool  # letters join, move or carry marks: only a shaping engine knows their width
    regions: str  # letters of `han.REGIONS` whose Han shapes these are; empty for other scripts
    advance_em: float  # the advance of every character if it is the same, else 0
    lengths: tuple[int, ...]  # bytes of the file of each weight. The time to inflate it is about proportional.
    boundaries: "array[int]"
    """Sorted codepoints: at even indices a covered range begins, at odd ones it has ended."""
    scale: float = 1.0
    """Size of the letters in parts of the text's: less than 1 for superscripts and subscripts."""
    rise_em: float = 0.0  # height above the baseline, in em of the text
    advances: Mapping[int, Sequence[int]] = {}
    """By weight, the advances of all characters, in `ADVANCE_UNITS` of the size; empty if `advance_em` is set."""
    starts: Sequence[int] = ()  # for each covered range the place of its first character in `advances`

    def advance(self, character: str, weight: int) -> int | None:
        """The advance of a character in the nearest weight; None if it is not kept."""
        at = bisect_right(self.boundaries, ord(character))
        if at % 2 == 0 or not self.advances:
            return None
        return self.advances[self.nearest(weight)][self.starts[at // 2] + ord(character) - self.boundaries[at - 1]]

    def characters(self) -> Iterator[str]:
        """All that it covers, sorted."""
        return map(chr, chain.from_iterable(self.ranges()))

    def ranges(self) -> Iterator[range]:
        return map(range, self.boundaries[::2], self.boundaries[1::2])

    def covers(self, character: str) -> bool:
        return bisect_right(self.boundaries, ord(character)) % 2 == 1

    @property
    def emoji(self) -> bool:
        return self.name.startswith("emoji")

    @property
    def serif(self) -> bool:
        """Whether it is for headlines with serifs, or what other scripts have in their place."""
        return self.name.startswith(_SERIF)

    @property
    def european(self) -> bool:
        """Whether its font is for Latin, Greek and Cyrillic, whose letters may be drawn one by one."""
        return self.name.startswith(_EUROPEAN)

    @property
    def square(self) -> bool:
        """Whether characters are drawn one by one, each in a square: Han and emoji."""
        return bool(self.regions) or self.emoji

    def is_emboldened(self, weight: int) -> bool:
        """Whether its letters are drawn bolder, since it has only a lighter weight."""
        return self.name.startswith(_EMBOLDENED) and self.nearest(weight) + _EMBOLDENED_FROM <= weight

    def file(self, weight: int) -> str:
        """The file of the nearest weight."""
        return f"{self.name}-{self.nearest(weight)}.ttf.gz"

    def bytes(self, weight: int) -> int:
        """The length of that file."""
        return self.lengths[self.weights.index(self.nearest(weight))]

    def nearest(self, weight: int) -> int:
        return _nearest(self.weights, weight)


# They are keys of what is kept, and are many: two are equal if they are one.
FontSubset.__eq__, FontSubset.__hash__ = object.__eq__, object.__hash__  # type: ignore[method-assign]


@cache
def _nearest(weights: tuple[int, ...], weight: int) -> int:
    """The nearest of some weights. Kept: it is needed for each character of a text."""
    return min(weights, key=lambda w: abs(w - weight))


class SubsetTable:
    """Subsets in an order of preference. The first one that has a character is found in one step."""

    def __init__(self, subsets: Iterable[FontSubset], others: "SubsetTable | None" = None) -> None:
        """`others` come after `subsets`, in their own order; their places are copied."""
        added = list(subsets)
        self._subsets: list[FontSubset] = [*added, *(others._subsets if others else [])]
        # For each codepoint the place of its first subset, counted from the end of the list; 0 where there is none.
        end = max((s.boundaries[-1] for s in self._subsets), default=0)
        self._places: array[int] = array("H", others._places if others else ())
        self._places.frombytes(bytes(self._places.itemsize * (end - len(self._places))))
        for place, subset in enumerate(reversed(added), len(self._subsets) - len(added) + 1):
            places, one, boundaries = self._places, array("H", [place]), subset.boundaries.tolist()
            for start, stop in zip(boundaries[::2], boundaries[1::2], strict=True):
                # Most ranges of Han are of one character, for which an index is quicker than a slice.
                if stop - start == 1:
                    places[start] = place
                else:
                    places[start:stop] = one * (stop - start)

    def covers(self, character: str) -> bool:
        """Whether any subset has the character."""
        codepoint = ord(character)
        return codepoint < len(self._places) and self._places[codepoint] > 0

    def first(self, text: str) -> FontSubset | None:
        """The first subset that has all characters of a text."""
        if len(text) == 1 and self.covers(text):
            return self._subsets[-self._places[ord(text)]]
        return next(self.all_with(text), None)

    def all_with(self, text: str) -> Iterator[FontSubset]:
        """The subsets that have all characters of a text, in their order."""
        if all(map(self.covers, text)):
            start = len(self._subsets) - min(self._places[ord(character)] for character in text)
            yield from (s for s in self._subsets[start:] if all(map(s.covers, text)))


def read_catalogue() -> list[FontSubset]:
    """All subsets in order of preference, with their advances, as `fonts.build.index` writes them."""
    kept = _numbers("H", "fonts/advances.bin")
    subsets, at = [], 0
    for subset in read_subsets():
        if subset.advance_em:
            subsets.append(subset)
            continue
        *starts, length = accumulate(map(len, subset.ranges()), initial=0)
        advances = {w: kept[at + n * length : at + (n + 1) * length] for n, w in enumerate(subset.weights)}
        subsets.append(subset._replace(advances=advances, starts=array("I", starts)))
        at += length * len(subset.weights)
    return subsets


def read_subsets() -> list[FontSubset]:
    """All subsets in order of preference, without their advances."""
    numbers = _numbers("H", "fonts/index.bin"), _numbers("I", "fonts/index-wide.bin")
    starts = [0, 0]
    subsets = []
    for name, weights, shaped, regions, advance_em, lengths, count, wide in json.loads(read_text("fonts/index.json")):
        boundaries = numbers[wide][starts[wide] : starts[wide] + count]
        subsets.append(FontSubset(name, tuple(weights), shaped, regions, advance_em, tuple(lengths), boundaries))
        starts[wide] += count
    return subsets


def _numbers(kind: str, file: str) -> "array[int]":
    """The content of a file of little-endian numbers."""
    numbers = array(kind, read_bytes(file))
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers
