"""Sets text into a box: shrinks it until it fits in balanced lines, or cuts it after a word with an ellipsis.

Lines are planned with widths in em, which hold at any size. Only lines of sizes that may fit are drawn and measured.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import count, pairwise
from math import ceil
from typing import NamedTuple

from cardbeat.typeset.faces.fonts import Fonts
from cardbeat.typeset.line import TextLine
from cardbeat.typeset.paragraph import Paragraph, Style
from cardbeat.typeset.unicode.breaks import Break
from cardbeat.typeset.work import UNBOUNDED
from cardbeat.typeset.wrap import Length, Span, Word, balanced, wrapped

UNBOUNDED_PX = 1e9  # the height of a box that is as high as its text
_SIZE_STEP_PX = 2
_MUCH_SMALLER = {Break.GOOD: 1.0, Break.FAIR: 0.8, Break.POOR: 0.5}
"""Lines may end at such a break where the text would otherwise be smaller than this part of its size then."""
_TRIES = 3  # times that lines are planned for one size, each with the true widths of those before
_LEAST_GAP_EM = 0.05  # between the ink of a line and that of the next
_CENTRE_EM = 0.375  # half a capital's height: a line's box is centred on it
_DESCENT_EM = 0.26
"""How far most fonts reach below the baseline. With a small leading, the last line reaches out of its box."""


class Block(NamedTuple):
    """Lines under one another: line `n` has its baseline `first_baseline_px + n * line_height_px` below the top.

    All ink is within `width_px` x `height_px`. `rtl` is the paragraph's direction by its first strong character.
    `missing` counts the characters that are not drawn: no font has them, or they are past `max_work`. `work` is the
    cost of the text, in the unit of `work`.
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


def fit(
    fonts: Fonts,
    text: str,
    style: Style,
    width_px: int,
    height_px: float = UNBOUNDED_PX,
    *,
    language: str | None = None,
    max_work: int = UNBOUNDED,
) -> Block:
    """The text at the largest size at which it fits a box, cut if the style's smallest size is too large.

    `language` ("ja", "ko", "zh-Hans", "zh-Hant") chooses Han shapes where the text alone does not: take it from
    `han.language_of`, with more text. Past `max_work`, in the unit of `work`, runs of the text are not drawn.
    """
    paragraph = Paragraph(fonts, text, style, width_px, language=language, max_work=max_work)
    return Setting(paragraph, style, width_px, height_px).block()


def ending_well(
    paragraph: Paragraph, largest: Callable[[Break, float], Block | None], worst: Break = Break.POOR
) -> Block | None:
    """The largest block whose lines end at good breaks; at worse ones, down to `worst`, if that makes it much larger.

    `largest(least, above_px)` returns the largest block above that size whose lines end at `least` or better, or None.
    """
    block = None
    for least, part in _MUCH_SMALLER.items():
        if least == Break.GOOD or (least >= worst and paragraph.has(least)):
            block = largest(least, block.size_px / part if block else 0) or block
    return block


class Setting:
    """One paragraph set into one box, at one size after another, with what was learnt from each.

    The paragraph must have been made for this box or a larger one.
    """

    def __init__(
        self,
        paragraph: Paragraph,
        style: Style,
        width_px: int,
        height_px: float = UNBOUNDED_PX,
        first_px: int | None = None,
    ) -> None:
        """`first_px` is the width of the first line, if it is another one."""
        self._paragraph, self._style = paragraph, style
        self._first_px = first_px or width_px
        self._width_px, self._height_px = width_px, height_px

    def block(self) -> Block:
        """The block, shrunk to fit. At the smallest size its words are broken if needed, and its end is cut."""
        block, words = ending_well(self._paragraph, self.ending), self._paragraph.words(Break.FAIR)
        for least in (Break.POOR, Break.EMERGENCY, Break.NEVER):
            if block or all(word.ink_em * self._style.smallest_px <= self._width_px for word in words):
                break
            words = self._paragraph.words(least)
            block = self._largest(words, 0)
        return block or self._cut(words, self._style.smallest_px)

    def ending(self, least: Break, above_px: float) -> Block | None:
        """The largest block above that size whose lines all end at `least` or better, or None."""
        return self._largest(self._paragraph.words(least), above_px)

    def planned_px(self, least: Break) -> int:
        """The largest size at which the text may fit, as planned, with lines that end at `least` or better; else 0."""
        words = self._paragraph.words(least)
        length = Length.of(words)
        return next((size for size in self._sizes(length, 0) if self._planned(words, length, size)), 0)

    def _largest(self, words: Sequence[Word], above_px: float) -> Block | None:
        if self._paragraph.truncated:
            return None
        length = Length.of(words)
        sizes = self._sizes(length, above_px)
        return next((block for size in sizes if (block := self._whole(words, length, size))), None)

    def _sizes(self, length: Length, above_px: float) -> range:
        smallest_px = max(self._style.smallest_px, int(above_px) + 1)
        widest_em = max(length.widest_em, length.full_em / self._style.max_lines - length.spared_em, 0.01)
        too_large_px = self._style.largest_px - self._width_px / widest_em - 1
        largest_px = self._style.largest_px - _SIZE_STEP_PX * max(0, ceil(too_large_px / _SIZE_STEP_PX))
        return range(largest_px, smallest_px - 1, -_SIZE_STEP_PX)

    def _whole(self, words: Sequence[Word], length: Length, size: int) -> Block | None:
        """The block at this size, or None where it does not fit."""
        for _ in range(1 if self._paragraph.slow else _TRIES):
            spans = self._planned(words, length, size)
            if not spans:
                return None
            lines = [self._paragraph.line(*spans[0], size)]
            if lines[0].width_px <= self._first_px:
                lines += [self._paragraph.line(start, end, size) for start, end in spans[1:]]
            block = self._block(lines, size, cut=False)
            too_wide = max(block.width_px / self._width_px, lines[0].width_px / self._first_px)
            self._paragraph.stretch *= max(1.0, too_wide)
            if len(lines) == len(spans) and block.height_px > self._height_px:
                self._paragraph.heights_em[len(lines), self._style.leading] = block.height_px / size
                return None
            if too_wide <= 1:
                return block
        return None

    def _planned(self, words: Sequence[Word], length: Length, size: int) -> list[Span]:
        """The lines at this size, or none where it is too large."""
        if self._paragraph.tried_enough and size > self._style.smallest_px:
            return []
        width_em, most = self._width_px / size / self._paragraph.stretch, self._lines_at(size)
        if not length.may_stand(width_em, most):
            return []
        first_em = width_em * self._first_px / self._width_px
        spans = wrapped(words, width_em, first_em)
        if not spans or len(spans) > most or self._known_height_em(len(spans)) * size > self._height_px:
            return []
        return balanced(words, width_em, len(spans), first_em) if len(spans) > 1 else spans

    def _lines_at(self, size: int) -> int:
        leading = self._style.leading
        below_em = max(0, _DESCENT_EM - leading / 2 + _CENTRE_EM)
        return max(1, min(self._style.max_lines, int((self._height_px / size - below_em) / leading + 0.01)))

    def _known_height_em(self, lines: int) -> float:
        """The height of an earlier block of so many lines, or 0. That of a slow text is estimated from any blocks."""
        known = self._paragraph.heights_em
        if not self._paragraph.slow:
            return known.get((lines, self._style.leading), 0)
        each = (high / count for (count, leading), high in known.items() if leading == self._style.leading)
        return lines * max(each, default=self._paragraph.line_em)

    def _cut(self, words: Sequence[Word], size: int) -> Block:
        """The block at this size with as many graphemes as fit, and an ellipsis."""
        most = self._lines_at(size)
        while True:
            block = self._block(self._cut_lines(words, size, most), size, cut=True)
            over_px = block.height_px - self._height_px
            if over_px <= 0 or most == 1:
                return block
            most = max(1, min(len(block.lines), most) - ceil(over_px / block.line_height_px))

    def _cut_lines(self, words: Sequence[Word], size: int, most: int) -> list[TextLine]:
        """At most so many lines, the last with an ellipsis. A line of one grapheme wider than the box is left out."""
        width_px = self._width_px
        for _ in range(_TRIES):
            spans = wrapped(words, width_px / size / self._paragraph.stretch)[:most]
            lines = [self._paragraph.line(start, end, size) for start, end in spans[:-1]]
            widest = max((line.width_px for line in lines), default=0.0)
            if widest <= width_px:
                break
            self._paragraph.stretch *= widest / width_px
        last = [self._last_line(start, size) for start, _ in spans[-1:]]
        return [line for line in lines + last if line.width_px <= width_px]

    def _last_line(self, start: int, size: int) -> TextLine:
        """The line with as many words as fit before an ellipsis: planned first, then corrected by drawn widths."""
        width_px, ends_em, paragraph = self._width_px, self._paragraph.ends_em(start), self._paragraph
        low, high = start, len(paragraph)
        best, stretch = paragraph.line(start, start, size, ellipsis=True), self._paragraph.stretch
        room, first = width_px - best.width_px, start

        def shown(end: int) -> int:  # where the line is cut if so much fits
            place = paragraph.cut_place(start, end)
            return end if place == start or end == first else place

        for tries in count():
            if all(shown(end) == shown(low) for end in range(high, low, -1)):
                break
            planned = start + bisect_right(ends_em, room / size / stretch)
            place = paragraph.cut_place(start, min(planned, high))
            # Plans are closer from left to right: letters that join have other widths at the end of a line.
            if start < place == low and not paragraph.rtl:
                return best
            if start < planned <= low and not paragraph.rtl:
                break
            if not tries:
                first = end = max(place, low + 1)  # the words that are planned, drawn once if they fit
            else:
                end = min(max(planned, low + 1), high) if tries < _TRIES else (low + high + 1) // 2
            line = paragraph.line(start, end, size, ellipsis=True)
            if ends_em[end - start - 1]:
                stretch = max(0.1, (line.width_px + room - width_px) / size / ends_em[end - start - 1])
            if line.width_px <= width_px:
                low, best = end, line
            else:
                high = end - 1
        return best if shown(low) == low else paragraph.line(start, shown(low), size, ellipsis=True)

    def _block(self, lines: list[TextLine], size: int, cut: bool) -> Block:
        leading, paragraph = self._style.leading, self._paragraph
        above, below = size * (leading / 2 + _CENTRE_EM), size * (leading / 2 - _CENTRE_EM)
        gap = _LEAST_GAP_EM * size
        height = ceil(max([size * leading, *(a.descent_px + gap + b.ascent_px for a, b in pairwise(lines))]))
        first = ceil(max([above, *(line.ascent_px for line in lines[:1])]))
        last = max([below, *(line.descent_px for line in lines[-1:])])
        total = ceil(first + height * (len(lines) - 1) + last) if lines else 0
        width = max((line.width_px for line in lines), default=0)
        missing = paragraph.missing + sum(line.left_out for line in lines)
        return Block(tuple(lines), size, height, first, width, total, paragraph.rtl, missing, cut, paragraph.work)
