"""Marks put on their letters where no shaping engine is at hand, by the anchors that the fonts give for it."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field

Places = dict[str, dict[str, list[float]]]


@dataclass(frozen=True, slots=True)
class Part:
    """Characters to draw as they come, `x_px` right of and `y_px` below the run's origin."""

    text: str
    x_px: float
    y_px: float


@dataclass(frozen=True, slots=True)
class Anchors:
    """For each mark, and each character it may stand on, the places in em that meet, by name."""

    marks: Places = field(default_factory=dict)
    bases: Places = field(default_factory=dict)

    @classmethod
    def read(cls, text: str) -> "Anchors":
        return cls(**json.loads(text))

    def offset_em(self, mark: str, base: str) -> tuple[float, float] | None:
        """How far right of and above the base's origin the mark's is, if it can stand there."""
        places = self.bases.get(base, {})
        for name, (x, y) in self.marks.get(mark, {}).items():
            if name in places:
                return places[name][0] - x, places[name][1] - y
        return None


NO_ANCHORS = Anchors()


def placed(text: str, anchors: Anchors, size_px: float, length: Callable[[str], float]) -> list[Part]:
    """Stretches of letters, and each mark by itself on its letter or on the mark before."""
    parts: list[Part] = []
    stretch, x = "", 0.0
    below: list[Part] = []
    for character in text:
        spot = _spot(character, below, anchors, size_px, length)
        if spot:
            if stretch:
                parts.append(Part(stretch, x, 0))
                x, stretch = x + length(stretch), ""
            parts.append(spot)
            below.append(spot)
        else:
            below = [Part(character, x + length(stretch), 0)]
            stretch += character
    return [*parts, Part(stretch, x, 0)] if stretch else parts


def _spot(
    mark: str, below: list[Part], anchors: Anchors, size_px: float, length: Callable[[str], float]
) -> Part | None:
    """On the topmost of what is below that takes it; on a letter without anchors, at the mark's own height."""
    if mark not in anchors.marks or not below:
        return None
    for base in reversed(below):
        if offset := anchors.offset_em(mark, base.text):
            return Part(mark, base.x_px + offset[0] * size_px, base.y_px - offset[1] * size_px)
    centre, _ = next(iter(anchors.marks[mark].values()))
    return Part(mark, below[0].x_px + length(below[0].text) / 2 - centre * size_px, 0)
