"""Where a text that is cut ends, or begins."""

import unicodedata
from collections.abc import Sequence

from cardbeat.typeset.breaks import Break

_LEAST_KEPT = 0.5
"""A line that would lose more than the other half to its last word is cut inside that."""
_HANGING = frozenset(" ,;:.!?…-‐–—/\\|·•&+~、。，．：；？！・،؛؟।\u00a0\u200b\u202f")
"""What does not stand before an ellipsis, besides opening brackets and quotation marks."""
_OPENING = ("Ps", "Pi")


def cut_end(graphemes: Sequence[str], breaks: Sequence[Break], start: int, end: int) -> int:
    """Where a line of the graphemes `start` to `end`, after which more come, ends best before an ellipsis.

    After a word, unless that is less than half of what has room, and never after punctuation that waits for more.
    """
    word_end = end
    while start < word_end < len(graphemes) and breaks[word_end] < Break.GOOD:
        word_end -= 1
    tidy = _without_hanging(graphemes, start, word_end)
    if tidy - start >= (end - start) * _LEAST_KEPT:
        return tidy
    return _without_hanging(graphemes, start, end)


def _without_hanging(graphemes: Sequence[str], start: int, end: int) -> int:
    while end > start and _hangs(graphemes[end - 1]):
        end -= 1
    return end


def _hangs(grapheme: str) -> bool:
    return grapheme in _HANGING or unicodedata.category(grapheme[0]) in _OPENING


def cut_start(graphemes: Sequence[str], start: int) -> int:
    """Where a domain that is cut before `start` begins best: at one of its names, where half of it is left then."""
    dot = next((at for at in range(start, len(graphemes)) if graphemes[at] == "."), None)
    whole = start == 0 or graphemes[start - 1] == "."
    if whole or dot is None or len(graphemes) - dot < (len(graphemes) - start) * _LEAST_KEPT:
        return start
    return dot + 1
