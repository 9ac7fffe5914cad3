"""Sets text into a box: shrink to fit, then wrap in balanced lines, then cut after a word with an ellipsis.

Lines are planned with widths in em, which hold at any size; only the lines that will be drawn are measured exactly.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import count, pairwise
from math import ceil
from typing import NamedTuple

from cardbeat.typeset.breaks import Break
from cardbeat.typeset.fonts import Fonts
from cardbeat.typeset.line import TextLine
from cardbeat.typeset.paragraph import Paragraph, Room
from cardbeat.typeset.work import UNBOUNDED
from cardbeat.typeset.wrap import Length, Span, Word, balanced, wrapped

_SIZE_STEP_PX = 2
UNBOUNDED_PX = 1e9
"""The height of a box that is as high as the text needs."""
_NARROWEST_EM = 0.22
"""About the width of an `i`: no more of them are looked at than could stand in the box."""
_MEASURED = 1.5
"""Times the box of text whose width is measured: shaped, a text can be narrower than its letters are by themselves."""
_MUCH_SMALLER = {Break.GOOD: 1.0, Break.FAIR: 0.8, Break.POOR: 0.5}
"""Lines end only so well where the size would otherwise be less than this part of what it is then."""
_TRIES = 3
"""How often lines are planned, each time with the true widths of those before."""
_LEAST_GAP_EM = 0.05
"""Between the ink of a line and that of the next."""
_CENTRE_EM = 0.375
"""Half a capital's height: a line's box is centred on it."""
_DESCENT_EM = 0.26
"""Of most fonts. Where lines stand close, the last one reaches below its part of the leading."""


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
        below_em = max(0, _DESCENT_EM - self.leading / 2 + _CENTRE_EM)
        return max(1, min(self.max_lines, int((self.height_px / size_px - below_em) / self.leading + 0.01)))


def fit(
    fonts: Fonts,
    text: str,
    *,
    width_px: int,
    max_lines: int = 1,
    height_px: int | None = None,
    size_px: int,
    min_size_px: int | None = None,
    weight: int = 400,
    leading: float = 1.15,
    language: str | None = None,
    max_work: int = UNBOUNDED,
) -> Block:
    """Sets `text` at the largest size, in steps, at which it stands in the box; at `min_size_px` it is cut.

    Without `min_size_px` it stays as large. The box is `width_px` by `max_lines`, and by `height_px` where that is
    given. `language` ("ja", "ko", "zh-Hans", "zh-Hant") chooses Han shapes where the text alone can't:
    `han.language_of` tells it from more text.
    Of a text in so many fonts or runs that it takes more than `max_work`, the last ones draw nothing.
    """
    smallest_px = min_size_px or size_px
    room = room_of(width_px, max_lines, smallest_px)
    paragraph = Paragraph(fonts, text, room=room, weight=weight, language=language, max_work=max_work)
    box = Box(width_px, height_px or UNBOUNDED_PX, max_lines, leading)
    return fitted(paragraph, box, size_px=size_px, min_size_px=smallest_px)


def room_of(width_px: int, max_lines: int, min_size_px: int) -> Room:
    """How much of a text is looked at for a box."""
    room_em = max_lines * width_px / min_size_px
    return Room(ceil(room_em / _NARROWEST_EM) + 8, _MEASURED * room_em)


def fitted(paragraph: Paragraph, box: Box, *, size_px: int, min_size_px: int) -> Block:
    """What `fit` does, for a paragraph that was made with `room_of` this box or a larger one."""
    setting, sizes = _Setting(paragraph, box), _sizes(size_px, min_size_px)
    block, words = setting.between_words(sizes), paragraph.words(Break.FAIR)
    for least in (Break.POOR, Break.EMERGENCY, Break.NEVER):
        if block or all(word.ink_em * min_size_px <= box.width_px for word in words):
            break
        words = paragraph.words(least)
        block = setting.largest(words, sizes)
    return block or setting.cut(words, min_size_px)


def fitted_whole(paragraph: Paragraph, box: Box, *, size_px: int, min_size_px: int) -> Block | None:
    """What `fitted` does, but None where the text would have to be cut, or broken inside a word."""
    return _Setting(paragraph, box).between_words(_sizes(size_px, min_size_px))


def whole_ending(paragraph: Paragraph, box: Box, least: Break, *, size_px: int, above_px: float) -> Block | None:
    """The largest block up to one size and above another whose lines all end at least so well, or None."""
    sizes = range(size_px, int(above_px), -_SIZE_STEP_PX)
    return _Setting(paragraph, box).largest(paragraph.words(least), sizes)


def ending_well(
    paragraph: Paragraph, largest: Callable[[Break, float], Block | None], worst: Break = Break.POOR
) -> Block | None:
    """The largest block whose lines all end well; where it would be much smaller else they end less well, till `worst`.

    `largest` sets it larger than so many pixels, in lines that end at least so well, or returns None.
    """
    block = None
    for least, part in _MUCH_SMALLER.items():
        if least == Break.GOOD or (least >= worst and paragraph.has(least)):
            block = largest(least, block.size_px / part if block else 0) or block
    return block


def lines_needed(paragraph: Paragraph, width_px: int, size_px: int) -> int:
    """How many lines the text takes at this size, as planned: nothing is drawn."""
    return len(wrapped(paragraph.words(Break.POOR), width_px / size_px))


def _sizes(size_px: int, min_size_px: int) -> range:
    return range(size_px, min_size_px - 1, -_SIZE_STEP_PX)


class _TooLarge(NamedTuple):
    """Lines that were drawn in a size in which they did not stand in the box."""

    spans: list[Span]
    width_em: float
    height_em: float

    def spans_at(self, size: int, box: Box) -> list[Span]:
        """The same lines, or none where they will be too large at that size too."""
        # The height of each line is rounded up.
        height_px = self.height_em * size + len(self.spans)
        return self.spans if self.width_em * size <= box.width_px and height_px <= box.height_px else []


class _Setting:
    """One paragraph set into one box, at one size after another, with what was learnt from each."""

    def __init__(self, paragraph: Paragraph, box: Box) -> None:
        self._paragraph, self._box = paragraph, box
        self._stretch = 1.0
        """How many times its planned width the widest line had."""
        self._too_large: _TooLarge | None = None

    def largest(self, words: Sequence[Word], sizes: Iterable[int]) -> Block | None:
        """The block at the first of the sizes at which it stands in the box."""
        if self._paragraph.truncated:
            return None
        length, self._too_large = Length.of(words), None
        return next((block for size in sizes if (block := self._whole(words, length, size))), None)

    def between_words(self, sizes: Sequence[int]) -> Block | None:
        """The block at one of the sizes, as `ending_well` chooses it."""
        return ending_well(self._paragraph, lambda least, above_px: self.ending(least, sizes, above_px))

    def ending(self, least: Break, sizes: Iterable[int], above_px: float) -> Block | None:
        """The largest block above that size whose lines end at least so well."""
        return self.largest(self._paragraph.words(least), (size for size in sizes if size > above_px))

    def _whole(self, words: Sequence[Word], length: Length, size: int) -> Block | None:
        """The block at this size, or None where it does not stand in the box."""
        for _ in range(_TRIES):
            spans = self._planned(words, length, size)
            if not spans:
                return None
            lines = [self._paragraph.line(start, end, size) for start, end in spans]
            block = self._block(lines, size, cut=False)
            self._stretch *= max(1.0, block.width_px / self._box.width_px)
            self._too_large = _TooLarge(spans, block.width_px / size, block.height_px / size)
            if block.height_px > self._box.height_px:
                self._paragraph.heights_em[len(lines), self._box.leading] = block.height_px / size
                return None
            if block.width_px <= self._box.width_px:
                return block
        return None

    def _planned(self, words: Sequence[Word], length: Length, size: int) -> list[Span]:
        """The lines at this size, or none where it is too large.

        Of a text in many runs they are those that were drawn first: to draw all of them at one size after another is
        what takes most.
        """
        if self._too_large and self._paragraph.has_many_runs:
            return self._too_large.spans_at(size, self._box)
        width_em, most = self._box.width_px / size / self._stretch, self._box.lines_at(size)
        if not length.may_stand(width_em, most):
            return []
        spans = wrapped(words, width_em)
        if len(spans) > most or self._known_height_em(len(spans)) * size > self._box.height_px:
            return []
        return balanced(words, width_em, len(spans)) if len(spans) > 1 else spans

    def _known_height_em(self, lines: int) -> float:
        """How high a block of so many lines was, or 0; of a text in many runs, as any other lets expect."""
        known = self._paragraph.heights_em
        if not self._paragraph.has_many_runs:
            return known.get((lines, self._box.leading), 0)
        each = (high / count for (count, leading), high in known.items() if leading == self._box.leading)
        return lines * max(each, default=0)

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
        """As many words as stand before an ellipsis: first as planned, then corrected by what was drawn."""
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
        place = self._paragraph.cut_place(start, low)
        return best if place in (start, low) else self._paragraph.line(start, place, size, ellipsis=True)

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
