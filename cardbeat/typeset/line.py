"""Draws one line of text."""

import unicodedata
from collections.abc import Callable, Iterator, Sequence
from math import ceil, floor
from typing import Any, NamedTuple

from PIL import Image, ImageDraw, ImageFont

from cardbeat.typeset.faces.catalogue import NASTALIQ, FontSubset
from cardbeat.typeset.faces.files import Face
from cardbeat.typeset.unicode.clusters import is_european, without_marks
from cardbeat.typeset.work import drawing_cost

_SQUARE_ASCENT_EM, _SQUARE_DESCENT_EM = 0.92, 0.16
_TALLEST_EM, _DEEPEST_EM = 1.7, 1.2
_TALLEST_NASTALIQ_EM = 2.4
"""More than any script needs, or Nastaliq, whose words climb. What reaches farther is drawn without its marks."""
_LOOKED_AT, _LOOKED_AT_IN_ALL = 4, 8
"""The longest graphemes of a run, and of a text, that are drawn one by one to find those that reach too far."""
_EVERY = ""
_X_HEIGHT_EM, _CAPITAL_EM = 0.53, 0.7
_MOST_HANGING_EM = 0.12  # reach of the tail of a `j` and of the dots of an `Ï`


class PlacedEmoji(NamedTuple):
    """Neighbouring emoji, `x` pixels right of the beginning of their line."""

    text: str
    font: ImageFont.FreeTypeFont
    x: float
    width: float


class TextLine(NamedTuple):
    """A drawn line. Its origin is on the baseline where its ink begins.

    All ink lies between x = 0 and `width_px`, at most `ascent_px` above and `descent_px` below the baseline.
    """

    text: str  # the runs from left to right, each as Pillow was given it
    width_px: int
    ascent_px: int
    descent_px: int
    ink: Image.Image | None
    """Coverage ("L") of all but the emoji. Its upper left corner is at `ink_x` and `ink_y`."""
    ink_x: int
    ink_y: int
    emoji: tuple[PlacedEmoji, ...]
    left_out: int = 0
    """Characters not drawn although a font has them: past the text's `max_work`, or marks that reach too far."""

    def hanging_px(self, size_px: int) -> int:
        """How far a tail of the first letter, or its marks, reach left of its stem, at this size of the text.

        The stem is the ink between the baseline and the top of a small letter, or of a capital.
        """
        first = self.text[:1]
        if self.ink is None or self.ink_x or not is_european(first):
            return 0
        capital = unicodedata.normalize("NFD", first)[0].isupper()
        baseline = -self.ink_y
        top = baseline - round((_CAPITAL_EM if capital else _X_HEIGHT_EM) * size_px)
        most = ceil(_MOST_HANGING_EM * size_px)
        stem = self.ink.crop((0, max(top, 0), min(most, self.ink.width), max(baseline, 1))).getbbox()
        return stem[0] if stem else 0

    def draw_emoji(self, layer: Image.Image, x: int, baseline: int) -> None:
        """Paint the emoji into an "RGBA" image, over its content."""
        draw = ImageDraw.Draw(layer)
        for emoji in self.emoji:
            draw.text((x + emoji.x, baseline), emoji.text, font=emoji.font, anchor="ls", embedded_color=True)


class _Mask(NamedTuple):
    """Coverage of a piece of text as Pillow returns it, at least as wide as its advance, and its box on the line."""

    bitmap: Any
    left: int
    top: int
    right: int
    bottom: int
    end: int  # where the line continues after it


class Drawn:
    """What was drawn of a text, kept for its other lines and sizes: most runs are drawn more than once."""

    def __init__(self) -> None:
        self.runs: dict[tuple[FontSubset, int, str, bool, float], list[_Mask]] = {}
        """By font, size, string, whether right-to-left, and the part of a pixel by which it begins further right."""
        self.cost = 0  # of all runs, in the unit of `work`
        self.too_tall: set[tuple[FontSubset, str]] = set()
        """Graphemes to draw without marks, since they reach too far. `_EVERY` means all of a font: too many do."""
        self._judged = 0

    def judge(self, most: int) -> int:
        """How many more graphemes may be drawn one by one to find those that reach too far."""
        found = min(most, _LOOKED_AT_IN_ALL - self._judged)
        self._judged += found
        return found


class LineBuilder:
    """Draws the runs of a line from left to right, each once: to ask Pillow for its size first would cost double."""

    def __init__(self, faces: Callable[[FontSubset, int, bool], Face], size: int, drawn: Drawn) -> None:
        self._faces, self._size, self._kept = faces, size, drawn
        self._texts: list[str] = []
        self._masks: list[_Mask] = []
        self._emoji: list[PlacedEmoji] = []
        self._x = 0.0
        self._ascent = self._descent = 0
        self._marks_left_out = 0

    def add(self, subset: FontSubset, rtl: bool, texts: Sequence[str]) -> None:
        """Add a run in one font and one direction, its graphemes in logical order."""
        self._x = ceil(self._x)
        face = self._faces(subset, self._size, True)
        kept = self._lowered(subset, texts)
        if subset.square:
            self._add_squares(subset, face, face.to_draw(texts, rtl))
        else:
            masks = self._drawn(subset, face, face.to_draw(kept, rtl), rtl)
            if self._too_far(subset, masks):
                kept, masks = self._drawn_lower(subset, face, kept, rtl)
            self._add_masks(masks)
            self._x = max([self._x, *(m.end for m in masks)])
            self._marks_left_out += sum(map(len, texts)) - sum(map(len, kept))
        self._texts.append(face.to_draw(kept, rtl))

    def add_apart(self, subset: FontSubset, texts: Sequence[str], places_em: Sequence[float]) -> None:
        """Add a run from left to right, its graphemes drawn one by one, so that equal ones share a mask.

        `places_em` says where each begins and where the run ends. Pillow draws at whole pixels.
        """
        face, start = self._faces(subset, self._size, False), self._x
        masks: list[_Mask] = []
        for text, place in zip(texts, places_em, strict=False):
            self._x = round(start + place * self._size)
            if len(text) > 1:
                self.add(subset, False, [text])
            else:
                masks += self._drawn(subset, face, text, rtl=False)
                self._texts.append(text)
        self._x = start + places_em[-1] * self._size
        self._add_masks(masks)

    def built(self, left_out: int) -> TextLine:
        """The line of all that was added."""
        ink, x, y = _merged(self._masks)
        ends = [(e.x, e.x + e.width) for e in self._emoji]
        if ink:
            ends.append((x, x + ink.width))
        left = floor(min((end[0] for end in ends), default=0))
        width = ceil(max((end[1] for end in ends), default=0)) - left
        emoji = tuple(e._replace(x=e.x - left) for e in self._emoji)
        left_out += self._marks_left_out
        return TextLine("".join(self._texts), width, self._ascent, self._descent, ink, x - left, y, emoji, left_out)

    def _too_far(self, subset: FontSubset, masks: Sequence[_Mask]) -> bool:
        tallest_em = _TALLEST_NASTALIQ_EM if subset.name == NASTALIQ else _TALLEST_EM
        return any(-m.top > tallest_em * self._size or m.bottom > _DEEPEST_EM * self._size for m in masks)

    def _lowered(self, subset: FontSubset, texts: Sequence[str]) -> list[str]:
        """Graphemes, without the marks that are known to reach too far."""
        tall = self._kept.too_tall
        if not tall:
            return list(texts)
        every = (subset, _EVERY) in tall
        return [without_marks(text) if every or (subset, text) in tall else text for text in texts]

    def _drawn_lower(
        self, subset: FontSubset, face: Face, texts: Sequence[str], rtl: bool
    ) -> tuple[list[str], list[_Mask]]:
        """A run without the marks of graphemes that reach too far by themselves, or of all if that is not enough."""
        marked = [text for text in dict.fromkeys(texts) if without_marks(text) != text]
        looked_at = sorted(marked, key=len, reverse=True)[: self._kept.judge(_LOOKED_AT)]
        far = [t for t in looked_at if self._too_far(subset, self._drawn(subset, face, face.to_draw([t], rtl), rtl))]
        for tall in (far, marked if len(looked_at) == min(len(marked), _LOOKED_AT) else [*marked, _EVERY]):
            self._kept.too_tall.update((subset, text) for text in tall)
            lower = self._lowered(subset, texts)
            masks = self._drawn(subset, face, face.to_draw(lower, rtl), rtl)
            if not self._too_far(subset, masks):
                break
        return lower, masks

    def _add_squares(self, subset: FontSubset, face: Face, text: str) -> None:
        """Add Han or emoji. The height of their squares counts, not that of their ink: so their lines are equal."""
        width = face.font.getlength(text)
        if subset.emoji:
            self._emoji.append(PlacedEmoji(text, face.font, self._x, width))
        else:
            self._masks += self._drawn(subset, face, text, rtl=False)
        self._x += width
        self._reach(ceil(_SQUARE_ASCENT_EM * self._size), ceil(_SQUARE_DESCENT_EM * self._size))

    def _drawn(self, subset: FontSubset, face: Face, text: str, rtl: bool) -> list[_Mask]:
        """The masks of a string at the present end of the line."""
        pixel = floor(self._x)
        key = subset, self._size, text, rtl, self._x - pixel
        masks = self._kept.runs.get(key)
        if masks is None:
            self._kept.cost += drawing_cost(subset, text)
            masks = self._kept.runs[key] = list(_masks(face, text, rtl, self._x - pixel))
        return [_Mask(m.bitmap, m.left + pixel, m.top, m.right + pixel, m.bottom, m.end + pixel) for m in masks]

    def _add_masks(self, masks: Sequence[_Mask]) -> None:
        self._masks += masks
        self._reach(max((-m.top for m in masks), default=0), max((m.bottom for m in masks), default=0))

    def _reach(self, ascent: int, descent: int) -> None:
        self._ascent, self._descent = max(self._ascent, ascent), max(self._descent, descent)


def _masks(face: Face, text: str, rtl: bool, start: float) -> Iterator[_Mask]:
    """What draws a string that begins at `start`."""
    for part in face.placed(text):
        bitmap, left, top = face.drawn(part.text, rtl, start + part.x_px)
        top += round(part.y_px - face.rise_px)
        right = left + bitmap.size[0]
        yield _Mask(bitmap, left, top, right, top + bitmap.size[1], floor(start) if part.is_mark else right)


def _merged(masks: Sequence[_Mask]) -> tuple[Image.Image | None, int, int]:
    """All masks as one "L" image, no larger than their ink, and its upper left corner."""
    left, top = min((m.left for m in masks), default=0), min((m.top for m in masks), default=0)
    right, bottom = max((m.right for m in masks), default=0), max((m.bottom for m in masks), default=0)
    image = Image.new("L", (right - left, bottom - top))
    if len(masks) == 1:
        image.paste(masks[0].bitmap, (0, 0, *image.size))
    else:
        draw = ImageDraw.Draw(image)
        for mask in masks:
            draw.draw.draw_bitmap((mask.left - left, mask.top - top), mask.bitmap, 255)
    box = image.getbbox()
    return (image.crop(box), left + box[0], top + box[1]) if box else (None, 0, 0)
