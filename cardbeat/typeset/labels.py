"""Sets two short texts with rules of their own: a domain, and the first letter of a name for an avatar."""

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Sequence

from cardbeat.typeset.faces.emoji import is_emoji
from cardbeat.typeset.faces.fonts import Fonts
from cardbeat.typeset.paragraph import ELLIPSIS, Paragraph, Style, most_graphemes
from cardbeat.typeset.text import UNBOUNDED_PX, Block, Setting, fit
from cardbeat.typeset.unicode.clusters import clean, clusters, without_marks
from cardbeat.typeset.work import UNBOUNDED

_TRIES = 2  # times that the beginning is looked for
_ELLIPSIS_EM = 0.95
_LOOKED_AT = 64  # characters of a name in which its first letter is looked for
_LEADING_VOWEL = re.compile("[\u0e40-\u0e44\u0ec0-\u0ec4]")
"""Vowels of Thai and Lao that are written before the consonant that begins the word."""


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
    return block._replace(missing=missing, cut=start > 0, work=work)


def _planned_tail(ends_em: Sequence[float], room_em: float) -> int:
    """How many of the last graphemes, given by their ends, fit the room after an ellipsis."""
    total = ends_em[-1] if ends_em else 0.0
    if total <= room_em:
        return len(ends_em)
    return len(ends_em) - bisect_left(ends_em, total - room_em + _ELLIPSIS_EM) - 1


def _cut_start(graphemes: Sequence[str], start: int) -> int:
    """The best place from `start` on for a domain to begin: at a name, if two are left."""
    ends = [at for at in range(max(start, 1), len(graphemes)) if graphemes[at - 1] == "."]
    return ends[0] if start and len(ends) > 1 else start


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
