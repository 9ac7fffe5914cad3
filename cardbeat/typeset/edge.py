"""The optical left edge of a line: where the stem of its first letter stands."""

import unicodedata
from math import ceil

from cardbeat.typeset.line import TextLine

_EUROPEAN = (("A", "\u052f"), ("\u1c80", "\u1fff"), ("\u2c60", "\u2c7f"), ("\ua640", "\ua7ff"))
"""Greek, Cyrillic and Latin letters."""
_X_HEIGHT_EM, _CAPITAL_EM = 0.53, 0.7
_MOST_EM = 0.12
"""The tail of a `j` and the dots of an `Ï` reach as far."""


def is_european(character: str) -> bool:
    """Whether it is a letter of Latin, Greek or Cyrillic."""
    return character.isalpha() and any(first <= character <= last for first, last in _EUROPEAN)


def hanging_px(line: TextLine, size_px: int) -> int:
    """How far the ink of a line's first letter reaches left of its stem: a tail, or marks that are wider than it.

    The stem is what is between the baseline and the top of a small letter, or of a capital.
    """
    first = line.text[:1]
    if line.ink is None or line.ink_x or not is_european(first):
        return 0
    capital = unicodedata.normalize("NFD", first)[0].isupper()
    baseline = -line.ink_y
    top = baseline - round((_CAPITAL_EM if capital else _X_HEIGHT_EM) * size_px)
    most = ceil(_MOST_EM * size_px)
    stem = line.ink.crop((0, max(top, 0), min(most, line.ink.width), max(baseline, 1))).getbbox()
    return stem[0] if stem else 0
