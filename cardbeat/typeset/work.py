"""What setting a text takes, estimated before any of it is drawn: so that what a card takes is bounded.

It is counted in bytes of compressed font files. Inflating those takes most of the time of a text in many fonts: about
20 ns a byte where an ordinary card takes 18 ms. The other figures are measured times in this unit.
"""

from collections.abc import Sequence

from cardbeat.typeset.catalogue import FontSubset
from cardbeat.typeset.fallback import FontChoice, Piece

UNBOUNDED = 10**9
_OPENED = 10_000
"""For opening an inflated file in its sizes."""
_RUN = 5_000
"""For neighbours that one font draws, in each line and size that is tried."""
_PLANNED = 1_500
"""For a grapheme that is looked at, drawn or not: its font, direction and line breaks are found."""
_CHARACTER = 2_200
"""For a letter besides: it is measured and drawn."""
_MARK = 5_000
"""For a mark on it, or a letter that joins it: many of them make it so tall that it is drawn again without them."""
_EMOJI = 12_000
"""For an emoji besides, which is drawn in layers and needs colours of its own."""
_EMBOLDENED = 3_000
"""For a character besides that is made bolder."""
_SHAPED = 17_000
"""For a run that Raqm shapes besides: it reads the font's rules anew for each."""
_SHAPED_SLOWLY = {"sans-devanagari": 200_000, "sans-ethiopic": 45_000, "sans-telugu": 45_000, "serif-tibetan": 35_000}
"""Likewise where they are many."""
_LEAST_GRAPHEMES = 40
"""So many are looked at whatever that takes: more than a label of most scripts shows."""


def graphemes_within(most: int) -> int:
    """How many graphemes may be looked at for so much work, with nothing left to draw them."""
    return max(_LEAST_GRAPHEMES, most // _PLANNED)


class Work:
    """What one text in one weight may take, `most`, and what it does: its runs are counted from its beginning.

    The first run is drawn whatever it takes: the file of Tibetan alone has 236 KB. Only between emoji is a run cut.
    """

    def __init__(self, weight: int, most: int) -> None:
        self.spent = self.runs = 0
        self._weight, self._most = weight, most
        self._run: tuple[FontSubset, int] | None = None
        self._fonts: set[FontSubset] = set()
        self._drawings: dict[FontSubset, int] = {}

    def affordable(self, choices: Sequence[FontChoice], levels: Sequence[int]) -> list[FontChoice]:
        """The choices, with an empty one for each grapheme that would begin a run for which nothing is left."""
        self.spent += _PLANNED * len(choices)
        nothing = FontChoice()
        return [
            choice if self._affords(choice.pieces, level) else nothing
            for choice, level in zip(choices, levels, strict=True)
        ]

    def _affords(self, pieces: Sequence[Piece], level: int) -> bool:
        """Whether there is enough left for the pieces of a grapheme; then they are paid for."""
        taken = sum(self._drawing(subset) + _MARK * (len(text) - 1) for subset, text in pieces)
        if len(pieces) == 1 and (pieces[0].subset, level) == self._run and not pieces[0].subset.emoji:
            self.spent += taken
            return True
        new = [run for subset, _ in pieces if (run := (subset, level)) != self._run]
        taken += sum(map(self._taken, new))
        ends = new or any(subset.emoji for subset, _ in pieces)
        if ends and self._fonts and self.spent + taken > self._most:
            self._run = None
            return False
        self.spent += taken
        self.runs += len(new)
        self._fonts.update(subset for subset, _ in new)
        self._run = (pieces[-1].subset, level) if pieces else self._run
        return True

    def _drawing(self, subset: FontSubset) -> int:
        """By one of its letters."""
        if subset not in self._drawings:
            emboldened = subset.is_emboldened(self._weight)
            self._drawings[subset] = _CHARACTER + _EMOJI * subset.emoji + _EMBOLDENED * emboldened
        return self._drawings[subset]

    def _taken(self, run: tuple[FontSubset, int]) -> int:
        """By a run, for which its font must be opened if it is the first in it."""
        subset, _ = run
        font = 0 if subset in self._fonts else _OPENED + subset.bytes(self._weight)
        return font + _RUN + subset.shaped * _SHAPED_SLOWLY.get(subset.name, _SHAPED)
