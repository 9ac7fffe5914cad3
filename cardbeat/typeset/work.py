"""The cost of setting a text, estimated before it is drawn, so that the time for a card is bounded.

The unit is one byte of compressed font, 14 ns to inflate where an ordinary card takes 7 ms. The other figures are
measured times in this unit, for drawing once.
"""

from collections.abc import Sequence
from functools import cache, partial

from cardbeat.typeset.faces.catalogue import NASTALIQ, FontSubset
from cardbeat.typeset.faces.fonts import FontChoice, Piece

UNBOUNDED = 10**9
_OPENED, _OPENED_LETTERS = 12_000, 45_000
"""A file of Han, and another one, beside what inflating it takes. Both are more than that takes, and much more for the
second, as no real text needs 50 files, or ten scripts. Rules take as much as a file of Han."""
_PLANNED = 1_500  # a character that is looked at, drawn or not: its grapheme, font, direction and line breaks
_RUN = 1_500  # a run in one font
_CHARACTER = 1_500  # a letter that is measured and drawn
_HAN = 5_000  # added for a Han character, which is large and mostly in a font of its own
_MARK = 7_000
"""A mark on a letter, or a letter that joins it. Many make the letter so tall that it is drawn again without them."""
_EMOJI = 17_000  # added for an emoji, which is drawn in layers and needs colours of its own
_EMBOLDENED = 2_000  # added for a character that is made bolder
_SHAPED, _JOINED = 10_000, 1_000
"""Added for a run that Raqm shapes, as it reads the font's rules each time, and for each of its letters."""
_SHAPED_SLOWLY = {
    NASTALIQ: 280_000,
    **dict.fromkeys(("sans-devanagari", "noto-serif-devanagari"), 75_000),
    "serif-tibetan": 40_000,
    "sans-ethiopic": 30_000,
    **dict.fromkeys(("sans-telugu", "noto-serif-telugu", "sans-mongolian", "source-serif-marks"), 23_000),
}
"""Fonts with many rules, and what is added for a run in one line instead of `_SHAPED`."""
_LINES = 2  # that a run in such a font is reckoned to go over
SLOW, TRIED_ENOUGH, SPENT_ENOUGH = 300_000, 1_450_000, 2_400_000
"""What drawing a text costs where sizes are estimated rather than tried, what all tries may cost together, and what
they may cost with all else: opening its fonts and planning its lines."""
_LEAST_GRAPHEMES = 40  # always examined: more than a label shows in most scripts


def graphemes_within(most: int) -> int:
    """The number of graphemes that may be examined with this much work, if none is left to draw them."""
    return max(_LEAST_GRAPHEMES, most // _PLANNED)


class Work:
    """The cost so far of one text in one weight, with its limit `most`.

    The first run is always drawn: the file of Tibetan alone has 236 KB. Only runs of emoji are cut in the middle.
    """

    def __init__(self, weight: int, most: int) -> None:
        self.spent = self._once = 0  # all, and what is spent but once, in however many sizes the text is drawn
        self._weight, self._most = weight, most
        self._run: tuple[FontSubset, int] | None = None
        self._fonts: set[FontSubset] = set()
        self._drawing = cache(partial(_letter_cost, weight=weight))

    def affordable(self, choices: Sequence[FontChoice], levels: Sequence[int], characters: int) -> list[FontChoice]:
        """The choices of a text of so many characters, with an empty one for what would begin a run past the limit."""
        # From right to left, words are measured as they join, in addition to their letters.
        planned = _PLANNED * characters * (1 + any(level % 2 for level in levels))
        self.spent += planned
        self._once += planned
        nothing, pairs = FontChoice(), zip(choices, levels, strict=True)
        return [choice if self._affords(choice.pieces, level) else nothing for choice, level in pairs]

    @property
    def again(self) -> int:
        """The cost of drawing the text in another size."""
        return self.spent - self._once

    def _affords(self, pieces: Sequence[Piece], level: int) -> bool:
        """Whether the pieces of a grapheme are within the limit; then their cost is added."""
        if len(pieces) == 1 and (pieces[0].subset, level) == self._run and not pieces[0].subset.emoji:
            # Most graphemes: one more letter of a run.
            self.spent += self._drawing(pieces[0].subset) + _MARK * (len(pieces[0].text) - 1)
            return True
        taken = sum(self._drawing(subset) + _MARK * (len(text) - 1) for subset, text in pieces)
        new = [subset for subset, _ in pieces if (subset, level) != self._run]
        opened = sum(_opening_cost(subset) + subset.bytes(self._weight) for subset in {*new} - self._fonts)
        taken += sum(_run_cost(subset, _LINES) for subset in new) + opened
        may_end = new or any(subset.emoji for subset, _ in pieces)
        if may_end and self._fonts and self.spent + taken > self._most:
            self._run = None
            return False
        self.spent += taken
        self._once += opened
        self._fonts.update(new)
        self._run = (pieces[-1].subset, level) if pieces else self._run
        return True


def drawing_cost(subset: FontSubset, text: str) -> int:
    """The cost of drawing a run, or one letter of it by itself."""
    alone = subset.european and len(text) == 1
    return _run_cost(subset) * (not alone) + _letter_cost(subset) * len(text)


def _opening_cost(subset: FontSubset) -> int:
    return (_OPENED if subset.square else _OPENED_LETTERS) + _OPENED * subset.shaped


def _run_cost(subset: FontSubset, lines: int = 1) -> int:
    slowly = lines * _SHAPED_SLOWLY.get(subset.name, 0)
    return _RUN + (slowly or _SHAPED) * subset.shaped


def _letter_cost(subset: FontSubset, weight: int = 0) -> int:
    other = _EMOJI if subset.emoji else _HAN if subset.square else _JOINED * subset.shaped
    return _CHARACTER + other + _EMBOLDENED * subset.is_emboldened(weight)
