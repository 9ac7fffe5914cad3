"""Where a line may end (the part of UAX #14 that titles meet)."""

import unicodedata
from collections.abc import Sequence
from enum import IntEnum

from cardbeat.typeset.clusters import BREAK_HERE, WORD_JOINER


class Break(IntEnum):
    """How good it is to end a line between two clusters."""

    NEVER = 0
    EMERGENCY = 1
    """Only where the text fits no other way: inside a word."""
    GOOD = 2


_GLUE = frozenset("\u00a0\u202f\u2007\u2011" + WORD_JOINER)
_NOT_FIRST = frozenset(
    "!%),.:;?]}»›’”…‥‼⁇⁈⁉°′″℃€¢、。，．：；？！）］｝〉》」』】〕〗〙〛｠｣｡､・‐–〜～゠ー々〻ゝゞヽヾ"
    "ぁぃぅぇぉっゃゅょゎゕゖァィゥェォッャュョヮヵヶㇰㇱㇲㇳㇴㇵㇶㇷㇸㇹㇺㇻㇼㇽㇾㇿｧｨｩｪｫｬｭｮｯｰ％‰"
    "।॥،؛؟٪۔๏ๆฯໆຯ།༎༔་༌៖។៕ៗ၊။၌၍၎၏"
)
"""What no line starts with: closing punctuation, small kana, marks of repetition."""
_NOT_LAST = frozenset("([{«‹“‘¿¡（［｛〈《「『【〔〖〘〚｟｢$£¥₩€＄￡￥￦#")
_AFTER = frozenset("-‐–—/\\|·་༌፡ ")
"""A line may end after these inside a word, when a letter stands on both sides."""
_LEADING_VOWELS = frozenset("เแโใไເແໂໃໄ")
_FOLLOWING_VOWELS = frozenset("ะาๅฯๆະາໆຽ")
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


def breaks(clusters: Sequence[str]) -> list[Break]:
    """For each cluster how good a break before it is; the first has none. A space stays with what it follows."""
    return [_between(clusters, i) if i else Break.NEVER for i in range(len(clusters))]


def _between(clusters: Sequence[str], i: int) -> Break:
    before, after = clusters[i - 1], clusters[i]
    if after in (" ", BREAK_HERE) or before[-1] in _GLUE or after[0] in _GLUE:
        return Break.NEVER
    if before == BREAK_HERE:
        return Break.GOOD
    if before == " ":
        return _at_space(clusters[i - 2] if i > 1 else "", after)
    if after[0] in _NOT_FIRST or before[-1] in _NOT_LAST:
        spaceless = any(_is_ideographic(c) or _is_syllabic(c[0]) for c in (before, after))
        return Break.NEVER if spaceless else Break.EMERGENCY
    if _is_ideographic(before) or _is_ideographic(after):
        return Break.GOOD
    if before in _AFTER:
        return _after_sign(clusters[i - 2] if i > 1 else "", after)
    if _is_syllabic(before[0]) and _is_syllabic(after[0]):
        return _in_syllabic(before, after)
    return Break.EMERGENCY


def _at_space(before: str, after: str) -> Break:
    """French puts spaces inside its quotes and before its question marks."""
    if before in ("«", "‹") or (after in _NOT_FIRST and not unicodedata.category(after).startswith("S")):
        return Break.NEVER
    return Break.GOOD


def _after_sign(before: str, after: str) -> Break:
    letters = before[:1].isalpha() or before[:1].isdigit()
    return Break.GOOD if letters and after[0].isalpha() else Break.EMERGENCY


def _in_syllabic(before: str, after: str) -> Break:
    """Scripts without spaces: between syllables as far as their letters show them."""
    if before[0] in _LEADING_VOWELS or after[0] in _FOLLOWING_VOWELS:
        return Break.NEVER
    if "\u0e00" <= after[0] <= "\u0eff":
        return Break.GOOD if after[0] in _LEADING_VOWELS else Break.EMERGENCY
    return Break.NEVER if "\u103a" in after and "\u1039" not in after else Break.GOOD


def _is_ideographic(cluster: str) -> bool:
    return cluster >= "\u2e80" and any(first <= cluster[0] <= last for first, last in _IDEOGRAPHIC)


def _is_syllabic(character: str) -> bool:
    return character >= "\u0e00" and any(first <= character <= last for first, last in _SYLLABIC)
