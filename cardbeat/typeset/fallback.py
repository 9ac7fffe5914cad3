"""Font fallback: which subsets draw a grapheme, by the characters it holds and those beside it."""

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import NamedTuple

from cardbeat.typeset.catalogue import FontSubset, SubsetTable
from cardbeat.typeset.clusters import clusters, is_invisible
from cardbeat.typeset.emoji import EmojiSequences, is_emoji
from cardbeat.typeset.han import REGIONS
from cardbeat.typeset.repertoire import small_letter

_FIRST_HAN_SIGN, _FIRST_HAN = "\u2000", "\u2e80"
_KEPT = 4_000
"""Graphemes whose choice is kept."""
_SMALL = 0.6
"""Size of a superscript or subscript, as in the fonts that have some."""


class Piece(NamedTuple):
    """What one subset draws of a grapheme."""

    subset: FontSubset
    text: str


class FontChoice(NamedTuple):
    """What draws a grapheme: one piece as a rule, none where no font has it."""

    pieces: tuple[Piece, ...] = ()
    inherits: bool = False
    """Punctuation and spaces: drawn in the font of a neighbour that has them, as Unicode's script Common."""
    heritable: FontSubset | None = None
    """The font that a neighbour may inherit; none from emoji, superscripts and subscripts."""


class HanSubsets:
    """The Han subsets, for each region with its own before the others. Any thread may call it."""

    def __init__(self, catalogue: Iterable[FontSubset]) -> None:
        self._subsets = [s for s in catalogue if s.regions]
        self.any = SubsetTable(self._subsets)
        # Most sites write in one language. Two threads may make the same table at once.
        self.of = cache(self._of)

    def _of(self, region: str) -> SubsetTable:
        return SubsetTable((s for s in self._subsets if region in s.regions), self.any)


class Fallback:
    """Looks through the subsets in their order. Any thread may call it."""

    def __init__(self, catalogue: Iterable[FontSubset], han: HanSubsets, emoji: EmojiSequences) -> None:
        subsets = list(catalogue)
        self.letters = SubsetTable(s for s in subsets if not s.square)
        self._han = han
        self._emoji_subsets = [s for s in subsets if s.emoji]
        self._emoji = emoji
        # Any thread writes both without a lock: to the first all write the same, of the second the first one counts.
        self._choices: dict[tuple[str, str], FontChoice] = {}
        self._small_subsets: dict[tuple[FontSubset, float], FontSubset] = {}

    def choose(self, graphemes: Sequence[str], language: str) -> list[FontChoice]:
        """What draws each grapheme of a text, with the Han shapes of a language of `han.REGIONS`."""
        region = REGIONS[language]
        choices = [self._choice(grapheme, region) for grapheme in graphemes]
        for i, choice in enumerate(choices):
            if choice.inherits:
                ((own, text),) = choice.pieces
                beside = [c.heritable for c in (choices[i - 1 : i] + choices[i + 1 : i + 2]) if c.heritable]
                subset = self._inherited(text, beside, region) or own
                if subset is not own:
                    choices[i] = FontChoice((Piece(subset, text),), inherits=True, heritable=subset)
        return choices

    def _choice(self, grapheme: str, region: str) -> FontChoice:
        key = grapheme, region
        choice = self._choices.get(key)
        if choice is None:
            if len(self._choices) >= _KEPT:
                self._choices.clear()
            choice = self._choices[key] = self._found(grapheme, region)
        return choice

    def _found(self, grapheme: str, region: str) -> FontChoice:
        letters = None if is_emoji(grapheme) else self._piece(grapheme, region)
        pieces = (letters,) if letters else tuple(self._pieces(grapheme, region))
        first = pieces[0].subset if pieces else None
        heritable = first if first and not first.emoji and first.scale == 1 else None
        inherits = bool(heritable) and len(pieces) == 1 and unicodedata.category(pieces[0].text[0])[0] in "PZ"
        return FontChoice(pieces, inherits, heritable)

    def _pieces(self, grapheme: str, region: str) -> Iterator[Piece]:
        """A grapheme in parts: emoji, each in its own subset, and letters. No mark stands on an emoji."""
        for drawn, part in self._emoji.parts(grapheme):
            if drawn:
                yield Piece(next(s for s in self._emoji_subsets if s.covers(drawn)), drawn)
            elif letters := self._piece("".join(clusters(part)), region):
                yield letters

    def _piece(self, text: str, region: str) -> Piece | None:
        """A grapheme in the first subset that has all of it, else one that has its letter, without the marks."""
        visible = "".join(c for c in text if not is_invisible(c))
        found = self._subset(visible, region) if visible else None
        if not found and len(visible) > 1:
            found = self._subset(visible[0], region)
        if not found:
            return self._small(visible, region)
        return Piece(found, "".join(c for c in text if found.covers(c) or (found.shaped and c in "\u200c\u200d")))

    def _small(self, text: str, region: str) -> Piece | None:
        """A superscript or subscript that no font has, drawn with its letter."""
        small = small_letter(text[0]) if text else None
        piece = self._piece(small[0] + text[1:], region) if small else None
        if not (small and piece):
            return None
        key = piece.subset, small[1]
        # Neighbours are drawn together only in one and the same subset: threads that meet here agree on the first.
        subset = self._small_subsets.get(key) or self._small_subsets.setdefault(
            key, replace(piece.subset, scale=_SMALL, rise_em=small[1])
        )
        return Piece(subset, piece.text)

    def _subset(self, text: str, region: str) -> FontSubset | None:
        """The first subset that has all of a grapheme's characters. Signs are looked for in Han last, Han first."""
        if text[0] < _FIRST_HAN_SIGN:
            return self.letters.first(text)
        han = self._han.of(region)
        first, second = (han, self.letters) if text[0] >= _FIRST_HAN else (self.letters, han)
        return first.first(text) or second.first(text)

    def _inherited(self, text: str, beside: list[FontSubset], region: str) -> FontSubset | None:
        for subset in beside:
            if subset.covers(text[0]):
                return subset
            if subset.regions and text[0] >= _FIRST_HAN_SIGN:
                return self._han.of(region).first(text[0])
        return None
