"""Joins Arabic letters without a shaping engine, by the presentation forms of Unicode (U+FB50 to U+FEFC)."""

import unicodedata
from collections.abc import Container
from functools import cache
from itertools import pairwise

ZWJ = "\u200d"
_TATWEEL = "\u0640"
_LAM = "\u0644"
_FIRST, _LAST = 0xFB50, 0xFEFC
_LETTERS = (*range(0x620, 0x700), *range(0x750, 0x780))
_HIGH_HAMZA = "\u0674"
"""Joins no other letter."""
_AE = "\u06d5"
"""Of Kurdish and Uyghur: has no presentation forms, but those of heh look the same where it does not join the next."""
_AE_FORMS = {(_AE, False, False): "\ufee9", (_AE, True, False): "\ufeea"}


def joined(text: str) -> str:
    """The text, in logical order, with each letter in its contextual form, and lam with alef as their ligature."""
    forms, result = _forms(), []
    letters = [c for c in text if not _is_transparent(c)]
    joins_next = _joining(letters, forms)
    position = -1
    for character in text:
        if _is_transparent(character):
            result.append(character)
            continue
        position += 1
        before = position > 0 and joins_next[position - 1]
        result.append(forms.get((character, before, joins_next[position]), character))
    return _with_ligatures("".join(result).replace(ZWJ, ""))


def _joining(letters: list[str], forms: dict[tuple[str, bool, bool], str]) -> list[bool]:
    """For each letter whether it joins the next."""

    def joins_after(character: str) -> bool:
        return character in (_TATWEEL, ZWJ) or (character, False, True) in forms

    def joins_before(character: str) -> bool:
        return character in (_TATWEEL, ZWJ) or (character, True, False) in forms

    return [joins_after(a) and joins_before(b) for a, b in pairwise(letters)] + [False]


def _is_transparent(character: str) -> bool:
    """Joining type T: a mark, across which letters join."""
    return unicodedata.category(character) in ("Mn", "Me")


def _with_ligatures(text: str) -> str:
    for pair, ligature in _ligatures().items():
        if pair in text:
            text = text.replace(pair, ligature)
    return text


@cache
def _forms() -> dict[tuple[str, bool, bool], str]:
    """(letter, joined to the one before, joined to the one after) to its presentation form."""
    names = {
        "<isolated>": (False, False),
        "<final>": (True, False),
        "<initial>": (False, True),
        "<medial>": (True, True),
    }
    forms: dict[tuple[str, bool, bool], str] = {}
    for codepoint in range(_FIRST, _LAST + 1):
        kind, *parts = unicodedata.decomposition(chr(codepoint)).split() or [""]
        if kind in names and len(parts) == 1:
            forms[chr(int(parts[0], 16)), *names[kind]] = chr(codepoint)
    return _without_forms(forms) | forms | _AE_FORMS


def _without_forms(forms: Container[tuple[str, bool, bool]]) -> dict[tuple[str, bool, bool], str]:
    """Letters of Pashto, Sindhi and others that have none: as they are, they are most like their final form."""
    letters = (chr(codepoint) for codepoint in _LETTERS if unicodedata.category(chr(codepoint)) == "Lo")
    return {(c, True, False): c for c in letters if c != _HIGH_HAMZA and (c, False, False) not in forms}


@cache
def _ligatures() -> dict[str, str]:
    """The presentation forms of lam and alef beside each other, to the ligature that Arabic requires."""
    forms, ligatures = _forms(), {}
    for codepoint in range(0xFEF5, _LAST + 1):
        kind, _, alef = unicodedata.decomposition(chr(codepoint)).split()
        lam = forms[_LAM, kind == "<final>", True]
        ligatures[lam + forms[chr(int(alef, 16)), True, False]] = chr(codepoint)
    return ligatures
