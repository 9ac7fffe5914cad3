"""Sets a domain, of which only the end is shown where it is too long."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace

from cardbeat.typeset.clusters import clean, clusters
from cardbeat.typeset.fonts import Fonts
from cardbeat.typeset.paragraph import ELLIPSIS, Paragraph, Room
from cardbeat.typeset.text import UNBOUNDED_PX, Block, Box, fitted, room_of
from cardbeat.typeset.work import UNBOUNDED

_LEAST_KEPT = 0.5
"""Of what has room: rather than lose more, it begins inside a name."""
_TRIES = 2
"""How often the beginning is looked for."""
_ELLIPSIS_EM = 0.95
_ALL = Room(1_000, UNBOUNDED_PX)
"""For a text that was made short enough before."""


def fit_end(
    fonts: Fonts,
    text: str,
    *,
    width_px: int,
    size_px: int,
    weight: int = 400,
    leading: float = 1.15,
    language: str | None = None,
    max_work: int = UNBOUNDED,
) -> Block:
    """Sets one line as `fit` does, but what is too long, such as a domain, loses its front: `…docs.example.com`."""
    room, box = room_of(width_px, 1, size_px), Box(width_px, UNBOUNDED_PX, 1, leading)
    graphemes = clusters(clean(text))
    tail = "".join(graphemes[-room.graphemes :])
    paragraph = Paragraph(fonts, tail, room=_ALL, weight=weight, language=language, max_work=max_work)
    start = len(graphemes) - _planned_tail(paragraph.ends_em(0), width_px / size_px)
    work = 0
    for _ in range(_TRIES):
        if start:
            start = cut_start(graphemes, start)
            shown = ELLIPSIS + "".join(graphemes[start:])
            most = max_work - work
            paragraph = Paragraph(fonts, shown, room=room, weight=weight, language=language, max_work=most)
        block = fitted(paragraph, box, size_px=size_px, min_size_px=size_px)
        work += block.work
        if not block.cut:
            break
        start += 1 + (len(graphemes) - start) // 8
    missing = max(block.missing, fonts.repertoire.drawable(clean(text))[1])
    return replace(block, missing=missing, cut=start > 0, work=work)


def _planned_tail(ends_em: Sequence[float], room_em: float) -> int:
    """How many of the last graphemes, given by where each ends, stand in the room with an ellipsis before them."""
    total = ends_em[-1] if ends_em else 0.0
    if total <= room_em:
        return len(ends_em)
    return len(ends_em) - bisect_left(ends_em, total - room_em + _ELLIPSIS_EM) - 1


def cut_start(graphemes: Sequence[str], start: int) -> int:
    """Where a domain of which only what is after `start` has room begins best: at a name, or at a word of one."""
    ends = [at for at in range(max(start, 1), len(graphemes)) if graphemes[at - 1] in ".-"]
    best = ends[0] if start and ends else start
    return best if len(graphemes) - best >= (len(graphemes) - start) * _LEAST_KEPT else start
