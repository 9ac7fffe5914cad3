"""Sets text into a box: shrink to fit, then wrap in balanced lines, then cut on a grapheme with an ellipsis.

Lines are planned with widths in em, which hold at any size; only the lines that will be drawn are measured exactly.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count, pairwise
from math import ceil

from cardbeat.typeset.breaks import Break
from cardbeat.typeset.fonts import Fonts
from cardbeat.typeset.line import TextLine
from cardbeat.typeset.paragraph import Paragraph, Room
from cardbeat.typeset.work import UNBOUNDED
from cardbeat.typeset.wrap import Span, Word, balanced, wrapped

_SIZE_STEP_PX = 2
_UNBOUNDED_PX = 1e9
_NARROWEST_EM = 0.22
"""About the width of an `i`: no more of them are looked at than could stand in the box."""
_MEASURED = 1.5
"""Times the box of text whose width is measured: shaped, a text can be narrower than its letters are by themselves."""
_TRIES = 3
"""How often lines are planned, each time with the true widths of those before."""
_LEAST_GAP_EM = 0.05
"""Between the ink of a line and that of the next."""
_CENTRE_EM = 0.375
"""Half a capital's height: a line's box is centred on it."""


@dataclass(frozen=True, slots=True)
class Block:
    """Lines under one another: line `n` has its baseline `first_baseline_px + n * line_height_px` below the top.

    All ink is within `width_px` x `height_px`. `rtl` is the paragraph's direction by its first strong character;
    `missing` counts the characters that are drawn as nothing: no font has them, or the text takes too much work.
    `work` is what it takes, in the unit of `work`.
    """

    lines: tuple[TextLine, ...]
    size_px: int
    line_height_px: int
    first_baseline_px: int
    width_px: int
    height_px: int
    rtl: bool
    missing: int
    cut: bool
    work: int


@dataclass(frozen=True, slots=True)
class Box:
    """What a text has to stand in. `leading` is the distance of baselines in parts of the text's size."""

    width_px: int
    height_px: float
    max_lines: int
    leading: float

    def lines_at(self, size_px: int) -> int:
        return max(1, min(self.max_lines, int(self.height_px / (size_px * self.leading) + 0.01)))


def fit(
    fonts: Fonts,
    text: str,
    *,
    width_px: int,
    max_lines: int = 1,
    height_px: int | None = None,
    size_px: int,
    min_size_px: int,
    weight: int = 400,
    leading: float = 1.15,
    language: str | None = None,
    max_work: int = UNBOUNDED,
) -> Block:
    """Sets `text` at the largest size, in steps, at which it stands in the box; at `min_size_px` it is cut.

    The box is `width_px` by `max_lines`, and by `height_px` where that is given. `language` ("ja", "ko", "zh-Hans",
    "zh-Hant") chooses Han shapes where the text alone can't: `han.language_of` tells it from more text.
    Of a text in so many fonts or runs that it takes more than `max_work`, the last ones draw nothing.
    """
    room = room_of(width_px, max_lines, min_size_px)
    paragraph = Paragraph(fonts, text, room=room, weight=weight, language=language, max_work=max_work)
    box = Box(width_px, height_px or _UNBOUNDED_PX, max_lines, leading)
    return fitted(paragraph, box, size_px=size_px, min_size_px=min_size_px)


def room_of(width_px: int, max_lines: int, min_size_px: int) -> Room:
    """How much of a text is looked at for a box."""
    room_em = max_lines * width_px / min_size_px
    return Room(ceil(room_em / _NARROWEST_EM) + 8, _MEASURED * room_em)


def fitted(paragraph: Paragraph, box: Box, *, size_px: int, min_size_px: int) -> Block:
    """What `fit` does, for a paragraph that was made with `room_of` this box or a larger one."""
    width_px, setting = box.width_px, _Setting(paragraph, box)
    sizes = range(size_px, min_size_px - 1, -_SIZE_STEP_PX)
    for least in (Break.GOOD, Break.EMERGENCY, Break.NEVER):
        words = paragraph.words(least)
        for size in sizes:
            if block := setting.whole(words, size):
                return block
        if all(word.ink_em * min_size_px <= width_px for word in words):
            break
    return setting.cut(words, min_size_px)


class _Setting:
    """One paragraph set into one box, at one size after another, with what was learnt from each."""

    def __init__(self, paragraph: Paragraph, box: Box) -> None:
        self._paragraph, self._box = paragraph, box
        self._stretch = 1.0
        """How many times its planned width the widest line had."""
        self._heights_em: dict[int, float] = {}
        """Of blocks of so many lines that were too high: one in a smaller size will be as high in em."""

    def whole(self, words: Sequence[Word], size: int) -> Block | None:
        """The block at this size, or None where it does not stand in the box."""
        for _ in range(_TRIES):
            spans = self._planned(words, size)
            if not spans:
                return None
            lines = [self._paragraph.line(start, end, size) for start, end in spans]
            block = self._block(lines, size, cut=False)
            if block.height_px > self._box.height_px:
                self._heights_em[len(lines)] = block.height_px / size
                return None
            if block.width_px <= self._box.width_px:
                return block
            self._stretch *= block.width_px / self._box.width_px
        return None

    def _planned(self, words: Sequence[Word], size: int) -> list[Span]:
        """The lines at this size, or none where it is too large."""
        width_em = self._box.width_px / size / self._stretch
        if self._paragraph.truncated or any(word.ink_em > width_em for word in words):
            return []
        spans = wrapped(words, width_em)
        if len(spans) > self._box.lines_at(size) or self._heights_em.get(len(spans), 0) * size > self._box.height_px:
            return []
        return balanced(words, width_em, len(spans)) if len(spans) > 1 else spans

    def cut(self, words: Sequence[Word], size: int) -> Block:
        """The block at this size with as many graphemes as stand in the box, and an ellipsis."""
        most = self._box.lines_at(size)
        while True:
            block = self._block(self._cut_lines(words, size, most), size, cut=True)
            over_px = block.height_px - self._box.height_px
            if over_px <= 0 or most == 1:
                return block
            most = max(1, min(len(block.lines), most) - ceil(over_px / block.line_height_px))

    def _cut_lines(self, words: Sequence[Word], size: int, most: int) -> list[TextLine]:
        """The last of them ends in an ellipsis; a line of one grapheme wider than the box is left out."""
        width_px = self._box.width_px
        for _ in range(_TRIES):
            spans = wrapped(words, width_px / size / self._stretch)[:most]
            lines = [self._paragraph.line(start, end, size) for start, end in spans[:-1]]
            widest = max((line.width_px for line in lines), default=0.0)
            if widest <= width_px:
                break
            self._stretch *= widest / width_px
        last = [self._last_line(start, size) for start, _ in spans[-1:]]
        return [line for line in lines + last if line.width_px <= width_px]

    def _last_line(self, start: int, size: int) -> TextLine:
        """As many graphemes as stand before an ellipsis: first as planned, then corrected by what was drawn."""
        width_px, ends_em = self._box.width_px, self._paragraph.ends_em(start)
        low, high = start, len(self._paragraph)
        best, stretch = self._paragraph.line(start, start, size, ellipsis=True), self._stretch
        room = width_px - best.width_px
        for tries in count():
            planned = start + bisect_right(ends_em, room / size / stretch)
            if low == high or start < planned <= low:
                break
            end = min(max(planned, low + 1), high) if tries < _TRIES else (low + high + 1) // 2
            line = self._paragraph.line(start, end, size, ellipsis=True)
            if ends_em[end - start - 1]:
                stretch = max(0.1, (line.width_px + room - width_px) / size / ends_em[end - start - 1])
            if line.width_px <= width_px:
                low, best = end, line
            else:
                high = end - 1
        return best

    def _block(self, lines: list[TextLine], size: int, cut: bool) -> Block:
        leading, paragraph = self._box.leading, self._paragraph
        above, below = size * (leading / 2 + _CENTRE_EM), size * (leading / 2 - _CENTRE_EM)
        gap = _LEAST_GAP_EM * size
        height = ceil(max([size * leading, *(a.descent_px + gap + b.ascent_px for a, b in pairwise(lines))]))
        first = ceil(max([above, *(line.ascent_px for line in lines[:1])]))
        last = max([below, *(line.descent_px for line in lines[-1:])])
        total = ceil(first + height * (len(lines) - 1) + last) if lines else 0
        width = max((line.width_px for line in lines), default=0)
        missing = paragraph.missing + sum(line.left_out for line in lines)
        return Block(tuple(lines), size, height, first, width, total, paragraph.rtl, missing, cut, paragraph.work)
