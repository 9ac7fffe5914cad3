"""Cleans a text, and finds its grapheme clusters: the part of UAX #29 that matters to drawing."""

import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterable
from itertools import chain

ZWNJ, ZWJ, WORD_JOINER, ZWSP = "\u200c", "\u200d", "\u2060", "\u200b"
SOFT_HYPHEN = "\u00ad"
LINE_CONTROLS = SOFT_HYPHEN + "\u2066\u2067\u2068\u2069"
"""Invisible characters that say where a line may break, and the isolates, which order it: they are taken out later."""
_NO_LINE_CONTROLS = dict.fromkeys(map(ord, LINE_CONTROLS))
TEXT_STYLE, EMOJI_STYLE = "\ufe0e", "\ufe0f"
"""Variation selectors 15 and 16, which choose between a sign of the text and an emoji (UTS #51)."""

IGNORED = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180e\u202a-\u202e\u2061-\u2065\u206a-\u206f\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e001f\U000e0080-\U000e0fff\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]"
)
"""Invisible characters that neither join, break nor order anything: drawn as nothing, and not missing."""
_BARE = frozenset((" ", ZWSP, *LINE_CONTROLS))
"""What no mark stands on."""
_SURROGATE = re.compile("[\ud800-\udfff]")
_SPACES = re.compile(r"[ \t\n\v\f\r\x1c-\x1f\x85\u1680\u2000-\u2006\u2008-\u200a\u2028\u2029\u205f]+")
_LIGATURES = {codepoint: unicodedata.normalize("NFKC", chr(codepoint)) for codepoint in range(0xFB00, 0xFB07)}
"""Latin letters, from which the fonts make ligatures where they have some."""
_LIGATURES[0xFDFD] = "بسم الله الرحمن الرحيم"
"""A whole phrase in one glyph, whose outline some versions of FreeType refuse to draw."""
_STACKING = ("Mn", "Me")
"""Categories of marks that stand above, below or around their letter."""
_DOUBLE = "\u035c", "\u0362"
"""The first and the last of the marks that span two letters, which are drawn together."""
_FIRST_SYLLABLE = 0xAC00
"""Of the Korean syllables: each 28th has no final consonant."""
_LAST_ASCII = "\x7f"
"""Two characters up to this one never join: that is most of many texts."""
_MARKS_KEPT = 6
_MARKS_KEPT_LATIN = 3
"""How many of them one letter keeps."""
_LATIN_END = 0x0590
"""Greek, Cyrillic and all that comes before Hebrew: scripts whose letters carry at most a few marks."""


def clean(text: str) -> str:
    """A text in NFC without what is never drawn, and with one space for each run of white space."""
    return clean_for_lines(text.translate(_NO_LINE_CONTROLS))


def clean_for_lines(text: str) -> str:
    """The same with its `LINE_CONTROLS`."""
    text = _SURROGATE.sub("\ufffd", text)
    text = _SPACES.sub(" ", IGNORED.sub("", text)).strip()
    return unicodedata.normalize("NFC", text.translate(_LIGATURES))


def clusters(text: str, most: int = sys.maxsize) -> list[str]:
    """The graphemes of a clean text, without marks on no letter and those that are too many on theirs.

    Only the first `most` are looked for.
    """
    found: list[str] = []
    for character in text:
        alone = character <= _LAST_ASCII and (not found or found[-1][-1] <= _LAST_ASCII)
        if found and not alone and _joins(found[-1], character):
            if not _is_stacked(found[-1], character):
                found[-1] += character
        elif alone or not is_mark(character):
            if len(found) == most:
                break
            found.append(character)
    return found


def stray_marks(text: str, graphemes: Iterable[str]) -> list[str]:
    """The visible marks of a text that are not in its graphemes: on no letter, or too many on theirs."""
    kept = Counter(chain.from_iterable(graphemes))
    return [mark for mark in (Counter(text) - kept).elements() if not is_invisible(mark)]


def without_marks(grapheme: str) -> str:
    """Keeps marks that take room on the line (Mc)."""
    return "".join(c for c in grapheme if unicodedata.category(c) not in _STACKING)


def is_regional_indicator(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def is_tag(character: str) -> bool:
    """Whether a character spells the name of a region after a black flag."""
    return "\U000e0020" <= character <= "\U000e007f"


def is_pictograph(character: str) -> bool:
    """Roughly Extended_Pictographic: what a zero width joiner can join into one emoji."""
    return (
        "\U0001f000" <= character <= "\U0001faff" or "\u2190" <= character <= "\u2bff" or character in "©®‼⁉™ℹ〰〽㊗㊙"
    )


def is_mark(character: str) -> bool:
    """Whether a character belongs to the letter before it: marks, joiners, variation selectors, tags."""
    return (
        unicodedata.category(character)[0] == "M"
        or character in (ZWJ, ZWNJ, TEXT_STYLE, EMOJI_STYLE)
        or is_tag(character)
        or character in "\u0e33\u0eb3"  # Thai and Lao AM
    )


def _joins(cluster: str, character: str) -> bool:
    last = cluster[-1]
    if "\U0001f3fb" <= character <= "\U0001f3ff":
        return is_pictograph(cluster[0])
    if is_mark(character):
        return cluster[0] not in _BARE
    if _DOUBLE[0] <= last <= _DOUBLE[1]:
        return unicodedata.category(character)[0] == "L"
    if last == ZWJ and is_pictograph(cluster[0]):
        return is_pictograph(character) and not is_regional_indicator(cluster[0])
    if is_regional_indicator(character):
        return is_regional_indicator(last) and len(cluster) == 1
    return _is_conjunct(cluster, character) or _is_syllable(last, character)


def _is_conjunct(cluster: str, character: str) -> bool:
    """GB9c: a letter after a virama, or after the sign that subjoins letters in Khmer and Myanmar."""
    last = cluster[-2] if cluster[-1] == ZWJ and len(cluster) > 1 else cluster[-1]
    return unicodedata.combining(last) == 9 and last not in "\u0e3a\u103a" and unicodedata.category(character) == "Lo"


def _is_syllable(last: str, character: str) -> bool:
    """GB6 to GB8: the letters (jamo) of one Korean syllable, of which some may be one character already."""
    if "\u1100" <= last <= "\u115f":
        return "\u1100" <= character <= "\u11a7" or _is_precomposed_syllable(character)
    if "\u1160" <= last <= "\u11a7" or (_is_precomposed_syllable(last) and (ord(last) - _FIRST_SYLLABLE) % 28 == 0):
        return "\u1160" <= character <= "\u11ff"
    return ("\u11a8" <= last <= "\u11ff" or _is_precomposed_syllable(last)) and "\u11a8" <= character <= "\u11ff"


def _is_precomposed_syllable(character: str) -> bool:
    return "\uac00" <= character <= "\ud7a3"


def _is_stacked(cluster: str, character: str) -> bool:
    """Whether the character is one mark too many on its letter."""
    if unicodedata.category(character) not in _STACKING:
        return False
    kept = _MARKS_KEPT_LATIN if ord(cluster[0]) < _LATIN_END else _MARKS_KEPT
    tail = cluster[-kept:]
    return len(cluster) > kept and all(unicodedata.category(c) in _STACKING for c in tail)


def is_invisible(character: str) -> bool:
    """Whether a character orders, joins or selects others and draws nothing, as the number signs of Arabic do."""
    if character in (TEXT_STYLE, EMOJI_STYLE):
        return True
    return unicodedata.category(character) == "Cf" and unicodedata.bidirectional(character) != "AN"
