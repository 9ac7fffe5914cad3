"""A text with its fonts, directions and line breaks found, from which lines of any size are drawn."""

from bisect import bisect_right
from itertools import accumulate, pairwise
from typing import NamedTuple
from unicodedata import east_asian_width

from cardbeat.typeset import bidi
from cardbeat.typeset.breaks import Break
from cardbeat.typeset.catalogue import FontSubset
from cardbeat.typeset.clusters import LINE_CONTROLS, ZWSP, clean_for_lines, clusters, stray_marks
from cardbeat.typeset.controls import breaks_at_hyphens, hangs, ordered
from cardbeat.typeset.faces import Face
from cardbeat.typeset.fallback import FontChoice, runs_of
from cardbeat.typeset.fonts import Fonts
from cardbeat.typeset.han import language_of
from cardbeat.typeset.line import Drawn, LineBuilder, TextLine
from cardbeat.typeset.tracking import Tracking
from cardbeat.typeset.widths import Widths
from cardbeat.typeset.work import Work, graphemes_within
from cardbeat.typeset.wrap import Word

ELLIPSIS = "…"
HYPHEN = "-"
_PENALTIES = {Break.GOOD: 0.0, Break.FAIR: 0.1, Break.POOR: 0.3, Break.EMERGENCY: 1.0, Break.NEVER: 1.0}
"""How much worse lines are that end so: in parts of what one of middle width counts in `wrap.balanced`."""
_LEAST_KEPT = 0.6
"""The part of a cut line's graphemes that stays where it is cut after a word."""
_MANY_RUNS = 30
"""Hindi with ten English words in it has 21."""
_WIDE = 3.8
"""The least width of a Han character or an emoji, in narrowest letters."""


class Room(NamedTuple):
    """How much of a text is looked at: more than could stand in its box."""

    graphemes: int
    """Of the narrowest; a wide one counts as `_WIDE` of them."""
    width_em: float


class Paragraph:
    """One text in one weight. Widths are planned, in em; what is drawn may differ a little."""

    def __init__(
        self,
        fonts: Fonts,
        text: str,
        *,
        room: Room,
        weight: int,
        language: str | None,
        max_work: int,
        tracking_em: float = 0,
    ) -> None:
        """Looks only at as much text as `room` says; `truncated` says whether there is more.

        Of a text that takes more than `max_work`, in the unit of `work`, what begins another run then is not drawn.
        """
        text, self.missing = fonts.repertoire.drawable(clean_for_lines(text))
        text = text[: 4 * room.graphemes]
        graphemes = clusters(text, room.graphemes + 1)
        if len(text) > sum(map(len, graphemes)) and len(graphemes) <= room.graphemes:
            self.missing += sum(map(fonts.repertoire.has, stray_marks(text, graphemes)))
        self._fonts, self._weight = fonts, weight
        # A line of Han can need more faces than `fonts` keeps open: opened again for each line, they would cost most.
        self._opened: dict[tuple[FontSubset, int, bool], Face] = {}
        self._drawn = Drawn()
        self._words: dict[Break, list[Word]] = {}
        self._lines: dict[tuple[int, int, int, bool], TextLine] = {}
        self.heights_em: dict[tuple[int, float], float] = {}
        """Of blocks of so many lines with such a leading that were too high for a box: one in a smaller size will be
        as high in em."""
        most = bisect_right(list(accumulate(map(_least_width, graphemes))), room.graphemes)
        most = min(most, graphemes_within(max_work))
        self.truncated = len(graphemes) > most
        graphemes, self._levels, self.rtl, hyphens = ordered(graphemes[:most])
        self._graphemes = graphemes
        whole = "".join(graphemes)
        self._tracking = Tracking(fonts.advances, weight, tracking_em, whole)
        self._language = language_of(whole, language)
        choices = fonts.fallback.choose(graphemes, self._language)
        work = Work(weight, max_work)
        self._choices = work.affordable(choices, self._levels)
        self.missing += sum(choice.missing for choice in choices)
        self.work = work.spent
        """Of all that is looked at, whether it will stand in the box or not."""
        self.has_many_runs = work.runs > _MANY_RUNS
        self._left_out = [
            0 if g.isspace() else len(g) * (a is not b)
            for g, a, b in zip(graphemes, choices, self._choices, strict=True)
        ]
        self._space = [g in (" ", "\u3000", ZWSP) for g in graphemes]
        self._widths = Widths(fonts.advances, weight, self._tracking, self._choices, self._levels)
        self._end = len(graphemes)
        self._end = self._end_within(room.width_em)
        self._breaks, self._hyphens = breaks_at_hyphens(graphemes[: self._end], self._language, hyphens)

    def __len__(self) -> int:
        """Graphemes, of which `words` and `line` count places."""
        return self._end

    def words(self, least: Break) -> list[Word]:
        """What stays together when lines may break at `least` or better. Asked for each box that is tried."""
        if least not in self._words:
            self._words[least] = self._parted(least)
        return self._words[least]

    def _parted(self, least: Break) -> list[Word]:
        starts = [i for i, good in enumerate(self._breaks) if i == 0 or good >= least]
        return [self._word(start, end) for start, end in pairwise([*starts, len(self)])]

    def has(self, quality: Break) -> bool:
        """Whether a line may end somewhere just that well."""
        return quality in self._breaks

    def ends_em(self, start: int) -> list[float]:
        """The width from `start` to the end of each grapheme after it."""
        return list(accumulate(map(self._widths.alone_em, range(start, len(self)))))

    @property
    def blank(self) -> bool:
        """Whether no font has any of it."""
        return not any(choice.pieces for choice in self._choices)

    def cut_place(self, start: int, end: int) -> int:
        """Where best to cut a line before an ellipsis, no later than `end`: after a word, without the comma after it.

        Inside a word where the line would lose too much otherwise.
        """
        place = next((i for i in range(end, start, -1) if i < len(self) and self._breaks[i] >= Break.FAIR), start)
        if place - start < _LEAST_KEPT * (end - start):
            place = end
        kept = place
        while kept > start and hangs(self._graphemes[kept - 1]):
            kept -= 1
        return kept if kept > start else place

    def line(self, start: int, end: int, size_px: int, ellipsis: bool = False) -> TextLine:
        """Graphemes `start` to `end` without the spaces at their end, drawn. Kept, as the next box may need it too."""
        key = start, end, size_px, ellipsis
        if key not in self._lines:
            self._lines[key] = self._new_line(*key)
        return self._lines[key]

    def _new_line(self, start: int, end: int, size_px: int, ellipsis: bool) -> TextLine:
        hyphen = end in self._hyphens and not ellipsis
        end = self._without_space(start, end)
        choices, levels = self._choices[start:end], self._levels[start:end]
        if ellipsis:
            choices += self._fonts.fallback.choose([ELLIPSIS], "ja")
            levels = [*levels, int(self.rtl)]
        elif hyphen:
            choices.append(self._hyphen(end))
            levels = [*levels, levels[-1]]
        runs = runs_of(choices, levels)
        line = LineBuilder(self._face, size_px, self._drawn)
        for subset, level, texts in bidi.in_visual_order(runs, [level for _, level, _ in runs]):
            if self._tracking.em(subset, level):
                line.add_apart(subset, texts, self._tracking.places_em(subset, texts))
            else:
                line.add(subset, bool(level % 2), texts)
        return line.built(sum(self._left_out[start:end]))

    def _face(self, subset: FontSubset, size_px: int, shaped: bool) -> Face:
        key = subset, size_px, shaped
        if key not in self._opened:
            self._opened[key] = self._fonts.faces.face(subset, self._weight, size_px, shaped)
        return self._opened[key]

    def _end_within(self, width_em: float) -> int:
        """Where the text has become wider than that: what comes after is not even measured."""
        total = 0.0
        for end in range(1, len(self) + 1):
            total += self._widths.alone_em(end - 1)
            if total > width_em:
                self.truncated = True
                return end
        return len(self)

    def _word(self, start: int, end: int) -> Word:
        stop = self._without_space(start, end)
        ink, space = self._widths.between_em(start, stop), self._widths.between_em(stop, end)
        hyphen = self._hyphen_em(end) if end in self._hyphens else 0.0
        quality = self._breaks[end] if end < len(self) else Break.GOOD
        return Word(start, end, ink + hyphen, ink + space, _PENALTIES[quality])

    def _hyphen(self, end: int) -> FontChoice:
        """At a soft hyphen that ends a line, in the font of the letter before it."""
        return self._fonts.fallback.choose([self._graphemes[end - 1], HYPHEN], self._language)[1]

    def _hyphen_em(self, end: int) -> float:
        return sum(
            self._fonts.advances.width_em(piece.subset, self._weight, [piece.text], False)
            for piece in self._hyphen(end).pieces
        )

    def _without_space(self, start: int, end: int) -> int:
        while end > start and self._space[end - 1]:
            end -= 1
        return end


def _least_width(grapheme: str) -> float:
    if grapheme in LINE_CONTROLS:
        return 0
    return _WIDE if east_asian_width(grapheme[0]) in "WF" else 1
