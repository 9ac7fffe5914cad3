"""The first letter of a name, for an avatar."""

import re
import unicodedata
from functools import partial

from cardbeat.typeset.clusters import clean, clusters, without_marks
from cardbeat.typeset.emoji import is_emoji
from cardbeat.typeset.fonts import Fonts
from cardbeat.typeset.text import Block, fit

_LOOKED_AT = 64
"""Characters of a name: in them its first letter stands."""
_LEADING_VOWEL = re.compile("[\u0e40-\u0e44\u0ec0-\u0ec4]")
"""Of Thai and Lao: written before the consonant that begins the word."""
_SMALLEST = 0.5
"""Of the size that a letter has."""


def initial_of(name: str) -> str:
    """The first letter of a name as a grapheme, in capitals where there are some; a sign only where there is no letter.

    Quotation marks, `@` and other signs before it are skipped. "" for a name that shows nothing, or begins with an
    ellipsis and has no letter: that would look like a name that was cut.
    """
    graphemes = clusters(clean(name[:_LOOKED_AT]))
    place = next((place for place, grapheme in enumerate(graphemes) if _begins_name(grapheme)), 0)
    first = "".join(graphemes[place : place + 1])
    if _LEADING_VOWEL.match(first):
        first = "".join(graphemes[place : place + 2])
    return "" if first == "…" else _capital(first)


def initial_block(fonts: Fonts, name: str, *, width_px: int, size_px: int, weight: int, language: str | None) -> Block:
    """The first letter of a name in one line, which is never cut: it shrinks, then loses its vowel signs."""
    set_in_line = partial(
        fit,
        fonts,
        width_px=width_px,
        size_px=size_px,
        min_size_px=int(size_px * _SMALLEST),
        weight=weight,
        language=language,
    )
    initial = initial_of(name)
    block = set_in_line(initial)
    return set_in_line(_LEADING_VOWEL.sub("", without_marks(initial))[:1]) if block.cut else block


def _begins_name(grapheme: str) -> bool:
    category = unicodedata.category(grapheme[0])
    return (category[0] in "LN" and category != "Lm") or is_emoji(grapheme)


def _capital(letter: str) -> str:
    """Georgian has capitals for words, not for names; the capital of `ß` would be two letters."""
    capital = unicodedata.normalize("NFC", letter.title())
    is_georgian = "\u10d0" <= letter[:1] <= "\u10ff"
    return letter if is_georgian or len(capital) > len(letter) else capital
