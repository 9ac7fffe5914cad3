"""Colour emoji: the private-use characters by which the emoji fonts draw sequences of characters (UTS #51)."""

from collections.abc import Iterator
from functools import cache
from itertools import chain

from cardbeat.resources import read_text
from cardbeat.typeset.unicode.clusters import EMOJI_STYLE, TEXT_STYLE, ZWJ

_FIRST_DRAWN = 0xF0000
"""The private-use character of the first line of `emoji.txt`. Those of the next lines follow."""
_LONGEST = 9  # characters in a sequence, without U+FE0F
_FIRST_PICTOGRAPH = "\U0001f000"
_KEYCAP = "\u20e3"
_SKIN_TONES = "\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff"
_EMOJI_PRESENTATION = frozenset(
    "⌚⌛⏩⏪⏫⏬⏰⏳◽◾☔☕♈♉♊♋♌♍♎♏♐♑♒♓♿⚓⚡⚪⚫⚽⚾⛄⛅⛎⛔⛪⛲⛳⛵⛺⛽✅✊✋✨❌❎❓❔❕❗➕➖➗➰➿⬛⬜⭐⭕"
)
"""Emoji_Presentation below U+10000: emoji also without U+FE0F after them."""
_BLACK = frozenset("⚫⬛◼◾▪")  # signs that mean their colour


# Threads that look first at the same moment each read the same.
@cache
def _drawn() -> dict[str, str]:
    """The sequences that the emoji fonts draw, and the private-use character of each."""
    sequences = read_text("fonts/emoji.txt").splitlines()
    return {sequence: chr(drawn) for drawn, sequence in enumerate(sequences, _FIRST_DRAWN)}


def emoji_parts(grapheme: str) -> Iterator[tuple[str, str]]:
    """The parts of a grapheme, each after the private-use character that draws it, or after "" for text.

    At each place the longest sequence is taken, as ligatures are found.
    """
    drawn = _drawn()
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


@cache
def emoji_characters() -> frozenset[str]:
    """Every character of any sequence."""
    return frozenset(chain.from_iterable(_drawn()))


@cache
def emoji_signs() -> frozenset[str]:
    """What draws characters that are also signs of text, such as © and ✔, and may have any colour."""
    return frozenset(
        drawn for c, drawn in _drawn().items() if len(c) == 1 and c < _FIRST_PICTOGRAPH and c not in _BLACK
    )


def is_emoji(grapheme: str) -> bool:
    """Whether an emoji is meant, not the sign of text with the same character."""
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
