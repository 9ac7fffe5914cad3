"""Text without a shaping engine, as far as characters go: in place of what Raqm does. `needs_shaping` says where that
is not enough.

Arabic letters are joined by the presentation forms of Unicode (U+FB50 to U+FEFC), Indic vowels reordered, brackets
mirrored. Marks are placed on letters by the anchors of the fonts (OpenType GPOS, kept as JSON).
"""

import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from cardbeat.typeset.unicode.bidi import MIRRORED
from cardbeat.typeset.unicode.clusters import ZWJ, ZWNJ, clusters

AnchorPoints = dict[str, dict[str, list[float]]]
"""Character to anchor name to `[x, y]` in em, right of and above the character's origin."""

_BEFORE_BASE = frozenset(
    "\u093f\u09bf\u09c7\u09c8\u0a3f\u0abf\u0b47\u0bc6\u0bc7\u0bc8\u0d46\u0d47\u0d48\u0dd9\u0ddb\u1031\u103c\u1084\u17c1\u17c2\u17c3"
)
"""Vowel signs that are drawn before the consonant that they follow in the text."""
_DOTLESS = {"i": "\u0131", "j": "\u0237"}
_ABOVE = 230  # combining class of most marks above a letter
_KHMER_PARTS = {0x17BE: "\u17c1\u17b8", 0x17C4: "\u17c1\u17b6", 0x17C5: "\u17c1\u17b6"}
"""Vowel signs on both sides of their consonant, which Unicode does not decompose."""
_TATWEEL = "\u0640"
_LAM = "\u0644"
_FIRST_FORM, _LAST_FORM = 0xFB50, 0xFEFC
_FIRST_LAM_ALEF = 0xFEF5
_ARABIC_LETTERS = (*range(0x620, 0x700), *range(0x750, 0x780))
_HIGH_HAMZA = "\u0674"  # joins no other letter
_AE = "\u06d5"
"""A letter of Kurdish and Uyghur without presentation forms. Two of heh, which do not join the next letter, look like
it."""
_AE_FORMS = {(_AE, False, False): "\ufee9", (_AE, True, False): "\ufeea"}
_ALWAYS_SHAPED = (
    "[\u0700-\u074f\u07ca-\u07ff\u0840-\u086a\u1100-\u11ff\u1800-\u18aa\ua840-\ua877\ua960-\ua97f\ud7b0-\ud7ff"
    "\U0001e900-\U0001e943]"
)
"""Letters that a font joins: of Syriac, N'Ko, Mandaic, Mongolian, Phags-pa and Adlam, and those of old Korean."""
_SHAPED_WITH_MARKS = (
    "[\u0900-\u0dff\u0f00-\u109f\u1700-\u17ff\u1900-\u194f\u1a00-\u1aaf\u1b00-\u1bff\u1c00-\u1c4f\ua800-\ua82f\ua880-\ua8df"
    "\ua900-\uaaff\uabc0-\uabff\U00011000-\U000116ff]"
)
"""Scripts from Devanagari to Khmer, whose vowels and marks change the letter that they belong to."""
_JOININGS = {
    "<isolated>": (False, False),
    "<final>": (True, False),
    "<initial>": (False, True),
    "<medial>": (True, True),
}
"""By the kind of decomposition: whether a form joins the letter before it, and the one after it."""


def characters_to_draw(graphemes: Sequence[str], rtl: bool) -> str:
    """The characters to draw from left to right, for graphemes in logical order."""
    if rtl:
        text = "".join(MIRRORED.get(g, g) for g in reversed(clusters(joined("".join(graphemes)))))
    else:
        text = "".join(map(_indic, graphemes))
    return text.replace(ZWJ, "").replace(ZWNJ, "")


def needs_shaping(grapheme: str) -> bool:
    """Whether only a shaping engine draws a grapheme as it is written."""
    first = grapheme[0]
    if first < "\u0620":
        return False
    if first in _letters_without_forms() or re.match(_ALWAYS_SHAPED, first):
        return True
    marked = any(unicodedata.category(c)[0] == "M" for c in grapheme[1:])
    return marked and bool(re.match(_SHAPED_WITH_MARKS, first))


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


def joined(text: str) -> str:
    """The text, in logical order, with each letter in its contextual form, and lam with alef as their ligature."""
    forms = _forms()

    def joins(character: str, before: bool, after: bool) -> bool:
        return character in (_TATWEEL, ZWJ) or (character, before, after) in forms

    letters = (c for c in text if not _is_transparent(c))
    joins_next = [joins(a, False, True) and joins(b, True, False) for a, b in pairwise(letters)]
    joinings = pairwise([False, *joins_next, False])
    found = (c if _is_transparent(c) else forms.get((c, *next(joinings)), c) for c in text)
    result = "".join(found).replace(ZWJ, "")
    for pair, ligature in _ligatures().items():
        result = result.replace(pair, ligature)
    return result


def _is_transparent(character: str) -> bool:
    """Whether it is a mark, across which letters join (joining type T)."""
    return unicodedata.category(character) in ("Mn", "Me")


@cache
def _forms() -> dict[tuple[str, bool, bool], str]:
    """Presentation forms by letter, whether it joins the one before it, and whether it joins the one after it."""
    forms: dict[tuple[str, bool, bool], str] = {}
    for codepoint in range(_FIRST_FORM, _LAST_FORM + 1):
        kind, *parts = unicodedata.decomposition(chr(codepoint)).split() or [""]
        if kind in _JOININGS and len(parts) == 1:
            forms[chr(int(parts[0], 16)), *_JOININGS[kind]] = chr(codepoint)
    letters = (chr(codepoint) for codepoint in _ARABIC_LETTERS if unicodedata.category(chr(codepoint)) == "Lo")
    without = {(c, True, False): c for c in letters if c != _HIGH_HAMZA and (c, False, False) not in forms}
    return without | forms | _AE_FORMS


@cache
def _letters_without_forms() -> frozenset[str]:
    """Letters of Pashto, Kurdish, Sindhi and others: drawn as they are, they look most like a final form."""
    return frozenset(letter for (letter, _, _), form in _forms().items() if letter == form)


@cache
def _ligatures() -> dict[str, str]:
    """The ligatures that Arabic requires, by the presentation forms of lam and alef side by side."""
    forms, ligatures = _forms(), {}
    for codepoint in range(_FIRST_LAM_ALEF, _LAST_FORM + 1):
        kind, _, alef = unicodedata.decomposition(chr(codepoint)).split()
        lam = forms[_LAM, kind == "<final>", True]
        ligatures[lam + forms[chr(int(alef, 16)), True, False]] = chr(codepoint)
    return ligatures


class PlacedText(NamedTuple):
    """Characters to draw as they are, `x_px` right of and `y_px` below the origin of the run."""

    text: str
    x_px: float
    y_px: float
    is_mark: bool = False  # whether it stands on a letter and takes no width on the line


class Anchors(NamedTuple):
    """The anchor points of a font. A mark stands where its point meets the point of the same name of its base."""

    marks: AnchorPoints
    bases: AnchorPoints  # letters, and marks that carry other marks

    def places(self, grapheme: str) -> bool:
        """Whether each mark of a grapheme has a place on its letter or on a mark before it."""
        return all(
            any(self.offset_em(mark, below) for below in grapheme[:place])
            for place, mark in enumerate(grapheme)
            if place and unicodedata.category(mark)[0] != "L"
        )

    def offset_em(self, mark: str, base: str) -> tuple[float, float] | None:
        """The origin of the mark, right of and above that of the base; None where the base has no anchor for it."""
        points = self.bases.get(base, {})
        for name, (x, y) in self.marks.get(mark, {}).items():
            if name in points:
                return points[name][0] - x, points[name][1] - y
        return None


NO_ANCHORS = Anchors({}, {})


def placed(text: str, anchors: Anchors, size_px: float, length: Callable[[str], float]) -> list[PlacedText]:
    """Runs of letters, and each mark alone on its letter or on a mark before it. `length` gives a string's pixels."""
    parts: list[PlacedText] = []
    letters, x = "", 0.0
    below: list[PlacedText] = []
    for character in text:
        mark = _placed_mark(character, below, anchors, size_px, length)
        if mark:
            if letters:
                parts.append(PlacedText(letters, x, 0))
                x, letters = x + length(letters), ""
            parts.append(mark)
            below.append(mark)
        else:
            below = [PlacedText(character, x + length(letters), 0)]
            letters += character
    return [*parts, PlacedText(letters, x, 0)] if letters else parts


def _placed_mark(
    mark: str, below: list[PlacedText], anchors: Anchors, size_px: float, length: Callable[[str], float]
) -> PlacedText | None:
    """The mark on the last of its letter and earlier marks that has an anchor for it, else centred on the letter.

    None if the character is no mark, or has no letter.
    """
    if mark not in anchors.marks or not below:
        return None
    for base in reversed(below):
        if offset := anchors.offset_em(mark, base.text):
            return PlacedText(mark, base.x_px + offset[0] * size_px, base.y_px - offset[1] * size_px, is_mark=True)
    centre, _ = next(iter(anchors.marks[mark].values()))
    return PlacedText(mark, below[0].x_px + length(below[0].text) / 2 - centre * size_px, 0, is_mark=True)
