"""Text without a shaping engine: Arabic joined, Indic vowels reordered, brackets mirrored, as far as characters go."""

import unicodedata
from collections.abc import Sequence

from cardbeat.typeset.unicode.arabic import joined
from cardbeat.typeset.unicode.bidi import MIRRORED
from cardbeat.typeset.unicode.clusters import ZWJ, ZWNJ, clusters

_BEFORE_BASE = frozenset(
    "\u093f\u09bf\u09c7\u09c8\u0a3f\u0abf\u0b47\u0bc6\u0bc7\u0bc8\u0d46\u0d47\u0d48\u0dd9\u0ddb\u1031\u103c\u1084\u17c1\u17c2\u17c3"
)
"""Vowel signs that are drawn before the consonant that they follow in the text."""
_DOTLESS = {"i": "\u0131", "j": "\u0237"}
_ABOVE = 230  # combining class of most marks above a letter
_KHMER_PARTS = {0x17BE: "\u17c1\u17b8", 0x17C4: "\u17c1\u17b6", 0x17C5: "\u17c1\u17b6"}
"""Vowel signs on both sides of their consonant, which Unicode does not decompose."""


def characters_to_draw(graphemes: Sequence[str], rtl: bool) -> str:
    """The characters to draw from left to right, for graphemes in logical order."""
    if rtl:
        text = "".join(MIRRORED.get(g, g) for g in reversed(clusters(joined("".join(graphemes)))))
    else:
        text = "".join(map(_indic, graphemes))
    return text.replace(ZWJ, "").replace(ZWNJ, "")


def _indic(grapheme: str) -> str:
    """The characters of a grapheme in the order of drawing."""
    if len(grapheme) < 2:
        return grapheme
    if grapheme[0] in _DOTLESS:
        # A mark above replaces the dot (Soft_Dotted of Unicode).
        has_mark = any(unicodedata.combining(mark) == _ABOVE for mark in grapheme[1:])
        return _DOTLESS[grapheme[0]] + grapheme[1:] if has_mark else grapheme
    if grapheme[0] < "\u0900":
        return grapheme
    parts = unicodedata.normalize("NFD", grapheme).translate(_KHMER_PARTS)
    first = [c for c in parts if c in _BEFORE_BASE]
    return "".join(first + [c for c in parts if c not in _BEFORE_BASE]) if first else grapheme
