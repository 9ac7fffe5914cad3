"""Where a domain of which only the end has room begins."""

from collections.abc import Sequence

_LEAST_KEPT = 0.5
"""Of what has room: rather than lose more, it begins inside a name."""


def cut_start(graphemes: Sequence[str], start: int) -> int:
    """Where a domain of which only what is after `start` has room begins best: at a name, or at a word of one."""
    ends = [at for at in range(max(start, 1), len(graphemes)) if graphemes[at - 1] in ".-"]
    best = ends[0] if start and ends else start
    return best if len(graphemes) - best >= (len(graphemes) - start) * _LEAST_KEPT else start
