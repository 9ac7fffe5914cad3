"""The first letter of a name, for an avatar."""

import re
import unicodedata

from cardbeat.typeset.faces.emoji import is_emoji
from cardbeat.typeset.faces.fonts import Fonts
from cardbeat.typeset.paragraph import Style
from cardbeat.typeset.text import Block, fit
from cardbeat.typeset.unicode.clusters import clean, clusters, without_marks

_LOOKED_AT = 64  # characters of a name in which its first letter is looked for
_LEADING_VOWEL = re.compile("[\u0e40-\u0e44\u0ec0-\u0ec4]")
"""Vowels of Thai and Lao that are written before the consonant that begins the word."""


def initial_of(name: str) -> str:
    """The first letter of a name as a grapheme, in upper case where its script has it.

    Quotation marks, `@` and other signs before it are skipped. A name without letters gives its first sign; "" for a
    name that shows nothing, or only begins with an ellipsis, which would look like a name that was cut.
    """
    graphemes = clusters(clean(name[:_LOOKED_AT]))
    place = next((place for place, grapheme in enumerate(graphemes) if _begins_name(grapheme)), 0)
    first = "".join(graphemes[place : place + 1])
    if _LEADING_VOWEL.match(first):
        first = "".join(graphemes[place : place + 2])
    return "" if first == "…" else _capital(first)


def initial_block(fonts: Fonts, name: str, style: Style, width_px: int, language: str | None) -> Block:
    """The first letter of a name in one line, which is never cut: it shrinks, then loses its vowel signs."""
    initial = initial_of(name)
    block = fit(fonts, initial, style, width_px, language=language)
    if block.cut:
        bare = _LEADING_VOWEL.sub("", without_marks(initial))[:1]
        block = fit(fonts, bare, style, width_px, language=language)
    return block


def _begins_name(grapheme: str) -> bool:
    category = unicodedata.category(grapheme[0])
    return (category[0] in "LN" and category != "Lm") or is_emoji(grapheme)


def _capital(letter: str) -> str:
    """The upper case. Georgian has it for whole words, not for names; that of `ß` would be two letters."""
    capital = unicodedata.normalize("NFC", letter.title())
    is_georgian = "\u10d0" <= letter[:1] <= "\u10ff"
    return letter if is_georgian or len(capital) > len(letter) else capital
