"""One line of text, as it will be painted."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from PIL import Image, ImageDraw, ImageFont

from cardbeat.cards.anchors import Part
from cardbeat.cards.clusters import without_marks
from cardbeat.cards.fonts import Fonts, Slice

_HAN_ASCENT_EM, _HAN_DESCENT_EM = 0.92, 0.16
_TALLEST_EM, _DEEPEST_EM = 1.7, 1.2
"""No script needs more: a grapheme that reaches further is drawn without its marks."""

Ink = tuple[float, float, float, float]
"""Left, top, right and bottom, in pixels from an origin on the baseline."""


@dataclass(frozen=True, slots=True)
class Run:
    """Text of one line in one face and one direction, as handed to Pillow.

    Its origin is `x_px` from the line's left end and `y_px` below its baseline.
    """

    x_px: float
    y_px: int
    text: str
    font: ImageFont.FreeTypeFont
    direction: str | None
    emoji: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """Runs in visual order. All ink is within 0 and `width_px`, `ascent_px` above and `descent_px` below the baseline;
    `left_px` is where the ink begins."""

    runs: tuple[Run, ...]
    width_px: float
    left_px: float
    ascent_px: float
    descent_px: float

    def draw(self, mask: ImageDraw.ImageDraw, x: float, baseline: float) -> None:
        """Paints the text, as coverage, into an "L" image."""
        for run in self.runs:
            if not run.emoji:
                at = x + run.x_px, baseline + run.y_px
                mask.text(at, run.text, fill=255, font=run.font, anchor="ls", direction=run.direction)

    @property
    def has_emoji(self) -> bool:
        return any(run.emoji for run in self.runs)

    def emoji(self, layer: Image.Image, x: float, baseline: float) -> None:
        """Paints the colour emoji into an "RGBA" image, over what is there."""
        draw = ImageDraw.Draw(layer)
        for run in self.runs:
            if run.emoji:
                draw.text((x + run.x_px, baseline), run.text, font=run.font, anchor="ls", embedded_color=True)


class LineBuilder:
    """Places runs from left to right and keeps account of their ink."""

    def __init__(self, fonts: Fonts, weight: int, size: int, spacing_px: float) -> None:
        self._fonts, self._weight, self._size, self._spacing_px = fonts, weight, size, spacing_px
        self._runs: list[Run] = []
        self._x = 0.0
        self._boxes: list[Ink] = []

    def add(self, slice_: Slice, rtl: bool, texts: list[str]) -> None:
        parts = [texts]
        if self._spacing_px and not slice_.shaped:
            parts = [[text] for text in (reversed(texts) if rtl else texts)]
        for part in parts:
            self._add(slice_, rtl, part)
            self._x += self._spacing_px

    def _add(self, slice_: Slice, rtl: bool, texts: list[str]) -> None:
        face = self._fonts.face(slice_, self._weight, self._size)
        direction = face.direction(rtl)
        text = face.arranged(texts, rtl)
        parts = face.parts(text)
        if slice_.square:
            width = face.font.getlength(text)
            ink = 0.0, -_HAN_ASCENT_EM * self._size, width, _HAN_DESCENT_EM * self._size
        else:
            ink = _ink(parts, face.font, direction)
            if -ink[1] > _TALLEST_EM * self._size or ink[3] > _DEEPEST_EM * self._size:
                parts = face.parts(face.arranged([without_marks(t) for t in texts], rtl))
                ink = _ink(parts, face.font, direction)
            width = ink[2] if slice_.shaped else face.font.getlength(text, direction=direction)
        for part in parts:
            at = self._x + part.x_px, round(part.y_px)
            self._runs.append(Run(*at, part.text, face.font, direction, slice_.emoji))
        self._boxes.append((self._x + ink[0], ink[1], self._x + ink[2], ink[3]))
        self._x += width

    def built(self) -> Line:
        ink = self._boxes or [(0.0, 0.0, 0.0, 0.0)]
        left = min(i[0] for i in ink)
        shift = max(0.0, -left)
        width = max(self._x - self._spacing_px, *(i[2] for i in ink), 0.0) + shift
        runs = tuple(replace(run, x_px=run.x_px + shift) for run in self._runs)
        return Line(runs, width, left + shift, max(-min(i[1] for i in ink), 0.0), max(0.0, *(i[3] for i in ink)))


def _ink(parts: Sequence[Part], font: ImageFont.FreeTypeFont, direction: str | None) -> Ink:
    """What parts of a run cover, and at least their advance."""
    boxes = [(part, font.getbbox(part.text, anchor="ls", direction=direction)) for part in parts if part.text]
    return (
        min((part.x_px + box[0] for part, box in boxes), default=0.0),
        min((part.y_px + box[1] for part, box in boxes), default=0.0),
        max((part.x_px + box[2] for part, box in boxes), default=0.0),
        max((part.y_px + box[3] for part, box in boxes), default=0.0),
    )
