"""A text with its fonts, directions and line breaks found, from which lines of any size are drawn."""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate, groupby, pairwise
from typing import NamedTuple
from unicodedata import east_asian_width

from cardbeat.typeset import bidi
from cardbeat.typeset.breaks import Break
from cardbeat.typeset.catalogue import FontSubset
from cardbeat.typeset.clusters import LINE_CONTROLS, ZWSP, clean_for_lines, clusters, stray_marks
from cardbeat.typeset.controls import breaks_at_hyphens, hangs, ordered
from cardbeat.typeset.faces import Face
from cardbeat.typeset.fallback import FontChoice, Piece
from cardbeat.typeset.fonts import Fonts
from cardbeat.typeset.han import language_of
from cardbeat.typeset.line import DrawnRuns, LineBuilder, TextLine
from cardbeat.typeset.tracking import Tracking
from cardbeat.typeset.work import Work
from cardbeat.typeset.wrap import Word

ELLIPSIS = "…"
HYPHEN = "-"
_PENALTIES = {Break.GOOD: 0.0, Break.FAIR: 0.1, Break.POOR: 0.3, Break.EMERGENCY: 1.0, Break.NEVER: 1.0}
"""How much worse lines are that end so: in parts of what one of middle width counts in `wrap.balanced`."""
_LEAST_KEPT = 0.6
"""The part of a cut line's graphemes that stays where it is cut after a word."""
_SAMPLE = 60
"""Graphemes that show how shaping changes the widths of a script."""
_LEAST_SAMPLE = 4
"""Fewer change the width of a line by less than is corrected when it is drawn: not worth opening their font for."""
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
        self._drawn: DrawnRuns = {}
        self._factors: dict[FontSubset, float] = {}
        self._widths_em: dict[tuple[tuple[Piece, ...], int], float] = {}
        most = bisect_right(list(accumulate(map(_least_width, graphemes))), room.graphemes)
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
        self._left_out = [
            0 if g.isspace() else len(g) * (a is not b)
            for g, a, b in zip(graphemes, choices, self._choices, strict=True)
        ]
        self._space = [g in (" ", "\u3000", ZWSP) for g in graphemes]
        self._samples = self._shaped_samples()
        self._end = len(graphemes)
        self._end = self._end_within(room.width_em)
        self._breaks, self._hyphens = breaks_at_hyphens(graphemes[: self._end], self._language, hyphens)

    def __len__(self) -> int:
        """Graphemes, of which `words` and `line` count places."""
        return self._end

    def words(self, least: Break) -> list[Word]:
        """What stays together when lines may break at `least` or better."""
        starts = [i for i, good in enumerate(self._breaks) if i == 0 or good >= least]
        return [self._word(start, end) for start, end in pairwise([*starts, len(self)])]

    def has(self, quality: Break) -> bool:
        """Whether a line may end somewhere just that well."""
        return quality in self._breaks

    def ends_em(self, start: int) -> list[float]:
        """The width from `start` to the end of each grapheme after it."""
        return list(accumulate(map(self._alone_em, range(start, len(self)))))

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
        """Graphemes `start` to `end` without the spaces at their end, drawn."""
        hyphen = end in self._hyphens and not ellipsis
        end = self._without_space(start, end)
        choices, levels = self._choices[start:end], self._levels[start:end]
        if ellipsis:
            choices += self._fonts.fallback.choose([ELLIPSIS], "ja")
            levels = [*levels, int(self.rtl)]
        elif hyphen:
            choices.append(self._hyphen(end))
            levels = [*levels, levels[-1]]
        runs = _runs(choices, levels)
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
            total += self._alone_em(end - 1)
            if total > width_em:
                self.truncated = True
                return end
        return len(self)

    def _word(self, start: int, end: int) -> Word:
        stop = self._without_space(start, end)
        ink, space = self._width_em(start, stop), self._width_em(stop, end)
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

    def _alone_em(self, place: int) -> float:
        """The width of one grapheme. A text has far fewer letters than places, so it is kept by letter."""
        key = self._choices[place].pieces, self._levels[place] % 2
        width = self._widths_em.get(key)
        if width is None:
            width = self._widths_em[key] = self._runs_em(place, place + 1)
        return width

    def _width_em(self, start: int, end: int) -> float:
        if any(level % 2 for level in self._levels[start:end]):
            return self._runs_em(start, end)
        return sum(map(self._alone_em, range(start, end)))

    def _runs_em(self, start: int, end: int) -> float:
        """Letters that run from the right are measured together: those of Arabic have other shapes where they join."""
        return sum(
            self._fonts.advances.width_em(subset, self._weight, texts, bool(level % 2)) * self._factor(subset)
            + self._tracking.em(subset, level) * len(texts)
            for subset, level, texts in _runs(self._choices[start:end], self._levels[start:end])
        )

    def _shaped_samples(self) -> dict[FontSubset, tuple[int, list[str]]]:
        """For each font whose letters are shaped, the level and the first graphemes of what it draws."""
        samples: dict[FontSubset, tuple[int, list[str]]] = {}
        for subset, level, texts in _runs(self._choices, self._levels):
            if subset.shaped:
                samples.setdefault(subset, (level, []))[1].extend(texts)
        return samples

    def _factor(self, subset: FontSubset) -> float:
        """How many times the width of its letters alone shaped text in this font is wide, by a sample."""
        if subset not in self._factors:
            level, texts = self._samples.get(subset, (0, []))
            self._factors[subset] = (
                self._fonts.advances.shaping_factor(subset, self._weight, texts[:_SAMPLE], bool(level % 2))
                if len(texts) >= _LEAST_SAMPLE
                else 1.0
            )
        return self._factors[subset]


def _runs(choices: Sequence[FontChoice], levels: Sequence[int]) -> list[tuple[FontSubset, int, list[str]]]:
    """Neighbours that one font draws at one embedding level, in logical order."""
    pairs = zip(choices, levels, strict=True)
    drawn = [(subset, level, text) for choice, level in pairs for subset, text in choice.pieces]
    return [(key[0], key[1], [item[2] for item in group]) for key, group in groupby(drawn, key=lambda d: d[:2])]


def _least_width(grapheme: str) -> float:
    if grapheme in LINE_CONTROLS:
        return 0
    return _WIDE if east_asian_width(grapheme[0]) in "WF" else 1
