"""Where a line may end: the part of UAX #14 that titles meet, and none of its dictionaries."""

import unicodedata
from collections.abc import Sequence
from enum import IntEnum

from cardbeat.typeset.clusters import WORD_JOINER, ZWSP


class Break(IntEnum):
    """How good it is to end a line between two graphemes."""

    NEVER = 0
    EMERGENCY = 1
    """Inside a word: only where the text fits in no other way."""
    GOOD = 2


_GLUE = frozenset("\u00a0\u202f\u2007\u2011" + WORD_JOINER)
_NOT_FIRST = frozenset(
    "!%),.:;?]}»›’”…‥‼⁇⁈⁉°′″℃€¢、。，．：；？！）］｝〉》」』】〕〗〙〛｠｣｡､・‐–〜～゠ー々〻ゝゞヽヾ"
    "ぁぃぅぇぉっゃゅょゎゕゖァィゥェォッャュョヮヵヶㇰㇱㇲㇳㇴㇵㇶㇷㇸㇹㇺㇻㇼㇽㇾㇿｧｨｩｪｫｬｭｮｯｰ％‰"
    "।॥،؛؟٪۔๏ๆฯໆຯ།༎༔་༌៖។៕ៗ၊။၌၍၎၏"
)
"""What no line starts with: closing punctuation, small kana, iteration marks."""
_NOT_LAST = frozenset("([{«‹“‘¿¡（［｛〈《「『【〔〖〘〚｟｢$£¥₩€＄￡￥￦#")
"""What no line ends with: opening punctuation, signs before a number."""
_AFTER = frozenset("-‐–—/\\|·་༌፡ ")
"""A line may end after these inside a word, between letters."""
_LEADING_VOWELS = frozenset("เแโใไເແໂໃໄ")
"""Of Thai and Lao: written before the consonant they are spoken after."""
_FOLLOWING_VOWELS = frozenset("ะาๅฯๆະາໆຽ")
# Thai and Lao, Myanmar, Khmer, Tai Le with New Tai Lue, Tai Tham: scripts that put no spaces between words.
_SYLLABIC = (
    ("\u0e00", "\u0eff"),
    ("\u1000", "\u109f"),
    ("\u1780", "\u17ff"),
    ("\u1950", "\u19df"),
    ("\u1a20", "\u1aaf"),
)
_IDEOGRAPHIC = (
    ("\u2e80", "\u312f"), ("\u3190", "\ua4cf"), ("\uf900", "\ufaff"), ("\ufe30", "\ufe4f"), ("\uff00", "\uffef"),
    ("\U0001b000", "\U0001b2ff"), ("\U0001f000", "\U0001faff"), ("\U00020000", "\U0003ffff"),
)  # fmt: skip


def breaks(graphemes: Sequence[str]) -> list[Break]:
    """For each grapheme how good a break before it is; the first has none. A space stays with what it follows."""
    return [_between(graphemes, i) if i else Break.NEVER for i in range(len(graphemes))]


def _between(graphemes: Sequence[str], i: int) -> Break:
    before, after = graphemes[i - 1], graphemes[i]
    if after in (" ", ZWSP) or before[-1] in _GLUE or after[0] in _GLUE:
        return Break.NEVER
    if before == ZWSP:
        return Break.GOOD
    if before == " ":
        return _at_space(graphemes[i - 2] if i > 1 else "", after)
    if after[0] in _NOT_FIRST or before[-1] in _NOT_LAST:
        spaceless = any(_is_ideographic(c) or _is_syllabic(c[0]) for c in (before, after))
        return Break.NEVER if spaceless else Break.EMERGENCY
    if _is_ideographic(before) or _is_ideographic(after):
        return Break.GOOD
    if before in _AFTER:
        return _after_sign(graphemes[i - 2] if i > 1 else "", after)
    if _is_syllabic(before[0]) and _is_syllabic(after[0]):
        return _in_syllabic(before, after)
    return Break.EMERGENCY


def _at_space(before: str, after: str) -> Break:
    """French puts spaces inside its quotation marks and before its question marks, where no line ends."""
    if before in ("«", "‹") or (after in _NOT_FIRST and not unicodedata.category(after).startswith("S")):
        return Break.NEVER
    return Break.GOOD


def _after_sign(before: str, after: str) -> Break:
    letters = before[:1].isalpha() or before[:1].isdigit()
    return Break.GOOD if letters and after[0].isalpha() else Break.EMERGENCY


def _in_syllabic(before: str, after: str) -> Break:
    """Between syllables, as far as the letters show where they end."""
    if before[0] in _LEADING_VOWELS or after[0] in _FOLLOWING_VOWELS:
        return Break.NEVER
    if "\u0e00" <= after[0] <= "\u0eff":
        return Break.GOOD if after[0] in _LEADING_VOWELS else Break.EMERGENCY
    return Break.NEVER if "\u103a" in after and "\u1039" not in after else Break.GOOD


def _is_ideographic(grapheme: str) -> bool:
    return grapheme >= "\u2e80" and any(first <= grapheme[0] <= last for first, last in _IDEOGRAPHIC)


def _is_syllabic(character: str) -> bool:
    return character >= "\u0e00" and any(first <= character <= last for first, last in _SYLLABIC)
