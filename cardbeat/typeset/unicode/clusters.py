"""Cleans a text, and finds its grapheme clusters: the part of UAX #29 that matters to drawing."""

import json
import re
import unicodedata
from functools import cache

from cardbeat.files import read_text

ZWSP = "\u200b"
ZWNJ = "\u200c"
ZWJ = "\u200d"
TEXT_STYLE = "\ufe0e"
EMOJI_STYLE = "\ufe0f"
"""Variation selectors 15 and 16, which choose between a sign of the text and an emoji (UTS #51)."""


@cache
def characters(name: str) -> re.Pattern[str]:
    """A class of characters in `words/characters.json`."""
    patterns: dict[str, str] = json.loads(
        read_text("words/characters.json")
    )
    return re.compile(patterns[name])


_SURROGATE = re.compile("[\ud800-\udfff]")
_BISMILLAH = {0xFDFD: "بسم الله الرحمن الرحيم"}
"""A whole phrase in one glyph, whose outline some versions of FreeType refuse to draw."""
_LONGEST = 12
"""Characters of one grapheme. An emoji of a couple has 10, long stacks of Tibetan as many."""
_AM = "\u0e33\u0eb3"
"""A vowel of Thai and Lao that is no mark in Unicode."""
_VIRAMA = 9
"""The combining class of signs that join letters."""


def clean(text: str) -> str:
    """The text in NFC, without what is never drawn, with one space for each run of white space."""
    text = _SURROGATE.sub("\ufffd", text)
    text = characters("ignored").sub("", text)
    text = characters("spaces").sub(" ", text).strip()
    return unicodedata.normalize("NFC", text.translate(_BISMILLAH))


def clusters(text: str) -> list[str]:
    """The graphemes of a clean text, without marks on no letter, cut where they are too long."""
    if text.isascii():
        return list(text)
    found: list[str] = []
    for character in text:
        if not found or not _joins(found[-1], character):
            if not is_mark(character):
                found.append(character)
        elif len(found[-1]) < _LONGEST:
            found[-1] += character
    return found


def is_european(character: str) -> bool:
    """Whether it is a letter of Latin, Greek or Cyrillic."""
    return bool(characters("european").match(character))


def is_mark(character: str) -> bool:
    """Whether a character is part of the letter before it: a mark, a joiner, a selector, a tag."""
    if character.isascii():
        return False
    if (
        character in (ZWJ, ZWNJ, *_AM)
        or "\U000e0020" <= character <= "\U000e007f"
    ):
        return True
    return unicodedata.category(character)[0] == "M"


def is_invisible(character: str) -> bool:
    """Whether a character orders, joins or selects others and draws nothing."""
    if unicodedata.bidirectional(character) == "AN":
        # signs of Arabic around a number
        return False
    return unicodedata.category(character) == "Cf" or character in (
        TEXT_STYLE,
        EMOJI_STYLE,
    )


def is_pictograph(character: str) -> bool:
    """Whether a zero width joiner can join it into an emoji: roughly Extended_Pictographic."""
    return bool(characters("pictographs").match(character))


def _joins(cluster: str, character: str) -> bool:
    """Whether a character continues a grapheme."""
    if character.isascii():
        return False
    last = cluster[-1]
    # skin tones
    if "\U0001f3fb" <= character <= "\U0001f3ff":
        return is_pictograph(cluster[0])
    if is_mark(character):
        return cluster[0] not in (" ", ZWSP)
    if last == ZWJ and is_pictograph(cluster[0]):
        return is_pictograph(character) and not _is_half_flag(cluster[0])
    if _is_half_flag(character):
        return _is_half_flag(last) and len(cluster) == 1
    return _is_conjunct(cluster, character)


def _is_half_flag(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _is_conjunct(cluster: str, character: str) -> bool:
    """GB9c: a letter after a virama, or after the sign that subjoins letters in Khmer."""
    last = cluster.rstrip(ZWJ)[-1:]
    if (
        not last
        or unicodedata.combining(last) != _VIRAMA
        or last in "\u0e3a\u103a"
    ):
        return False
    return unicodedata.category(character) == "Lo"
