"""Text without a shaping engine, as far as characters go: in place of what Raqm does.

Arabic letters are joined by the presentation forms of Unicode (U+FB50 to U+FEFC), Indic vowels
reordered, brackets mirrored. Marks are placed on letters by the anchors of the fonts (OpenType
GPOS, kept as JSON).
"""

import unicodedata
from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from cardbeat.typeset.unicode.bidi import MIRRORED
from cardbeat.typeset.unicode.clusters import (
    ZWJ,
    ZWNJ,
    characters,
    clusters,
)

AnchorPoints = dict[str, dict[str, list[float]]]
"""Character to anchor name to `[x, y]` in em, right of and above the character's origin."""

_TATWEEL = "\u0640"
_LAM = "\u0644"
_FIRST_FORM = 0xFB50
_LAST_FORM = 0xFEFC
_FIRST_LAM_ALEF = 0xFEF5
_JOININGS = {
    "<isolated>": (False, False),
    "<final>": (True, False),
    "<initial>": (False, True),
    "<medial>": (True, True),
}
"""By the kind of decomposition: whether a form joins the letter before it, and the one after it."""


class PlacedText(NamedTuple):
    """Characters to draw as they are, `x_px` right of and `y_px` below the origin of the run."""

    text: str
    x_px: float
    y_px: float


class Anchors(NamedTuple):
    """The anchor points of a font.

    A mark stands where its point meets the one of the same name below it.
    """

    marks: AnchorPoints
    bases: AnchorPoints
    """Of letters, and of marks that carry other marks."""

    def places(self, grapheme: str) -> bool:
        """Whether each mark of a grapheme has a place on its letter or on a mark before it."""
        for place, mark in enumerate(grapheme):
            is_mark = place and unicodedata.category(mark)[0] != "L"
            if is_mark and not any(
                self.offset_em(mark, below) for below in grapheme[:place]
            ):
                return False
        return True

    def offset_em(
        self, mark: str, base: str
    ) -> tuple[float, float] | None:
        """The mark's origin, right of and above that of the base; None without an anchor for it."""
        points = self.bases.get(base, {})
        for name, (x, y) in self.marks.get(mark, {}).items():
            if name in points:
                return points[name][0] - x, points[name][1] - y
        return None


NO_ANCHORS = Anchors({}, {})


def characters_to_draw(text: str, rtl: bool) -> str:
    """The characters to draw from left to right, for a text in logical order."""
    if rtl:
        turned = "".join(reversed(clusters(joined(text))))
        text = "".join(
            MIRRORED.get(character, character) for character in turned
        )
    else:
        text = "".join(map(_indic, clusters(text)))
    return text.replace(ZWJ, "").replace(ZWNJ, "")


def joined(text: str) -> str:
    """The text with each letter in its contextual form, and lam with alef as ligatures."""
    letters = [
        character for character in text if not _is_transparent(character)
    ]
    joins = [False]
    for before, after in pairwise(letters):
        joins.append(
            _joins(before, False, True) and _joins(after, True, False)
        )
    joinings = pairwise([*joins, False])
    result = ""
    for letter in text:
        if _is_transparent(letter):
            result += letter
        else:
            result += _forms().get((letter, *next(joinings)), letter)
    result = result.replace(ZWJ, "")
    for pair, ligature in _ligatures().items():
        result = result.replace(pair, ligature)
    return result


def placed(
    text: str,
    anchors: Anchors,
    size_px: float,
    length: Callable[[str], float],
) -> list[PlacedText]:
    """The letters of a text, and each mark alone on its letter or on a mark before it.

    `length` gives a string's pixels.
    """
    if anchors.marks.keys().isdisjoint(text):
        return [PlacedText(text, 0, 0)]
    letters = ""
    marks = []
    below: list[PlacedText] = []
    for character in text:
        if character in anchors.marks and below:
            mark = _placed_mark(
                character, below, anchors, size_px, length
            )
            marks.append(mark)
            below.append(mark)
        else:
            below = [PlacedText(character, length(letters), 0)]
            letters += character
    return [PlacedText(letters, 0, 0), *marks]


def _indic(grapheme: str) -> str:
    """The characters of a grapheme in the order of drawing."""
    if grapheme < "\u0900":
        return grapheme
    is_before = characters("before_base").match
    parts = unicodedata.normalize("NFD", grapheme)
    return "".join(sorted(parts, key=lambda part: not is_before(part)))


def _joins(character: str, before: bool, after: bool) -> bool:
    return (
        character in (_TATWEEL, ZWJ)
        or (character, before, after) in _forms()
    )


def _is_transparent(character: str) -> bool:
    """Whether it is a mark, across which letters join (joining type T)."""
    return unicodedata.category(character) in ("Mn", "Me")


@cache
def _forms() -> dict[tuple[str, bool, bool], str]:
    """Presentation forms by letter, whether it joins the one before it, and the one after it.

    A letter without forms is drawn as it is: it looks most like a final form.
    """
    forms: dict[tuple[str, bool, bool], str] = {}
    for codepoint in range(_FIRST_FORM, _LAST_FORM + 1):
        kind, *parts = unicodedata.decomposition(
            chr(codepoint)
        ).split() or [""]
        if kind in _JOININGS and len(parts) == 1:
            forms[chr(int(parts[0], 16)), *_JOININGS[kind]] = chr(
                codepoint
            )
    for letter in map(chr, (*range(0x620, 0x700), *range(0x750, 0x780))):
        if (
            unicodedata.category(letter) == "Lo"
            and (letter, False, False) not in forms
        ):
            # Letters of Pashto, Kurdish, Sindhi and others have no forms, but they join.
            forms[letter, True, False] = letter
    return forms


@cache
def _ligatures() -> dict[str, str]:
    """The ligatures that Arabic requires, by the presentation forms of lam and alef."""
    ligatures = {}
    for codepoint in range(_FIRST_LAM_ALEF, _LAST_FORM + 1):
        kind, _, alef = unicodedata.decomposition(chr(codepoint)).split()
        lam = _forms()[_LAM, kind == "<final>", True]
        ligatures[lam + _forms()[chr(int(alef, 16)), True, False]] = chr(
            codepoint
        )
    return ligatures


def _placed_mark(
    mark: str,
    below: Sequence[PlacedText],
    anchors: Anchors,
    size_px: float,
    length: Callable[[str], float],
) -> PlacedText:
    """The mark on the last letter or mark with an anchor for it, else centred on the letter."""
    for base in reversed(below):
        if offset := anchors.offset_em(mark, base.text):
            return PlacedText(
                mark,
                base.x_px + offset[0] * size_px,
                base.y_px - offset[1] * size_px,
            )
    centre, _ = next(iter(anchors.marks[mark].values()))
    return PlacedText(
        mark,
        below[0].x_px + length(below[0].text) / 2 - centre * size_px,
        0,
    )
