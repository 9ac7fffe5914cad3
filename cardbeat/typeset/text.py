"""Sets a text into a box: the best of size and sense, else cut after a word with an ellipsis.

Lines are planned with widths and heights in em, and drawn once.
"""

from collections.abc import Iterator, Sequence
from math import ceil, inf
from typing import NamedTuple

from cardbeat.typeset.faces.fonts import Fonts
from cardbeat.typeset.paragraph import Paragraph, TextLine
from cardbeat.typeset.unicode.breaks import Break
from cardbeat.typeset.wrap import Lines, Span, Words

_NEXT_SIZE = 0.93
"""Sizes are tried in such steps; the lines that are found are then as large as fits."""
_HARDLY_SMALLER = 0.85
_LEAST_SIZE = 0.72
"""Parts of the largest size down to which any lines are chosen, and those without a fault."""
_SMALLER_COST = 1.0
"""Of a size below `_HARDLY_SMALLER`: less than that of a short line or a small word at an end."""
_SIZE_COST = 6.0
"""Of a size that is smaller, by the part of the largest that it lacks: 0.9 for 15 %."""
_MUCH_SMALLER = 0.7
"""Lines end inside phrases and at hyphens where the text would else be such a part of its size."""
_SPARE = 0.995
"""Part of the width that is planned with: drawn lines may be a little wider."""
_LEAST_GAP_EM = 0.03
"""Between the ink of a line and that of the next."""
_CENTRE_EM = 0.375
"""Half a capital's height: a line's box is centred on it."""
_ELLIPSIS_EM = 1.0
_ROUNDED_PX = 2
"""What rounding adds to the height of a block, and 1 for each line."""


class Style(NamedTuple):
    """How a text is set: at the largest size at which it fits; at the smallest it is cut."""

    weight: int
    largest_px: int
    smallest_px: int
    # from one baseline to the next, in parts of the size
    leading: float = 1.15
    max_lines: int = 1


class LinePlan(NamedTuple):
    """Where each line of a text begins and ends, and its size. If cut, the last has an ellipsis."""

    spans: list[Span]
    size_px: int
    is_cut: bool = False


class Block(NamedTuple):
    """Lines under one another: line `n` is `first_baseline_px + n * line_height_px` below the top.

    All ink is within `width_px` x `height_px`. `rtl` is the paragraph's direction.
    """

    lines: list[TextLine]
    size_px: int
    line_height_px: int
    first_baseline_px: int
    width_px: int
    height_px: int
    rtl: bool
    is_cut: bool


def fit(
    fonts: Fonts,
    text: str,
    style: Style,
    width_px: int,
    height_px: float = inf,
    *,
    language: str = "ja",
    shorter: Sequence[str] = (),
) -> Block:
    """The text as large as it fits a box, cut if the style's smallest size is too large.

    Instead of being cut, it is replaced by the first of the `shorter` texts that fits, else by the
    last one.
    """
    for tried in (text, *shorter):
        paragraph = Paragraph(
            fonts, tried, style.weight, language=language
        )
        plan = planned(paragraph, style, width_px, height_px)
        if not plan.is_cut:
            break
    return drawn(paragraph, plan, style, width_px)


def planned(
    paragraph: Paragraph,
    style: Style,
    width_px: int,
    height_px: float = inf,
) -> LinePlan:
    """The best lines of a paragraph in a box.

    Lines end inside a word only where it is wider than the box at the smallest size.
    """
    if not paragraph.graphemes:
        return LinePlan([], style.smallest_px)
    setting = _Setting(paragraph, style, width_px, height_px)
    if paragraph.is_truncated or setting.is_too_small:
        return setting.cut()
    plan = setting.best(Break.GOOD)
    if paragraph.has_compounds and not _is_large(plan, style.largest_px):
        other = setting.best(Break.ALLOWED)
        if other and not _is_large(plan, other.size_px):
            plan = other
    return plan or setting.cut()


def drawn(
    paragraph: Paragraph, plan: LinePlan, style: Style, width_px: int
) -> Block:
    """The lines of a plan, drawn. They get smaller if one is wider than was planned."""
    lines = _lines(paragraph, plan)
    while (
        widest_px := _widest_px(lines)
    ) > width_px and plan.size_px > 1:
        size_px = min(
            plan.size_px - 1, plan.size_px * width_px // widest_px
        )
        plan = plan._replace(size_px=max(1, size_px))
        lines = _lines(paragraph, plan)
    return Block(
        lines,
        plan.size_px,
        ceil(_line_em(paragraph, style.leading) * plan.size_px),
        ceil(_first_em(paragraph, style.leading) * plan.size_px),
        widest_px,
        height_px(paragraph, plan, style),
        paragraph.rtl,
        plan.is_cut,
    )


def height_px(paragraph: Paragraph, plan: LinePlan, style: Style) -> int:
    """The height of a plan's lines."""
    lines = len(plan.spans)
    return (
        ceil(_height_em(paragraph, style.leading, lines) * plan.size_px)
        + lines
    )


def _is_large(plan: LinePlan | None, size_px: int) -> bool:
    return plan is not None and plan.size_px >= _MUCH_SMALLER * size_px


def _lines(paragraph: Paragraph, plan: LinePlan) -> list[TextLine]:
    lines = [paragraph.line(*span, plan.size_px) for span in plan.spans]
    if plan.is_cut:
        lines[-1] = paragraph.line(
            *plan.spans[-1], plan.size_px, ellipsis=True
        )
    return lines


def _widest_px(lines: list[TextLine]) -> int:
    return max((line.width_px for line in lines), default=0)


def _first_em(paragraph: Paragraph, leading: float) -> float:
    """The first baseline below the top of a block."""
    return max(leading / 2 + _CENTRE_EM, paragraph.ascent_em)


def _line_em(paragraph: Paragraph, leading: float) -> float:
    return max(
        leading,
        paragraph.ascent_em + paragraph.descent_em + _LEAST_GAP_EM,
    )


def _height_em(paragraph: Paragraph, leading: float, lines: int) -> float:
    last_em = max(leading / 2 - _CENTRE_EM, paragraph.descent_em)
    between_em = _line_em(paragraph, leading) * (lines - 1)
    return _first_em(paragraph, leading) + between_em + last_em


class _Setting:
    """One paragraph and one box."""

    def __init__(
        self,
        paragraph: Paragraph,
        style: Style,
        width_px: int,
        height_px: float,
    ) -> None:
        self._paragraph = paragraph
        self._style = style
        self._width_px = width_px * _SPARE
        self._longest_em = self._width_px / style.smallest_px
        self.is_too_small = (
            paragraph.total_em > style.max_lines * self._longest_em
        )
        self._largest_px = []
        for lines in range(1, style.max_lines + 1):
            spare_px = height_px - _ROUNDED_PX - lines
            by_height_px = spare_px / _height_em(
                paragraph, style.leading, lines
            )
            self._largest_px.append(min(style.largest_px, by_height_px))
        """The largest size of one line, of two, and so on, by the height of the box."""

    def best(self, least: Break) -> LinePlan | None:
        """The best of size and sense of lines that end at such a break or a better one, or None.

        The sizes that are tried are the largest one that fits, and those down to 85 % of it.
        Smaller ones, down to 72 %, are taken only where lines lose a fault by it.
        """
        words = self._paragraph.words(least, self._longest_em)
        found: list[tuple[float, Lines]] = []
        sizes = []
        for tried_px in self._sizes():
            found = found or self._set(words, tried_px)
            if found:
                sizes.append(tried_px)
        if not found:
            return None
        largest_px, _ = max(found)
        # Smaller sizes first: their lines are those of larger ones too if they fit.
        for tried_px in reversed(sizes):
            if tried_px >= _LEAST_SIZE * largest_px:
                found += self._set(words, tried_px)
        largest_px, _ = max(found)
        size_px, lines = min(
            found, key=lambda one: _cost(one[1].cost, one[0] / largest_px)
        )
        return LinePlan(lines.spans, int(size_px))

    def cut(self) -> LinePlan:
        """As much as fits at the smallest size, with an ellipsis."""
        size_px = self._style.smallest_px
        most = max(
            1,
            sum(largest_px >= size_px for largest_px in self._largest_px),
        )
        words = self._paragraph.words(Break.ALLOWED, self._longest_em)
        spans = words.wrapped(self._longest_em)[:most]
        start, _ = spans.pop()
        end = self._paragraph.cut(start, self._longest_em - _ELLIPSIS_EM)
        return LinePlan([*spans, (start, end)], size_px, is_cut=True)

    def _sizes(self) -> Iterator[float]:
        size_px: float = self._style.largest_px
        while size_px > self._style.smallest_px:
            yield size_px
            size_px *= _NEXT_SIZE
        yield self._style.smallest_px

    def _set(
        self, words: Words, tried_px: float
    ) -> list[tuple[float, Lines]]:
        """The best lines that fit at a size, of each number, and how large they can be."""
        found = []
        width_em = self._width_px / tried_px
        for count, by_height in enumerate(self._largest_px, 1):
            if tried_px > by_height:
                break
            lines = words.by_sense(width_em, count)
            if lines:
                by_width = self._width_px / max(lines.width_em, 0.01)
                found.append((min(by_height, by_width), lines))
        return found


def _cost(cost: float, size: float) -> float:
    """How bad lines are with their size, in parts of the largest."""
    smaller_cost = _SMALLER_COST if size < _HARDLY_SMALLER else 0.0
    return cost + _SIZE_COST * (1 - size) + smaller_cost
