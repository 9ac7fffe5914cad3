"""Places marks on letters without a shaping engine, by the anchors of the fonts (OpenType GPOS, kept as JSON)."""

from collections.abc import Callable
from dataclasses import dataclass, field
from unicodedata import category

AnchorPoints = dict[str, dict[str, list[float]]]
"""Character to anchor name to `[x, y]` in em, right of and above the character's origin."""


@dataclass(frozen=True, slots=True)
class PlacedText:
    """Characters to draw as they are, `x_px` right of and `y_px` below the origin of the run."""

    text: str
    x_px: float
    y_px: float
    is_mark: bool = False  # whether it stands on a letter and takes no width on the line


@dataclass(frozen=True, slots=True)
class Anchors:
    """The anchor points of a font. A mark stands where its point meets the point of the same name of its base."""

    marks: AnchorPoints = field(default_factory=dict)
    bases: AnchorPoints = field(default_factory=dict)  # letters, and marks that carry other marks

    def places(self, grapheme: str) -> bool:
        """Whether each mark of a grapheme has a place on its letter or on a mark before it."""
        return all(
            any(self.offset_em(mark, below) for below in grapheme[:place])
            for place, mark in enumerate(grapheme)
            if place and category(mark)[0] != "L"
        )

    def offset_em(self, mark: str, base: str) -> tuple[float, float] | None:
        """The origin of the mark, right of and above that of the base; None where the base has no anchor for it."""
        points = self.bases.get(base, {})
        for name, (x, y) in self.marks.get(mark, {}).items():
            if name in points:
                return points[name][0] - x, points[name][1] - y
        return None


NO_ANCHORS = Anchors()


def placed(text: str, anchors: Anchors, size_px: float, length: Callable[[str], float]) -> list[PlacedText]:
    """Runs of letters, and each mark alone on its letter or on a mark before it. `length` gives a string's pixels."""
    parts: list[PlacedText] = []
    letters, x = "", 0.0
    below: list[PlacedText] = []
    for character in text:
        mark = _placed_mark(character, below, anchors, size_px, length)
        if mark:
            if letters:
                parts.append(PlacedText(letters, x, 0))
                x, letters = x + length(letters), ""
            parts.append(mark)
            below.append(mark)
        else:
            below = [PlacedText(character, x + length(letters), 0)]
            letters += character
    return [*parts, PlacedText(letters, x, 0)] if letters else parts


def _placed_mark(
    mark: str, below: list[PlacedText], anchors: Anchors, size_px: float, length: Callable[[str], float]
) -> PlacedText | None:
    """The mark on the last of its letter and earlier marks that has an anchor for it, else centred on the letter.

    None if the character is no mark, or has no letter.
    """
    if mark not in anchors.marks or not below:
        return None
    for base in reversed(below):
        if offset := anchors.offset_em(mark, base.text):
            return PlacedText(mark, base.x_px + offset[0] * size_px, base.y_px - offset[1] * size_px, is_mark=True)
    centre, _ = next(iter(anchors.marks[mark].values()))
    return PlacedText(mark, below[0].x_px + length(below[0].text) / 2 - centre * size_px, 0, is_mark=True)
