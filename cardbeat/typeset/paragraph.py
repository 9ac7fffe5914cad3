"""A text with its fonts, directions, widths and line breaks found; lines of any size are drawn."""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate, chain, pairwise
from math import ceil
from typing import NamedTuple
from unicodedata import category

from PIL import Image, ImageDraw, ImageFont

from cardbeat.typeset.faces.files import FontFile
from cardbeat.typeset.faces.fonts import Fonts, Glyphs
from cardbeat.typeset.unicode import bidi
from cardbeat.typeset.unicode.breaks import Break, breaks
from cardbeat.typeset.unicode.clusters import ZWNJ, characters, clean
from cardbeat.typeset.wrap import Word, Words

ELLIPSIS = "…"
MOST_CHARACTERS = 2_000
MOST_GRAPHEMES = 300
MOST_FONT_FILES = 48
MOST_SHAPED_RUNS = 48
"""What one text may open and draw. What is past that is cut. No text in one language comes near."""
_TALLEST_EM = 1.7
_DEEPEST_EM = 1.2
"""More than any script needs: stacks of marks are cut off here."""
_WIDER = 1.1
"""Times as wide as planned that a line has room to be drawn."""
_LEAST_KEPT = 0.6
"""Part of a line that must stay for it to be cut after a word."""
_SMALL_COST = 2.8
_DASH_COST = 4.0
_INSIDE_COST = 1.0
_PAUSE_COST = -1.0
_COMMA_COST = -0.2
"""Costs of a line's end: on a small word, before a dash, inside a phrase, at a pause, at a comma.

A pause is a colon or the end of a sentence. A line of half the width costs 0.25.
"""
_DASHES = "–—-"
_COMMAS = tuple(",，、،")
_OPENING = "(\"'“‘«¿¡"
_SPACES = " \u3000\u200b"


class Run(NamedTuple):
    """Neighbouring graphemes that one font draws at one embedding level, in logical order."""

    font: FontFile
    level: int
    texts: list[str]


class Emoji(NamedTuple):
    """A picture, and the place of its upper left corner from the line's origin."""

    drawn: str
    """The private-use character that draws it."""
    picture: Image.Image
    x: int
    y: int


class TextLine(NamedTuple):
    """A drawn line. Its origin is on the baseline where its ink begins, at the left."""

    text: str
    width_px: int
    ink: Image.Image
    """Coverage ("L") of all but the emoji, from the origin on."""
    ink_y: int
    """Its upper edge below the baseline: less than 0 for most."""
    emoji: tuple[Emoji, ...]


class Paragraph:
    """One text. Widths and heights are planned in em, as they hold at any size."""

    def __init__(
        self,
        fonts: Fonts,
        text: str,
        weight: int,
        *,
        language: str = "ja",
        serif: bool = False,
        small_words: frozenset[str] = frozenset(),
    ) -> None:
        """`language` chooses Han shapes and phrases; `serif` serifs, if all letters have them."""
        text, _ = fonts.drawable(clean(text[:MOST_CHARACTERS]))
        self._fonts = fonts
        self._weight = weight
        self._small_words = small_words
        self.rtl = bidi.is_rtl(text)
        chosen = fonts.choose(text, language, serif)
        self.is_serif = serif and all(map(_has_serifs, chosen))
        if serif and not self.is_serif:
            chosen = fonts.choose(text, language)
        levels = bidi.levels(
            "".join(glyphs.grapheme[0] for glyphs in chosen), self.rtl
        )
        self._runs = _affordable(
            _runs_of(chosen[:MOST_GRAPHEMES], levels)
        )
        length = sum(len(run.texts) for run in self._runs)
        self.is_truncated = length < len(chosen)
        self._glyphs = chosen[:length]
        self._levels = levels[:length]
        self.graphemes = [glyphs.grapheme for glyphs in self._glyphs]
        self._breaks = breaks(self.graphemes, language)
        self.has_compounds = Break.ALLOWED in self._breaks
        """Whether lines may end where only a much larger size is worth it."""
        self.ascent_em = 0.0
        self.descent_em = 0.0
        self._ends_em = list(accumulate(self._widths_em(), initial=0.0))
        self.total_em = self._ends_em[-1]
        self._words: dict[tuple[Break, float], Words] = {}

    def words(self, least: Break, longest_em: float) -> Words:
        """What stays together when lines may break at `least` or better.

        Only a word that is longer than `longest_em` is divided inside.
        """
        if not self.has_compounds:
            least = Break.GOOD
        if (least, longest_em) not in self._words:
            words = self._divided(
                least, longest_em, 0, len(self.graphemes)
            )
            self._words[least, longest_em] = Words(words)
        return self._words[least, longest_em]

    def width_em(self, start: int, end: int) -> float:
        """The width of graphemes `start` to `end`."""
        return self._ends_em[end] - self._ends_em[start]

    def line(
        self,
        start: int,
        end: int,
        size_px: int,
        *,
        ellipsis: bool = False,
    ) -> TextLine:
        """The drawn line of graphemes `start` to `end`, without spaces at its end."""
        end = self._without_spaces(start, end)
        glyphs = self._glyphs[start:end]
        levels = self._levels[start:end]
        text = "".join(self.graphemes[start:end])
        if ellipsis:
            text += ELLIPSIS
            glyphs += self._fonts.choose(ELLIPSIS, "ja", self.is_serif)
            levels.append(int(self.rtl))
        runs = _runs_of(glyphs, levels)
        ordered = bidi.in_visual_order(runs, [run.level for run in runs])
        width_px = ceil(
            (self.width_em(start, end) + 1) * _WIDER * size_px
        )
        return self._drawn(text, ordered, width_px, size_px)

    def cut(self, start: int, width_em: float) -> int:
        """The end of a line from `start` on, so wide at most, before an ellipsis.

        That is the end of a word, without a comma or an opening bracket, unless 40 % would be lost.
        """
        fitting = (
            bisect_right(self._ends_em, self._ends_em[start] + width_em)
            - 1
        )
        end = fitting
        while (
            start < end < len(self.graphemes)
            and self._breaks[end] < Break.ALLOWED
        ):
            end -= 1
        if end - start < _LEAST_KEPT * (fitting - start):
            end = fitting
        while end > start and _hangs(self.graphemes[end - 1]):
            end -= 1
        return end

    def _widths_em(self) -> list[float]:
        """The width of each grapheme. Also finds the height of all, by what each font draws.

        The widths of letters are summed, then stretched as kerning and joining stretch the whole.
        So for `To` of 0.6 and 0.6 em that is 1.1 em wide as it is drawn, each counts 0.55 em.
        """
        samples: dict[tuple[FontFile, int], list[list[str]]] = {}
        for font, level, texts in self._runs:
            samples.setdefault((font, level % 2), []).append(texts)
        widths_em: dict[tuple[FontFile, int, str], float] = {}
        for (font, side), runs in samples.items():
            face = self._fonts.face(font, self._weight)
            # Letters of two runs do not join.
            sample = ZWNJ.join(map("".join, runs))
            full_em, ascent_em, descent_em = face.extent(
                sample, bool(side)
            )
            self.ascent_em = min(
                _TALLEST_EM, max(self.ascent_em, ascent_em)
            )
            self.descent_em = min(
                _DEEPEST_EM, max(self.descent_em, descent_em)
            )
            texts = list(chain.from_iterable(runs))
            alone_em = {
                text: face.advance_em(text) for text in set(texts)
            }
            sum_em = sum(map(alone_em.__getitem__, texts))
            stretch = 1.0 if font.is_square else full_em / (sum_em or 1.0)
            for text, width_em in alone_em.items():
                widths_em[font, side, text] = width_em * stretch
        pairs = zip(self._glyphs, self._levels, strict=True)
        return [
            widths_em[one.font, level % 2, one.text]
            for one, level in pairs
        ]

    def _divided(
        self, least: Break, longest_em: float, start: int, end: int
    ) -> list[Word]:
        """Words that end at `least` or better; one that is too long ends at lesser breaks too.

        Example: of `state-of-the-art` only a part that is too long by itself is divided inside.
        """
        found = []
        for first, last in self._spans(least, start, end):
            stop = self._without_spaces(first, last)
            fits = self.width_em(first, stop) <= longest_em
            if fits or least is Break.INSIDE:
                found.append(self._word(first, last))
            else:
                lesser = Break(least - 1)
                found += self._divided(lesser, longest_em, first, last)
        return found

    def _spans(
        self, least: Break, start: int, end: int
    ) -> list[tuple[int, int]]:
        places = [
            place
            for place in range(start + 1, end)
            if self._breaks[place] >= least
        ]
        return list(pairwise([start, *places, end]))

    def _word(self, start: int, end: int) -> Word:
        stop = self._without_spaces(start, end)
        cost = self._cost(start, stop, end)
        return Word(
            start,
            end,
            self.width_em(start, stop),
            self.width_em(start, end),
            cost,
        )

    def _without_spaces(self, start: int, end: int) -> int:
        while end > start and self.graphemes[end - 1] in _SPACES:
            end -= 1
        return end

    def _cost(self, start: int, stop: int, end: int) -> float:
        """How bad it is to end a line with the word from `start` to `stop`, before `end`."""
        if end >= len(self.graphemes) or stop == start:
            return 0.0
        word = "".join(self.graphemes[start:stop]).lstrip(_OPENING)
        if self.graphemes[end] in _DASHES and self.graphemes[
            end + 1 : end + 2
        ] == [" "]:
            return _DASH_COST
        if self._breaks[end] < Break.GOOD:
            return _INSIDE_COST
        if word.lower() in self._small_words:
            return _SMALL_COST
        if characters("pauses").search(word):
            return _PAUSE_COST
        return _COMMA_COST if word.endswith(_COMMAS) else 0.0

    def _drawn(
        self, text: str, runs: Sequence[Run], width_px: int, size_px: int
    ) -> TextLine:
        """A line of runs from left to right."""
        above = ceil(self.ascent_em * size_px)
        below = ceil(self.descent_em * size_px)
        # For what reaches left of the first letter.
        margin = size_px
        image = Image.new("L", (width_px + 2 * margin, above + below))
        draw = ImageDraw.Draw(image)
        x = float(margin)
        emoji: list[Emoji] = []
        for number, (font, level, texts) in enumerate(runs, 1):
            face = self._fonts.face(font, self._weight)
            run = "".join(texts)
            rtl = level % 2 == 1
            if font.is_emoji:
                emoji += _emoji_of(face.opened(size_px), run, x)
            else:
                face.draw(draw, (round(x), above), run, size_px, rtl)
            if number < len(runs):
                x += face.length_px(run, size_px, rtl)
        return _line_of(text, image, above, emoji)


def _line_of(
    text: str, image: Image.Image, above: int, emoji: Sequence[Emoji]
) -> TextLine:
    """The line in an image whose baseline is `above` below its top, without what is empty."""
    marked = image
    if emoji:
        marked = image.copy()
    for one in emoji:
        width, height = one.picture.size
        top = above + one.y
        marked.paste(255, (one.x, top, one.x + width, top + height))
    box = marked.getbbox() or (0, 0, 1, 1)
    moved = tuple(one._replace(x=one.x - box[0]) for one in emoji)
    return TextLine(
        text, box[2] - box[0], image.crop(box), box[1] - above, moved
    )


def _emoji_of(
    font: ImageFont.FreeTypeFont, text: str, x: float
) -> list[Emoji]:
    """Each emoji of a run that begins at `x`, drawn."""
    found = []
    for drawn in text:
        left, top, right, bottom = map(
            int, font.getbbox(drawn, anchor="ls")
        )
        picture = Image.new("RGBA", (right - left, bottom - top))
        draw = ImageDraw.Draw(picture)
        draw.text(
            (-left, -top),
            drawn,
            font=font,
            anchor="ls",
            embedded_color=True,
        )
        found.append(Emoji(drawn, picture, round(x) + left, top))
        x += font.getlength(drawn)
    return found


def _hangs(grapheme: str) -> bool:
    """Whether it looks wrong before an ellipsis: a space, a comma, a dash, an opening bracket."""
    kind = category(grapheme[0])
    return (
        kind[0] in "ZP"
        and kind not in ("Pe", "Pf")
        and grapheme[0] not in "!?%'\"*…"
    )


def _has_serifs(glyphs: Glyphs) -> bool:
    return glyphs.font.is_serif or not glyphs.grapheme[0].isalpha()


def _affordable(runs: Sequence[Run]) -> list[Run]:
    """The first runs, within the limits of one text."""
    found = []
    shaped_runs = 0
    files: set[FontFile] = set()
    for run in runs:
        files.add(run.font)
        shaped_runs += run.font.is_shaped
        if len(files) > MOST_FONT_FILES or shaped_runs > MOST_SHAPED_RUNS:
            break
        found.append(run)
    return found


def _runs_of(
    glyphs: Sequence[Glyphs], levels: Sequence[int]
) -> list[Run]:
    """`levels` may go on for more graphemes."""
    runs: list[Run] = []
    for one, level in zip(glyphs, levels, strict=False):
        if runs and one.font is runs[-1].font and level == runs[-1].level:
            runs[-1].texts.append(one.text)
        else:
            runs.append(Run(one.font, level, [one.text]))
    return runs
