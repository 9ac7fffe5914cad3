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
    """Where a domain of which only what is after `start` has room begins best: at a name, or at a word of one."""
    ends = [at for at in range(max(start, 1), len(graphemes)) if graphemes[at - 1] in ".-"]
    best = ends[0] if start and ends else start
    return best if len(graphemes) - best >= (len(graphemes) - start) * _LEAST_KEPT else start
