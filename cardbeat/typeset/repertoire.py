"""Which characters any of the fonts has, and what says the same where none has one."""

import unicodedata
from collections.abc import Iterable, Sequence
from functools import cached_property

from cardbeat.typeset.clusters import is_invisible
from cardbeat.typeset.emoji import Emoji

_RISES_EM = {"<super>": 0.4, "<sub>": -0.14}
_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_LOWERED = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
_SPACED = {"‾": "¯"}
"""Signs that Unicode takes apart into a space and a mark, which would be drawn as nothing."""


class Repertoire:
    """Asked for whole texts, also where only a part is drawn: one look-up a character, however many fonts there are."""

    def __init__(self, stretches: Iterable[Sequence[int]], emoji: Emoji) -> None:
        """`stretches` says for each font where covered (even places) and uncovered (odd places) codepoints begin."""
        self._stretches = tuple(stretches)
        self._emoji = emoji

    def drawable(self, text: str) -> tuple[str, int]:
        """A clean text with others for characters that no font has, and how many are left that no font has."""
        lacking = set() if text.isascii() else {character for character in set(text) if not self.has(character)}
        if not lacking:
            return text, 0
        others = {ord(character): other for character in lacking if (other := self._other(character))}
        return text.translate(others), sum(character in lacking and ord(character) not in others for character in text)

    def has(self, character: str) -> bool:
        """Also where it is drawn as nothing, as it should be."""
        codepoint, covered = ord(character), self._covered
        if codepoint < len(covered) and covered[codepoint]:
            return True
        return is_invisible(character) or character in self._emoji.characters

    def _other(self, character: str) -> str:
        """Characters to write it with, none where it is missing; a small letter stays what it is."""
        plain = _SPACED.get(character) or unicodedata.normalize("NFKC", character)
        if plain == character or not all(map(self.has, plain)):
            return ""
        if small_letter(character):
            return character
        over, stroke, under = plain.partition("\u2044")
        return over.translate(_RAISED) + stroke + under.translate(_LOWERED) if stroke else plain

    @cached_property
    def _covered(self) -> bytearray:
        """A byte a codepoint; made when the first text needs it."""
        covered = bytearray(max(starts[-1] for starts in self._stretches))
        for starts in self._stretches:
            for start, end in zip(starts[::2], starts[1::2], strict=True):
                covered[start:end] = b"\1" * (end - start)
        return covered


def small_letter(character: str) -> tuple[str, float] | None:
    """The letter of a superscript or subscript, and how far above its line it stands, in em."""
    rise_em = _RISES_EM.get(unicodedata.decomposition(character).partition(" ")[0])
    letter = unicodedata.normalize("NFKC", character)
    return (letter, rise_em) if rise_em and len(letter) == 1 else None
