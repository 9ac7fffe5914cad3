"""What soft hyphens and isolates do to the lines of a text, and which signs are dropped before an ellipsis."""

import unicodedata
from collections.abc import Container, Sequence
from itertools import accumulate
from typing import NamedTuple

from cardbeat.typeset.unicode import bidi
from cardbeat.typeset.unicode.breaks import Break, breaks
from cardbeat.typeset.unicode.clusters import LINE_CONTROLS, SOFT_HYPHEN

_STAY = frozenset("!?%‰°′″'’\"*&…")
"""Punctuation after which an ellipsis looks right, beside closing brackets and quotation marks."""


class Ordered(NamedTuple):
    """The visible graphemes of a text, the embedding level of each, and those with a soft hyphen before them."""

    graphemes: list[str]
    levels: list[int]
    rtl: bool
    hyphens: set[int]


def ordered(graphemes: Sequence[str]) -> Ordered:
    """The text without its `LINE_CONTROLS`. The level of a grapheme is that of its first character."""
    whole = "".join(graphemes)
    rtl = bidi.is_rtl(whole)
    every = bidi.levels(whole, rtl)
    seen: list[str] = []
    levels, hyphens = [], set()
    for grapheme, at in zip(graphemes, accumulate(map(len, graphemes), initial=0), strict=False):
        if grapheme not in LINE_CONTROLS:
            seen.append(grapheme)
            levels.append(every[at])
        elif grapheme == SOFT_HYPHEN:
            hyphens.add(len(seen))
    return Ordered(seen, levels, rtl, hyphens)


def breaks_at_hyphens(graphemes: Sequence[str], language: str, soft: Container[int]) -> tuple[list[Break], set[int]]:
    """The breaks of a text with soft hyphens before some graphemes, and those graphemes at which a hyphen is drawn."""
    found = breaks(graphemes, language)
    drawn = {i for i, good in enumerate(found) if i in soft and good == Break.EMERGENCY}
    return [Break.FAIR if i in drawn else good for i, good in enumerate(found)], drawn


def hangs(grapheme: str) -> bool:
    """Whether it looks wrong before an ellipsis: spaces, commas, dashes, opening brackets and the like."""
    category = unicodedata.category(grapheme[0])
    return category[0] in "ZP" and category not in ("Pe", "Pf") and grapheme[0] not in _STAY
