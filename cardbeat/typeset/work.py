"""The cost of setting a text, estimated before it is drawn, so that the time for a card is bounded.

The unit is one byte of compressed font. Inflating fonts takes most of the time, about 20 ns a byte; an ordinary card
takes 18 ms. The other figures are measured times in this unit.
"""

from collections.abc import Sequence
from functools import cache, partial

from cardbeat.typeset.faces.catalogue import FontSubset
from cardbeat.typeset.faces.fonts import FontChoice, Piece

UNBOUNDED = 10**9
_OPENED = 10_000  # an inflated file, opened in all its sizes
_RUN = 5_000  # a run in one font, in all lines and sizes that are tried
_PLANNED = 1_500  # a grapheme that is looked at, drawn or not: its font, direction and line breaks
_CHARACTER = 2_200  # a letter that is measured and drawn
_MARK = 5_000
"""A mark on a letter, or a letter that joins it. Many make the letter so tall that it is drawn again without them."""
_EMOJI = 12_000  # added for an emoji, which is drawn in layers and needs colours of its own
_EMBOLDENED = 3_000  # added for a character that is made bolder
_SHAPED = 17_000  # added for a run that Raqm shapes: it reads the font's rules each time
_SHAPED_SLOWLY = {
    "noto-nastaliq-urdu": 250_000,
    **dict.fromkeys(("sans-devanagari", "noto-serif-devanagari"), 200_000),
    **dict.fromkeys(("sans-ethiopic", "sans-telugu", "noto-serif-telugu", "noto-serif-sinhala"), 45_000),
    "serif-tibetan": 35_000,
}
"""Fonts with many rules, and what is added for a run instead of `_SHAPED`."""
_LEAST_GRAPHEMES = 40  # always examined: more than a label shows in most scripts


def graphemes_within(most: int) -> int:
    """The number of graphemes that may be examined with this much work, if none is left to draw them."""
    return max(_LEAST_GRAPHEMES, most // _PLANNED)


class Work:
    """The cost so far of one text in one weight, with its limit `most`.

    The first run is always drawn: the file of Tibetan alone has 236 KB. Only runs of emoji are cut in the middle.
    """

    def __init__(self, weight: int, most: int) -> None:
        self.spent = self.runs = 0
        self._weight, self._most = weight, most
        self._run: tuple[FontSubset, int] | None = None
        self._fonts: set[FontSubset] = set()
        self._drawing = cache(partial(_letter_cost, weight))

    def affordable(self, choices: Sequence[FontChoice], levels: Sequence[int]) -> list[FontChoice]:
        """The choices, with an empty one for each grapheme that would begin a run past the limit."""
        self.spent += _PLANNED * len(choices)
        nothing, pairs = FontChoice(), zip(choices, levels, strict=True)
        return [choice if self._affords(choice.pieces, level) else nothing for choice, level in pairs]

    def _affords(self, pieces: Sequence[Piece], level: int) -> bool:
        """Whether the pieces of a grapheme are within the limit; then their cost is added."""
        if len(pieces) == 1 and (pieces[0].subset, level) == self._run and not pieces[0].subset.emoji:
            # Most graphemes: one more letter of a run.
            self.spent += self._drawing(pieces[0].subset) + _MARK * (len(pieces[0].text) - 1)
            return True
        taken = sum(self._drawing(subset) + _MARK * (len(text) - 1) for subset, text in pieces)
        new = [subset for subset, _ in pieces if (subset, level) != self._run]
        taken += sum(map(self._run_cost, new))
        may_end = new or any(subset.emoji for subset, _ in pieces)
        if may_end and self._fonts and self.spent + taken > self._most:
            self._run = None
            return False
        self.spent += taken
        self.runs += len(new)
        self._fonts.update(new)
        self._run = (pieces[-1].subset, level) if pieces else self._run
        return True

    def _run_cost(self, subset: FontSubset) -> int:
        """The cost of a run, and of its font if it is the first run in it."""
        font = 0 if subset in self._fonts else _OPENED + subset.bytes(self._weight)
        return font + _RUN + subset.shaped * _SHAPED_SLOWLY.get(subset.name, _SHAPED)


def _letter_cost(weight: int, subset: FontSubset) -> int:
    return _CHARACTER + _EMOJI * subset.emoji + _EMBOLDENED * subset.is_emboldened(weight)
