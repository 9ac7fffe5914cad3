"""Sets text into a box: shrink to fit, then wrap in balanced lines, then cut on a grapheme with an ellipsis.

Lines are planned with widths in em, which hold at any size; only the lines that will be drawn are measured exactly.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, count, groupby, pairwise
from math import ceil

from cardbeat.typeset import bidi
from cardbeat.typeset.breaks import Break, breaks
from cardbeat.typeset.clusters import BREAK_HERE, clean, clusters
from cardbeat.typeset.fonts import Fonts, Glyphs, Slice, language_of
from cardbeat.typeset.line import Line, LineBuilder

ELLIPSIS = "…"
_SIZE_STEP_PX = 2
_NARROWEST_EM = 0.22
"""About the width of an `i`: no more of them are laid out than could stand in the box."""
_SAMPLE = 60
"""Graphemes that show how shaping changes the widths of a script."""
_TRIES = 3
"""Lines planned too full are planned again with what was learnt of their true width."""
_CENTRE_EM = 0.375
"""Half a capital's height: a line's box is centred on it."""
Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Block:
    """Lines under one another: line `n` has its baseline `first_baseline_px + n * line_height_px` below the top.

    All ink is within `width_px` x `height_px`. `rtl` is the paragraph's direction by its first strong character;
    `missing` counts the characters that no font has, which are drawn as nothing.
    """

    lines: tuple[Line, ...]
    size_px: int
    line_height_px: int
    first_baseline_px: int
    width_px: int
    height_px: int
    rtl: bool
    missing: int
    cut: bool


@dataclass(frozen=True, slots=True)
class Box:
    """What a text has to stand in."""

    width_px: int
    height_px: float
    max_lines: int
    leading: float
    balance: bool

    def lines_at(self, size_px: int) -> int:
        return max(1, min(self.max_lines, int(self.height_px / (size_px * self.leading) + 0.01)))


@dataclass(frozen=True, slots=True)
class Word:
    """Graphemes `start` to `end` that stay together; `ink_em` leaves out the space at the end."""

    start: int
    end: int
    ink_em: float
    full_em: float


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
    balance: bool = True,
    language: str | None = None,
) -> Block:
    """Sets `text` at the largest size, in steps, at which it stands in the box; at `min_size_px` it is cut.

    The box is `width_px` by `max_lines`, and by `height_px` where that is given. `language` ("ja", "ko", "zh-Hans",
    "zh-Hant") chooses Han shapes where the text alone can't: `fonts.language_of` tells it from all texts of a card.
    """
    box = Box(width_px, height_px or 1e9, max_lines, leading, balance)
    room = ceil(max_lines * width_px / (min_size_px * _NARROWEST_EM)) + 8
    paragraph = Paragraph(fonts, text, room=room, weight=weight, language=language)
    for least in (Break.GOOD, Break.EMERGENCY, Break.NEVER):
        words = paragraph.words(least)
        for size in range(size_px, min_size_px - 1, -_SIZE_STEP_PX):
            if block := paragraph.set(words, size, box):
                return block
        if all(word.ink_em * min_size_px <= width_px for word in words):
            break
    return paragraph.cut(words, min_size_px, box)


class Paragraph:
    """One text with its fonts, levels and breaks found, ready to be set at any size."""

    def __init__(self, fonts: Fonts, text: str, *, room: int, weight: int, language: str | None) -> None:
        text, self._missing = fonts.drawable(clean(text))
        graphemes = clusters(text[: 4 * room])
        self._fonts, self._weight = fonts, weight
        # A line of Han can need more faces than `fonts` keeps open: opened again for each line, they would cost most.
        self._faces = cache(lambda slice_, size: fonts.face(slice_, weight, size))
        self._cut = len(graphemes) > room
        graphemes = graphemes[:room]
        whole = "".join(graphemes)
        self.rtl = bidi.is_rtl(whole)
        self._breaks = breaks(graphemes)
        self._levels = _levels(graphemes, whole, self.rtl)
        self._glyphs = fonts.choose(graphemes, language_of(whole, language))
        self._space = [g in (" ", BREAK_HERE) for g in graphemes]
        self._factors = self._shaping_factors()
        self._stretch = 1.0
        self._heights_em: dict[int, float] = {}
        """Of blocks of so many lines that were too high: one in a smaller size will be as high in em."""

    def words(self, least: Break) -> list[Word]:
        """What stays together when lines may break at `least` or better."""
        starts = [i for i, good in enumerate(self._breaks) if i == 0 or good >= least]
        return [self._word(start, end) for start, end in pairwise([*starts, len(self._glyphs)])]

    def set(self, words: Sequence[Word], size: int, box: Box) -> Block | None:
        """The block at this size, or None where it does not stand in the box."""
        for _ in range(_TRIES):
            spans = self._planned(words, size, box)
            if not spans:
                return None
            lines = [self._line(start, end, size) for start, end in spans]
            block = self._block(lines, size, box, cut=False)
            if block.height_px > box.height_px:
                self._heights_em[len(lines)] = block.height_px / size
                return None
            if block.width_px <= box.width_px:
                return block
            self._stretch *= block.width_px / box.width_px
        return None

    def _planned(self, words: Sequence[Word], size: int, box: Box) -> list[Span]:
        """The lines at this size as spans of graphemes, or none where it is too large."""
        width_em = box.width_px / size / self._stretch
        if self._cut or any(word.ink_em > width_em for word in words):
            return []
        spans = _wrapped(words, width_em)
        if len(spans) > box.lines_at(size) or self._heights_em.get(len(spans), 0) * size > box.height_px:
            return []
        return _balanced(words, width_em, len(spans)) if box.balance and len(spans) > 1 else spans

    def cut(self, words: Sequence[Word], size: int, box: Box) -> Block:
        """The block at this size with as many graphemes as stand in the box, and an ellipsis."""
        most = box.lines_at(size)
        while True:
            block = self._block(self._cut_lines(words, size, box.width_px, most), size, box, cut=True)
            over_px = block.height_px - box.height_px
            if over_px <= 0 or most == 1:
                return block
            most = max(1, min(len(block.lines), most) - ceil(over_px / block.line_height_px))

    def _cut_lines(self, words: Sequence[Word], size: int, width_px: int, most: int) -> list[Line]:
        """The last of them ends in an ellipsis; a line of one grapheme wider than the box is left out."""
        for _ in range(_TRIES):
            spans = _wrapped(words, width_px / size / self._stretch)[:most]
            lines = [self._line(start, end, size) for start, end in spans[:-1]]
            widest = max((line.width_px for line in lines), default=0.0)
            if widest <= width_px:
                break
            self._stretch *= widest / width_px
        last = [self._last_line(start, size, width_px) for start, _ in spans[-1:]]
        return [line for line in lines + last if line.width_px <= width_px]

    def _last_line(self, start: int, size: int, width_px: int) -> Line:
        """As many graphemes as stand before an ellipsis: first as planned, then corrected by what was drawn."""
        ends_em = self._ends_em(start)
        low, high = start, len(self._glyphs)
        best, stretch = self._line(start, start, size, ellipsis=True), self._stretch
        room = width_px - best.width_px
        for tries in count():
            planned = start + bisect_right(ends_em, room / size / stretch)
            if low == high or start < planned <= low:
                break
            end = min(max(planned, low + 1), high) if tries < _TRIES else (low + high + 1) // 2
            line = self._line(start, end, size, ellipsis=True)
            if ends_em[end - start - 1]:
                stretch = max(0.1, (line.width_px + room - width_px) / size / ends_em[end - start - 1])
            if line.width_px <= width_px:
                low, best = end, line
            else:
                high = end - 1
        return best

    def _ends_em(self, start: int) -> list[float]:
        """The planned width from `start` to the end of each grapheme after it."""
        return list(accumulate(self._width_em(i, i + 1) for i in range(start, len(self._glyphs))))

    def _word(self, start: int, end: int) -> Word:
        stop = self._without_space(start, end)
        ink, full = self._width_em(start, stop), self._width_em(stop, end)
        return Word(start, end, ink, ink + full)

    def _without_space(self, start: int, end: int) -> int:
        while end > start and self._space[end - 1]:
            end -= 1
        return end

    def _width_em(self, start: int, end: int) -> float:
        return sum(
            self._fonts.width_em(slice_, self._weight, texts, bool(level % 2)) * self._factors.get(slice_, 1)
            for slice_, level, texts in self._runs(self._glyphs[start:end], self._levels[start:end])
        )

    def _shaping_factors(self) -> dict[Slice, float]:
        samples: dict[Slice, tuple[int, list[str]]] = {}
        for slice_, level, texts in self._runs(self._glyphs, self._levels):
            if slice_.shaped:
                samples.setdefault(slice_, (level, []))[1].extend(texts)
        return {
            slice_: self._fonts.shaping_factor(slice_, self._weight, texts[:_SAMPLE], bool(level % 2))
            for slice_, (level, texts) in samples.items()
        }

    @staticmethod
    def _runs(glyphs: Sequence[Glyphs], levels: Sequence[int]) -> list[tuple[Slice, int, list[str]]]:
        """Neighbours that one font draws in one direction, in reading order."""
        pairs = zip(glyphs, levels, strict=True)
        drawn = [(slice_, level, text) for glyphs, level in pairs for slice_, text in glyphs.pieces]
        return [(key[0], key[1], [item[2] for item in group]) for key, group in groupby(drawn, key=lambda d: d[:2])]

    def _line(self, start: int, end: int, size: int, ellipsis: bool = False) -> Line:
        end = self._without_space(start, end)
        glyphs, levels = self._glyphs[start:end], self._levels[start:end]
        if ellipsis:
            glyphs += self._fonts.choose([ELLIPSIS], "ja")
            levels = [*levels, int(self.rtl)]
        runs = self._runs(glyphs, levels)
        line = LineBuilder(self._faces, size)
        for slice_, level, texts in bidi.visual(runs, [level for _, level, _ in runs]):
            line.add(slice_, bool(level % 2), texts)
        return line.built()

    def _block(self, lines: list[Line], size: int, box: Box, cut: bool) -> Block:
        above, below = size * (box.leading / 2 + _CENTRE_EM), size * (box.leading / 2 - _CENTRE_EM)
        pitch = max([size * box.leading, *(a.descent_px + b.ascent_px for a, b in pairwise(lines))])
        first = ceil(max([above, *(line.ascent_px for line in lines[:1])]))
        last = max([below, *(line.descent_px for line in lines[-1:])])
        height = ceil(first + ceil(pitch) * (len(lines) - 1) + last) if lines else 0
        width = max((line.width_px for line in lines), default=0)
        return Block(tuple(lines), size, ceil(pitch), first, width, height, self.rtl, self._missing, cut)


def _levels(graphemes: Sequence[str], whole: str, rtl: bool) -> list[int]:
    """The level of each grapheme is its first character's."""
    every, at, found = bidi.levels(whole, rtl), 0, []
    for grapheme in graphemes:
        found.append(every[at])
        at += len(grapheme)
    return found


def _wrapped(words: Sequence[Word], width_em: float) -> list[Span]:
    """Lines as spans of graphemes, each filled with as many words as it holds."""
    spans: list[Span] = []
    used = 0.0
    for word in words:
        if spans and used + word.ink_em <= width_em:
            spans[-1] = spans[-1][0], word.end
            used += word.full_em
        else:
            spans.append((word.start, word.end))
            used = word.full_em
    return spans


def _balanced(words: Sequence[Word], width_em: float, count: int) -> list[Span]:
    """The same number of lines in the narrowest measure that holds them: lines of like length."""
    low, high = max(word.ink_em for word in words), width_em
    for _ in range(12):
        middle = (low + high) / 2
        if len(_wrapped(words, middle)) <= count:
            high = middle
        else:
            low = middle
    return _wrapped(words, high)
