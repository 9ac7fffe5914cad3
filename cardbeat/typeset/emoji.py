"""Colour emoji: a sequence of characters to the one private-use character that draws it."""

from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import chain

from cardbeat.resources import read_text
from cardbeat.typeset.clusters import EMOJI_STYLE, TEXT_STYLE, ZWJ

_FIRST_DRAWN = 0xF0000
_LONGEST = 9
"""Characters of a sequence."""
_SUPPLEMENTARY = "\U0001f000"
_SKIN_TONES = "\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff"
_COLOURED = frozenset(
    "⌚⌛⏩⏪⏫⏬⏰⏳◽◾☔☕♈♉♊♋♌♍♎♏♐♑♒♓♿⚓⚡⚪⚫⚽⚾⛄⛅⛎⛔⛪⛲⛳⛵⛺⛽✅✊✋✨❌❎❓❔❕❗➕➖➗➰➿⬛⬜⭐⭕"
)
"""What is an emoji without being asked, below U+10000."""


class Emoji:
    """The sequences that the emoji font draws; read when the first one is met."""

    def __init__(self) -> None:
        self._drawn: dict[str, str] = {}

    def parts(self, grapheme: str) -> Iterator[tuple[str, str]]:
        """What draws each part of a grapheme, and the part; of what has no picture the first is "".

        As ligatures do, it takes the longest sequence that has a picture, then goes on behind it.
        """
        drawn = self._drawn or self._read()
        sequence = grapheme.replace(EMOJI_STYLE, "")
        without = at = 0
        while at < len(sequence):
            ends = range(min(at + _LONGEST, len(sequence)), at, -1)
            end = next((end for end in ends if sequence[at:end] in drawn), None)
            if end is None:
                at += 1
                continue
            if without < at:
                yield "", sequence[without:at]
            yield drawn[sequence[at:end]], sequence[at:end]
            without = at = end
        if without < at:
            yield "", sequence[without:]

    @cached_property
    def characters(self) -> frozenset[str]:
        """All that some sequence holds."""
        return frozenset(chain.from_iterable(self._drawn or self._read()))

    def sequences(self) -> Iterable[str]:
        """Everything that has a picture, in its qualified form as far as that can be told from the parts."""
        return (s if len(s) > 1 or s in _COLOURED or s >= _SUPPLEMENTARY else s + EMOJI_STYLE for s in self._read())

    def _read(self) -> dict[str, str]:
        lines = read_text("fonts/emoji.txt").split()
        sequences = ("".join(chr(int(part, 16)) for part in line.split("-")) for line in lines)
        self._drawn = {sequence: chr(_FIRST_DRAWN + n) for n, sequence in enumerate(sequences)}
        return self._drawn


def is_emoji(grapheme: str) -> bool:
    """Whether a picture is meant, not a sign of the text, where there are both."""
    if TEXT_STYLE in grapheme:
        return False
    first = grapheme[0]
    return (
        _SUPPLEMENTARY <= first <= "\U0001ffff"
        or first in _COLOURED
        or (len(grapheme) > 1 and (EMOJI_STYLE in grapheme or ZWJ in grapheme or grapheme[1] in _SKIN_TONES))
    )
