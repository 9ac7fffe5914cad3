"""Joins Arabic letters without a shaping engine, by the presentation forms of Unicode (U+FB50 to U+FEFC)."""

import unicodedata
from functools import cache
from itertools import pairwise

ZWJ = "\u200d"
_TATWEEL = "\u0640"
_LAM = "\u0644"
_FIRST, _LAST = 0xFB50, 0xFEFC
_FIRST_LAM_ALEF = 0xFEF5
_LETTERS = (*range(0x620, 0x700), *range(0x750, 0x780))
_HIGH_HAMZA = "\u0674"  # joins no other letter
_AE = "\u06d5"
"""A letter of Kurdish and Uyghur without presentation forms. Two of heh, which do not join the next letter, look like
it."""
_AE_FORMS = {(_AE, False, False): "\ufee9", (_AE, True, False): "\ufeea"}
_JOININGS = {
    "<isolated>": (False, False),
    "<final>": (True, False),
    "<initial>": (False, True),
    "<medial>": (True, True),
}
"""By the kind of decomposition: whether a form joins the letter before it, and the one after it."""


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
    for codepoint in range(_FIRST, _LAST + 1):
        kind, *parts = unicodedata.decomposition(chr(codepoint)).split() or [""]
        if kind in _JOININGS and len(parts) == 1:
            forms[chr(int(parts[0], 16)), *_JOININGS[kind]] = chr(codepoint)
    # Letters of Pashto, Sindhi and others have no forms: drawn as they are, they look most like a final form.
    letters = (chr(codepoint) for codepoint in _LETTERS if unicodedata.category(chr(codepoint)) == "Lo")
    without = {(c, True, False): c for c in letters if c != _HIGH_HAMZA and (c, False, False) not in forms}
    return without | forms | _AE_FORMS


@cache
def _ligatures() -> dict[str, str]:
    """The ligatures that Arabic requires, by the presentation forms of lam and alef side by side."""
    forms, ligatures = _forms(), {}
    for codepoint in range(_FIRST_LAM_ALEF, _LAST + 1):
        kind, _, alef = unicodedata.decomposition(chr(codepoint)).split()
        lam = forms[_LAM, kind == "<final>", True]
        ligatures[lam + forms[chr(int(alef, 16)), True, False]] = chr(codepoint)
    return ligatures
