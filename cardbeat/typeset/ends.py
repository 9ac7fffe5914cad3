"""Sets a domain. If it is too long, only its end is shown."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace

from cardbeat.typeset.faces.fonts import Fonts
from cardbeat.typeset.paragraph import ELLIPSIS, Paragraph, Style, most_graphemes
from cardbeat.typeset.text import UNBOUNDED_PX, Block, Setting
from cardbeat.typeset.unicode.clusters import clean, clusters
from cardbeat.typeset.work import UNBOUNDED

_LEAST_KEPT = 0.5  # part of what fits that must be shown for the text to begin at a name
_TRIES = 2  # times that the beginning is looked for
_ELLIPSIS_EM = 0.95


def fit_end(
    fonts: Fonts, text: str, style: Style, width_px: int, *, language: str | None = None, max_work: int = UNBOUNDED
) -> Block:
    """One line, as `text.fit` sets it, but shortened from the left: `…docs.example.com`."""
    graphemes = clusters(clean(text))
    tail = "".join(graphemes[-most_graphemes(width_px / style.largest_px) :])
    paragraph = Paragraph(fonts, tail, style, UNBOUNDED_PX, language=language, max_work=max_work)
    start = len(graphemes) - _planned_tail(paragraph.ends_em(0), width_px / style.largest_px)
    work = 0
    for _ in range(_TRIES):
        if start:
            start = _cut_start(graphemes, start)
            shown = ELLIPSIS + "".join(graphemes[start:])
            paragraph = Paragraph(fonts, shown, style, width_px, language=language, max_work=max_work - work)
        block = Setting(paragraph, style, width_px).block()
        work += block.work
        if not block.cut:
            break
        start += 1 + (len(graphemes) - start) // 8
    missing = max(block.missing, fonts.drawable(clean(text))[1])
    return replace(block, missing=missing, cut=start > 0, work=work)


def _planned_tail(ends_em: Sequence[float], room_em: float) -> int:
    """How many of the last graphemes, given by their ends, fit the room after an ellipsis."""
    total = ends_em[-1] if ends_em else 0.0
    if total <= room_em:
        return len(ends_em)
    return len(ends_em) - bisect_left(ends_em, total - room_em + _ELLIPSIS_EM) - 1


def _cut_start(graphemes: Sequence[str], start: int) -> int:
    """The best place from `start` on for a domain to begin: at a name, or at a word of one."""
    ends = [at for at in range(max(start, 1), len(graphemes)) if graphemes[at - 1] in ".-"]
    best = ends[0] if start and ends else start
    return best if len(graphemes) - best >= (len(graphemes) - start) * _LEAST_KEPT else start
