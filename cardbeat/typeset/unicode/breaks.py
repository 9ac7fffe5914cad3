"""Where a line may end, and how well (UAX #14, whose rules are named by their numbers).

The class of a character is found by its category, or by `words/line_break.json`.
Letters of Korean are `AL`, since its lines end between words here. Small kana are `NS`.
"""

import json
import re
import unicodedata
from collections.abc import Sequence
from enum import IntEnum
from functools import cache, lru_cache
from itertools import accumulate

from cardbeat.files import read_text
from cardbeat.typeset.unicode.clusters import ZWJ
from cardbeat.typeset.unicode.words import (
    MODELS,
    continues_syllable,
    has_words,
    phrase_starts,
    word_starts,
)


class Break(IntEnum):
    """How good it is to end a line between two graphemes."""

    NEVER = 0
    INSIDE = 1
    """Inside a word: only where it is wider than a line."""
    SLASH = 2
    """Inside a path: only where it is wider than a line, too."""
    ALLOWED = 3
    """Inside a phrase of Japanese or a word of Chinese, or after the hyphen of a compound."""
    GOOD = 4


def _classes(names: str) -> frozenset[str]:
    return frozenset(names.split())


_NOT_FIRST = _classes("CL CP EX IS SY QU BA HY NS IN")
"""LB13, LB19, LB21, LB22: what no line starts with."""
_NOT_LAST = _classes("OP QU BB")
"""LB14, LB19, LB21: what no line ends with."""
_LETTERS = _classes("AL HL SA")
_IN_WORD = _LETTERS | {"NU"}
_TOGETHER = {
    "CL": "PR PO",
    "CP": "AL HL SA NU PR PO",
    "PR": "AL HL SA NU ID OP",
    "PO": "AL HL SA NU OP",
    "ID": "PO",
    "IS": "AL HL SA NU",
    "SY": "HL NU",
    "HY": "NU",
    "B2": "B2",
}
"""LB17, LB21b, LB23 to LB30: classes, and those that stay on the same line after them."""
_TOGETHER.update(dict.fromkeys(_IN_WORD, "AL HL SA NU PR PO OP"))
_SPACELESS = _classes("ID SA")
_SIGNS = _classes("BA HY B2 SY")
"""Signs after which a line may end between letters."""
_NOT_AFTER_SPACE = _classes("CL CP EX IS SY WJ")
_AFTER_SPACE_TOO = {"QU": "OP", "CL": "NS", "CP": "NS", "B2": "B2"}
"""LB15 to LB17: what stays together also over a space."""
_LEADING_VOWELS = "เแโใไເແໂໃໄ"
"""Vowels of Thai and Lao, written before the consonant that is spoken first."""
_REPEATS = "ฯๆຯໆ"
"""Part of the word before them."""
_IN_KATAKANA = re.compile("[\u30a1-\u30fa\u30fc]{2}").fullmatch
_ENDS_PHRASE = " \u200b、。，．！？：；"


def breaks(graphemes: Sequence[str], language: str = "") -> list[Break]:
    """For each grapheme how good a break before it is; the first has none.

    In a language of `words.MODELS`, only breaks between its phrases are good.
    """
    classes = [
        "",
        "",
        *(line_break(grapheme[0]) for grapheme in graphemes),
    ]
    words = word_starts(graphemes) if "SA" in classes else set()
    found = []
    for i, grapheme in enumerate(graphemes):
        if (
            classes[i + 1] == classes[i + 2] == "AL"
            and grapheme.isascii()
        ):
            # Most of them: inside a word.
            found.append(Break.INSIDE)
        else:
            found.append(_between(graphemes, classes, i, i in words))
    text = "".join(graphemes)
    if language not in MODELS or "ID" not in classes:
        return found
    starts = phrase_starts(text, language)
    for i, place in enumerate(
        accumulate(map(len, graphemes[:-1]), initial=0)
    ):
        if (
            found[i] == Break.GOOD
            and place not in starts
            and graphemes[i - 1] not in _ENDS_PHRASE
        ):
            is_in_word = _IN_KATAKANA(
                graphemes[i - 1][-1] + graphemes[i][0]
            )
            found[i] = Break.INSIDE if is_in_word else Break.ALLOWED
    return found


def _between(
    graphemes: Sequence[str],
    classes: Sequence[str],
    i: int,
    is_word: bool,
) -> Break:
    """The break before grapheme `i`. `is_word`: a word of a script without spaces begins there.

    `classes` begins with two that are empty: those of the grapheme and of two before it are `i` to
    `i + 2`.
    """
    left, before, after = classes[i : i + 3]
    if not i or after in ("SP", "ZW"):
        return Break.NEVER
    if before == "ZW" or (before == "SP" and left == "ZW"):
        return Break.GOOD
    if before == "SP":
        return _at_space(
            left, after, "".join(graphemes[max(0, i - 2) : i + 1])
        )
    if {"WJ", "GL"} & {before, after} or graphemes[i - 1].endswith(ZWJ):
        return Break.NEVER
    if before == after == "SA":
        return _in_spaceless(graphemes[i - 1], graphemes[i], is_word)
    is_spaceless = before in _SPACELESS or after in _SPACELESS
    if _stay(graphemes[i], before, after):
        return Break.NEVER if is_spaceless else Break.INSIDE
    if before in _SIGNS and not is_spaceless:
        return _after_sign(left, graphemes[i - 1], before, after)
    return (
        Break.ALLOWED if (before, after) == ("NU", "ID") else Break.GOOD
    )


def _stay(grapheme: str, before: str, after: str) -> bool:
    """Whether the rules from LB13 on keep two neighbours on one line."""
    if after in _NOT_FIRST or before in _NOT_LAST:
        return True
    if (
        after == "OP"
        and unicodedata.east_asian_width(grapheme[0]) in "FWH"
    ):
        return False
    return after in _TOGETHER.get(before, "")


def _at_space(left: str, after: str, text: str) -> Break:
    """LB13 to LB18: the break at the space inside a text, such as "a b".

    French puts spaces inside its quotation marks and before a percent sign, where no line ends.
    """
    if (
        after in _NOT_AFTER_SPACE
        or left == "OP"
        or _AFTER_SPACE_TOO.get(left) == after
    ):
        return Break.NEVER
    is_unit = left == "NU" and text.endswith("%")
    if is_unit or text[0] in "«‹" or text[-1] in "»›‼⁇⁈⁉":
        return Break.NEVER
    return Break.GOOD


def _after_sign(left: str, grapheme: str, sign: str, after: str) -> Break:
    """The break between a sign and a letter: good after a dash, allowed after a hyphen.

    A Hebrew prefix, its hyphen and its word stay together (LB21a).
    """
    is_hebrew = left == "HL" and sign in ("HY", "BA")
    if is_hebrew or left not in _IN_WORD or after not in _LETTERS:
        return Break.INSIDE
    if sign == "SY":
        return Break.SLASH
    return Break.ALLOWED if grapheme in "-‐" else Break.GOOD


def _in_spaceless(before: str, after: str, is_word: bool) -> Break:
    """The break between words if the script has a word list, else between syllables."""
    if (
        before[0] in _LEADING_VOWELS
        or after[0] in _REPEATS
        or continues_syllable(after)
    ):
        return Break.NEVER
    if is_word or before[0] in _REPEATS or not has_words(after):
        return Break.GOOD
    return Break.INSIDE


@lru_cache(4096)
def line_break(character: str) -> str:
    """The class of a character in UAX #14.

    Of scripts without spaces, only letters and marks are `SA`.
    """
    singles, ranges, categories = _tables()
    category = unicodedata.category(character)
    listed = singles.get(character) or categories.get(category)
    if listed:
        return listed
    found = next(
        (
            name
            for first, last, name in ranges
            if first <= character <= last
        ),
        "AL",
    )
    if found == "SA" and category[0] not in "LM":
        return "AL"
    return found


@cache
def _tables() -> tuple[
    dict[str, str], list[tuple[str, str, str]], dict[str, str]
]:
    """The classes of single characters, of ranges by their first and last ones, of categories."""
    tables = json.loads(read_text("words/line_break.json"))
    classes = tables["characters"].items()
    singles = {
        character: name
        for name, characters in classes
        for character in characters
    }
    return singles, tables["ranges"], tables["categories"]
