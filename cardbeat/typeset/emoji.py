"""Colour emoji: which private-use character of the emoji fonts draws a sequence of characters (UTS #51)."""

from collections.abc import Iterator
from functools import cached_property
from itertools import chain

from cardbeat.resources import read_text
from cardbeat.typeset.clusters import EMOJI_STYLE, TEXT_STYLE, ZWJ

_FIRST_DRAWN = 0xF0000
"""The private-use character of the first line of `emoji.txt`; the others follow it."""
_LONGEST = 9
"""Characters in the longest sequence, without U+FE0F."""
_FIRST_PICTOGRAPH = "\U0001f000"
_KEYCAP = "\u20e3"
_SKIN_TONES = "\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff"
_EMOJI_PRESENTATION = frozenset(
    "⌚⌛⏩⏪⏫⏬⏰⏳◽◾☔☕♈♉♊♋♌♍♎♏♐♑♒♓♿⚓⚡⚪⚫⚽⚾⛄⛅⛎⛔⛪⛲⛳⛵⛺⛽✅✊✋✨❌❎❓❔❕❗➕➖➗➰➿⬛⬜⭐⭕"
)
"""Emoji_Presentation below U+10000: emoji without U+FE0F after them."""
_BLACK = frozenset("⚫⬛◼◾▪")
"""Signs that mean their colour."""


class EmojiSequences:
    """The sequences that the emoji fonts draw, read when the first one is looked for."""

    def __init__(self) -> None:
        self._drawn: dict[str, str] = {}
        """Sequence to private-use character. Any thread writes it, whole and without a lock: all write the same."""

    def parts(self, grapheme: str) -> Iterator[tuple[str, str]]:
        """Parts of a grapheme, each with the private-use character that draws it before it, or "" for text.

        The longest sequence that is drawn comes first, then the same again behind it, as ligatures are found.
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
        """Every character that is in some sequence. Threads that ask first at once may each make it: all the same."""
        return frozenset(chain.from_iterable(self._drawn or self._read()))

    @cached_property
    def signs(self) -> frozenset[str]:
        """What draws the characters that are signs of text too, such as © and ✔, and may have any colour."""
        drawn = self._drawn or self._read()
        return frozenset(drawn[c] for c in drawn if len(c) == 1 and c < _FIRST_PICTOGRAPH and c not in _BLACK)

    def _read(self) -> dict[str, str]:
        sequences = read_text("fonts/emoji.txt").splitlines()
        self._drawn = {sequence: chr(drawn) for drawn, sequence in enumerate(sequences, _FIRST_DRAWN)}
        return self._drawn


def is_emoji(grapheme: str) -> bool:
    """Whether an emoji is meant where there is a sign of the text too."""
    if TEXT_STYLE in grapheme:
        return False
    first = grapheme[0]
    if first in "#*0123456789":
        return grapheme[1:].replace(EMOJI_STYLE, "") == _KEYCAP
    return (
        _FIRST_PICTOGRAPH <= first <= "\U0001ffff"
        or first in _EMOJI_PRESENTATION
        or (len(grapheme) > 1 and (EMOJI_STYLE in grapheme or ZWJ in grapheme or grapheme[1] in _SKIN_TONES))
    )
