"""Cleans a text, and finds its grapheme clusters: the part of UAX #29 that matters to drawing."""

import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterable
from itertools import chain

ZWNJ, ZWJ, ZWSP = "\u200c", "\u200d", "\u200b"
SOFT_HYPHEN = "\u00ad"
LINE_CONTROLS = SOFT_HYPHEN + "\u2066\u2067\u2068\u2069"
"""Invisible characters that say where a line may break, and isolates, which order it. `bidi.ordered` takes them out."""
_NO_LINE_CONTROLS = dict.fromkeys(map(ord, LINE_CONTROLS))
TEXT_STYLE, EMOJI_STYLE = "\ufe0e", "\ufe0f"
"""Variation selectors 15 and 16, which choose between a sign of the text and an emoji (UTS #51)."""

_IGNORED = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180e\u202a-\u202e\u2061-\u2065\u206a-\u206f\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e001f\U000e0080-\U000e0fff\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]"
)
"""Invisible characters that are removed and not counted as missing, also embeddings and overrides of direction."""
_BARE = frozenset((" ", ZWSP, *LINE_CONTROLS))  # what no mark stands on
_SURROGATE = re.compile("[\ud800-\udfff]")
_SPACES = re.compile(r"[ \t\n\v\f\r\x1c-\x1f\x85\u1680\u2000-\u2006\u2008-\u200a\u2028\u2029\u205f]+")
_LIGATURES = {codepoint: unicodedata.normalize("NFKC", chr(codepoint)) for codepoint in range(0xFB00, 0xFB07)}
"""Ligatures of Latin and their letters. Fonts make ligatures of the letters themselves."""
_LIGATURES[0xFDFD] = "بسم الله الرحمن الرحيم"
"""A whole phrase in one glyph, whose outline some versions of FreeType refuse to draw."""
_STACKING = ("Mn", "Me")  # categories of marks above, below or around their letter
_DOUBLE = "\u035c", "\u0362"
"""The first and the last of the marks that span two letters, which are drawn together."""
_FIRST_SYLLABLE = 0xAC00  # the first Korean syllable in one character. Each 28th has no final consonant.
_LAST_ASCII = "\x7f"  # two characters up to this one never join: most characters of most texts
_MARKS_KEPT, _MARKS_KEPT_LATIN = 6, 3
"""Marks that one letter keeps. The second is for scripts before `_LATIN_END`, whose letters carry at most a few."""
_LONGEST = 32
"""Characters of one grapheme: an emoji of a couple has 10, long stacks of Tibetan and conjuncts of Hindi about as many.
What follows begins another grapheme. An endless one would be as long as a whole text."""
_EUROPEAN = (("A", "\u052f"), ("\u1c80", "\u1fff"), ("\u2c60", "\u2c7f"), ("\ua640", "\ua7ff"))
_LATIN_END = 0x0590  # Greek, Cyrillic and all others before Hebrew


def clean(text: str) -> str:
    """The text in NFC, without what is never drawn, and with one space for each run of white space."""
    return clean_for_lines(text.translate(_NO_LINE_CONTROLS))


def clean_for_lines(text: str) -> str:
    """The same, with its `LINE_CONTROLS`."""
    text = _SURROGATE.sub("\ufffd", text)
    text = _SPACES.sub(" ", _IGNORED.sub("", text)).strip()
    return unicodedata.normalize("NFC", text.translate(_LIGATURES))


def clusters(text: str, most: int = sys.maxsize) -> list[str]:
    """The first `most` graphemes of a clean text, without marks on no letter, or past `_MARKS_KEPT` or `_LONGEST`."""
    if text.isascii():
        return list(text[:most])
    found: list[str] = []
    for character in text:
        alone = character <= _LAST_ASCII and (not found or found[-1][-1] <= _LAST_ASCII)
        if found and not alone and len(found[-1]) < _LONGEST and _joins(found[-1], character):
            if not _is_stacked(found[-1], character):
                found[-1] += character
        elif alone or not is_mark(character):
            if len(found) == most:
                break
            found.append(character)
    return found


def stray_marks(text: str, graphemes: Iterable[str]) -> list[str]:
    """The visible marks of a text that are not in its graphemes: on no letter, or too many on one."""
    kept = Counter(chain.from_iterable(graphemes))
    return [mark for mark in (Counter(text) - kept).elements() if not is_invisible(mark)]


def without_marks(grapheme: str) -> str:
    """The grapheme without its marks, but for those that take width on the line (Mc)."""
    return "".join(c for c in grapheme if unicodedata.category(c) not in _STACKING)


def is_european(character: str) -> bool:
    """Whether it is a letter of Latin, Greek or Cyrillic."""
    return character.isalpha() and (character.isascii() or any(first <= character <= last for first, last in _EUROPEAN))


def is_regional_indicator(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def is_tag(character: str) -> bool:
    """Whether a character spells the name of a region after a black flag."""
    return "\U000e0020" <= character <= "\U000e007f"


def is_pictograph(character: str) -> bool:
    """Whether a zero width joiner can join a character into an emoji: roughly Extended_Pictographic."""
    return (
        "\U0001f000" <= character <= "\U0001faff" or "\u2190" <= character <= "\u2bff" or character in "©®‼⁉™ℹ〰〽㊗㊙"
    )


def is_mark(character: str) -> bool:
    """Whether a character is part of the letter before it: marks, joiners, variation selectors, tags."""
    return (
        unicodedata.category(character)[0] == "M"
        or character in (ZWJ, ZWNJ, TEXT_STYLE, EMOJI_STYLE)
        or is_tag(character)
        or character in "\u0e33\u0eb3"  # Thai and Lao AM
    )


def is_invisible(character: str) -> bool:
    """Whether a character orders, joins or selects others and draws nothing. The number signs of Arabic are drawn."""
    if character in (TEXT_STYLE, EMOJI_STYLE):
        return True
    return unicodedata.category(character) == "Cf" and unicodedata.bidirectional(character) != "AN"


def _joins(cluster: str, character: str) -> bool:
    """Whether a character continues a grapheme."""
    last = cluster[-1]
    if "\U0001f3fb" <= character <= "\U0001f3ff":  # skin tones
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
    """GB6 to GB8: letters (jamo) of one Korean syllable, some of which may be one character already."""
    is_syllable = "\uac00" <= last <= "\ud7a3"
    if "\u1100" <= last <= "\u115f":
        return "\u1100" <= character <= "\u11a7" or "\uac00" <= character <= "\ud7a3"
    if "\u1160" <= last <= "\u11a7" or (is_syllable and (ord(last) - _FIRST_SYLLABLE) % 28 == 0):
        return "\u1160" <= character <= "\u11ff"
    return ("\u11a8" <= last <= "\u11ff" or is_syllable) and "\u11a8" <= character <= "\u11ff"


def _is_stacked(cluster: str, character: str) -> bool:
    """Whether the character is one mark too many on its letter."""
    kept = _MARKS_KEPT_LATIN if ord(cluster[0]) < _LATIN_END else _MARKS_KEPT
    marks = cluster[-kept:] + character
    return len(cluster) > kept and all(unicodedata.category(mark) in _STACKING for mark in marks)
