"""A text with its fonts, directions and line breaks found, of which lines of any size are drawn."""

import re
from bisect import bisect_right
from collections.abc import Collection
from functools import cache, partial
from itertools import accumulate, pairwise
from math import ceil
from typing import NamedTuple
from unicodedata import category, east_asian_width

from cardbeat.typeset.faces.catalogue import NASTALIQ, FontSubset
from cardbeat.typeset.faces.fonts import FontChoice, Fonts, runs_of
from cardbeat.typeset.line import Drawn, LineBuilder, TextLine
from cardbeat.typeset.unicode import bidi
from cardbeat.typeset.unicode.breaks import Break, breaks_at_hyphens
from cardbeat.typeset.unicode.clusters import LINE_CONTROLS, ZWSP, clean_for_lines, clusters, is_european, stray_marks
from cardbeat.typeset.unicode.han import language_of
from cardbeat.typeset.widths import Widths
from cardbeat.typeset.work import SLOW, SPENT_ENOUGH, TRIED_ENOUGH, UNBOUNDED, Work, graphemes_within
from cardbeat.typeset.wrap import Word

ELLIPSIS = "…"
HYPHEN = "-"
_PENALTIES = {Break.GOOD: 0.0, Break.FAIR: 0.1, Break.POOR: 0.3, Break.EMERGENCY: 1.0, Break.NEVER: 1.0}
"""`Word.penalty` by the break at the end of a line."""
_NASTALIQ_EM, _OTHER_EM, _MIXED_EM, _MANY_FONTS = 2.1, 1.25, 1.45, 4
"""Height of most lines of Nastaliq, of other scripts than European and Han, and of so many fonts of those."""
_STAY = frozenset("!?%‰°′″'’\"*&…")
"""Punctuation after which an ellipsis looks right, beside closing brackets and quotation marks."""
_NOT_LAST, _NOT_FIRST = frozenset("&+=→⇒≠≤≥<>(@"), frozenset("–—→⇒≠≤≥=0123456789")
"""What a line had better not end with, and not begin with: a number belongs to the name before it."""
_IS_SMALL = re.compile("[a-zà-öø-ÿα-ωа-я]{1,3} ").fullmatch
_LEAST_KEPT = 0.6  # part of a cut line's graphemes that must stay for it to be cut after a word
_NARROWEST_EM = 0.22  # about the width of an `i`
_WIDE = 3.8  # least width of a Han character or an emoji, in widths of an `i`
_MEASURED = 1.5
"""How many times its room a text is measured: shaped text can be narrower than the sum of its letters."""


class Style(NamedTuple):
    """How a text is set: at the largest size at which it fits, down to the smallest; there it is cut."""

    weight: int
    largest_px: int
    smallest_px: int
    leading: float = 1.15  # from one baseline to the next, in parts of the size
    max_lines: int = 1
    tracking_em: float = 0  # added to the space between letters of Latin, Greek and Cyrillic


class Paragraph:
    """One text in one style. Widths are planned, in em; drawn lines may be a little wider or narrower."""

    def __init__(
        self,
        fonts: Fonts,
        text: str,
        style: Style,
        width_px: float,
        *,
        language: str | None = None,
        max_work: int = UNBOUNDED,
    ) -> None:
        """Looks at no more text than fits lines of `width_px`; `truncated` says whether there is more.

        Past `max_work`, in the unit of `work`, runs of the text are not drawn.
        """
        room_em = style.max_lines * width_px / style.smallest_px
        most = most_graphemes(room_em)
        text, self.missing = fonts.drawable(clean_for_lines(text))
        longest = min(4 * most, 3 * graphemes_within(max_work))
        is_longer, text = len(text) > longest, text[:longest]
        graphemes = clusters(text, most + 1)
        if len(text) > sum(map(len, graphemes)) and len(graphemes) <= most:
            self.missing += sum(map(fonts.has, stray_marks(text, graphemes)))
        self._fonts, self._weight = fonts, style.weight
        # A line of Han can need more faces than `fonts` keeps open. To open them again for each line would be slow.
        self._face = cache(partial(fonts.faces.face, style.weight))
        self._drawn = Drawn()
        self._words: dict[Break, list[Word]] = {}
        self._lines: dict[tuple[int, int, int, bool], TextLine] = {}
        self.stretch = 1.0  # of the widest line that was drawn, in parts of its planned width
        self.heights_em: dict[tuple[int, float], float] = {}
        """Heights of blocks too high for their box, by number of lines and leading: in em they hold at any size."""
        most = min(bisect_right(list(accumulate(map(_least_width, graphemes))), most), graphemes_within(max_work))
        self.truncated = is_longer or len(graphemes) > most
        self._graphemes, self._levels, self.rtl, hyphens = bidi.ordered(graphemes[:most])
        whole = "".join(self._graphemes)
        self._language = language_of(whole, language)
        choices = fonts.choose(self._graphemes, self._language)
        work = Work(style.weight, max_work)
        self._choices = work.affordable(choices, self._levels, len(whole))
        self.missing += sum(choice.missing for choice in choices)
        self.work = work.spent  # the cost of all text that is looked at, also of what is cut later
        self._may_try = min(max(0, TRIED_ENOUGH - work.again), SPENT_ENOUGH - work.spent)
        self.slow = work.again > SLOW
        self.line_em = _line_em({piece.subset for choice in self._choices for piece in choice.pieces})
        """A guess of the height of a line that is higher than most, else 0."""
        looked_at = zip(self._graphemes, choices, self._choices, strict=True)
        self._left_out = [0 if g.isspace() else len(g) * (a is not b) for g, a, b in looked_at]
        self._widths = Widths(
            fonts.faces,
            self._choices,
            self._levels,
            weight=style.weight,
            tracking_em=style.tracking_em if any(map(is_european, whole)) else 0,
            most_em=_MEASURED * room_em,
        )
        self.truncated |= self._widths.total_em > _MEASURED * room_em
        self._breaks, self._hyphens = breaks_at_hyphens(self._graphemes[: len(self)], self._language, hyphens)

    def __len__(self) -> int:
        """The number of graphemes; `words` and `line` count places in them."""
        return len(self._widths.alone_em)

    def words(self, least: Break) -> list[Word]:
        """What stays together when lines may break at `least` or better. Kept, as each box that is tried asks again."""
        if least not in self._words:
            starts = [i for i, good in enumerate(self._breaks) if i == 0 or good >= least]
            self._words[least] = [self._word(start, end) for start, end in pairwise([*starts, len(self)])]
        return self._words[least]

    def is_spelled(self, word: Word) -> bool:
        """Whether a word has a letter or a digit."""
        return any(grapheme[0].isalnum() for grapheme in self._graphemes[word.start : word.end])

    def has(self, quality: Break) -> bool:
        """Whether any break is of exactly this quality."""
        return quality in self._breaks

    def ends_em(self, start: int) -> list[float]:
        """The width from `start` to the end of each grapheme after it, also where the letters of a word join."""
        widths = self._widths.alone_em[:]
        for word in self.words(Break.FAIR) if any(level % 2 for level in self._levels) else ():
            letters = widths[word.start : word.end]
            widths[word.start : word.end] = [em * word.full_em / (sum(letters) or 1) for em in letters]
        return list(accumulate(widths[start:]))

    @property
    def tried_enough(self) -> bool:
        """Whether so much of it was drawn, or it costs so much, that only its smallest size should be tried."""
        return self._drawn.cost > self._may_try

    @property
    def blank(self) -> bool:
        """Whether no font has a glyph for any character of the text."""
        return not any(choice.pieces for choice in self._choices)

    def cut_place(self, start: int, end: int) -> int:
        """The best place, no later than `end`, for an ellipsis: after a word, if possible not "and", without the comma.

        It is inside a word where the line would lose more than 40 % of its graphemes otherwise.
        """
        places = (i for i in range(end, start, -1) if i < len(self) and self._breaks[i] >= Break.FAIR)
        place, before, *_ = *places, start, start
        least = start + _LEAST_KEPT * (end - start)
        if before >= least and _IS_SMALL("".join(self._graphemes[before:place])):
            place = before
        elif place < least:
            place = end
        return next((kept for kept in range(place, start, -1) if not hangs(self._graphemes[kept - 1])), place)

    def line(self, start: int, end: int, size_px: int, ellipsis: bool = False) -> TextLine:
        """The drawn line of graphemes `start` to `end`, without spaces at its end. Kept for the next box."""
        key = start, end, size_px, ellipsis
        if key not in self._lines:
            self._lines[key] = self._new_line(*key)
        return self._lines[key]

    def _new_line(self, start: int, end: int, size_px: int, ellipsis: bool) -> TextLine:
        hyphen = end in self._hyphens and not ellipsis
        end = self._without_space(start, end)
        choices, levels = self._choices[start:end], self._levels[start:end]
        if ellipsis:
            choices += self._fonts.choose([ELLIPSIS], "ja")
            levels = [*levels, int(self.rtl)]
        elif hyphen:
            choices.append(self._hyphen(end))
            levels = [*levels, levels[-1]]
        runs = runs_of(choices, levels)
        line = LineBuilder(self._face, size_px, self._drawn)
        for subset, level, texts in bidi.in_visual_order(runs, [level for _, level, _ in runs]):
            if self._widths.tracking_em(subset, level):
                line.add_apart(subset, texts, self._widths.places_em(subset, texts))
            else:
                line.add(subset, bool(level % 2), texts)
        return line.built(sum(self._left_out[start:end]))

    def _word(self, start: int, end: int) -> Word:
        stop = self._without_space(start, end)
        ink, space = self._widths.between_em(start, stop), self._widths.between_em(stop, end)
        hyphen = self._hyphen_em(end) if end in self._hyphens else 0.0
        penalty = _PENALTIES[self._breaks[end] if end < len(self) else Break.GOOD]
        if end < len(self) and (self._graphemes[stop - 1] in _NOT_LAST or self._graphemes[end] in _NOT_FIRST):
            penalty += _PENALTIES[Break.POOR]
        return Word(start, end, ink + hyphen, ink + space, penalty)

    def _hyphen(self, end: int) -> FontChoice:
        """The hyphen drawn at a soft hyphen that ends a line, in the font of the letter before it."""
        return self._fonts.choose([self._graphemes[end - 1], HYPHEN], self._language)[1]

    def _hyphen_em(self, end: int) -> float:
        width_em, pieces = self._fonts.faces.width_em, self._hyphen(end).pieces
        return sum(width_em(subset, self._weight, [text], False) for subset, text in pieces)

    def _without_space(self, start: int, end: int) -> int:
        while end > start and self._graphemes[end - 1] in (" ", "\u3000", ZWSP):
            end -= 1
        return end


def most_graphemes(width_em: float) -> int:
    """More graphemes than fit that width."""
    return ceil(width_em / _NARROWEST_EM) + 8


def hangs(grapheme: str) -> bool:
    """Whether it looks wrong before an ellipsis: spaces, commas, dashes, opening brackets and the like."""
    kind = category(grapheme[0])
    return kind[0] in "ZP" and kind not in ("Pe", "Pf") and grapheme[0] not in _STAY


def _line_em(fonts: Collection[FontSubset]) -> float:
    if any(font.name == NASTALIQ for font in fonts):
        return _NASTALIQ_EM
    others = sum(not font.square and not font.european for font in fonts)
    return _MIXED_EM if others >= _MANY_FONTS else _OTHER_EM * (others > 0)


def _least_width(grapheme: str) -> float:
    if grapheme in LINE_CONTROLS:
        return 0
    return _WIDE if east_asian_width(grapheme[0]) in "WF" else 1
