"""Colour emoji: the private-use characters by which the fonts draw sequences (UTS #51)."""

from functools import cache

from cardbeat.files import read_text
from cardbeat.typeset.unicode.clusters import EMOJI_STYLE, TEXT_STYLE, ZWJ, characters

_FIRST_DRAWN = 0xF0000
"""The private-use character of the first line of `emoji.txt`. Those of the next lines follow."""
_LONGEST = 9
"""Characters in a sequence, without U+FE0F."""
_FIRST_PICTOGRAPH = "\U0001f000"
_KEYCAP = "\u20e3"
_SKIN_TONES = "\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff"


def emoji_parts(grapheme: str) -> list[str]:
    """A grapheme in parts: private-use characters that draw an emoji each, and text between them.

    At each place the longest sequence is taken, as ligatures are found.
    """
    drawn = _drawn()
    rest = grapheme.replace(EMOJI_STYLE, "")
    parts = [""]
    while rest:
        lengths = range(min(_LONGEST, len(rest)), 0, -1)
        length = next((length for length in lengths if rest[:length] in drawn), 0)
        if length:
            parts += [drawn[rest[:length]], ""]
        else:
            length = 1
            parts[-1] += rest[0]
        rest = rest[length:]
    return [part for part in parts if part.strip(ZWJ)]


@cache
def emoji_characters() -> frozenset[str]:
    """Every character of any sequence."""
    return frozenset("".join(_drawn()))


def is_emoji(grapheme: str) -> bool:
    """Whether an emoji is meant, not the sign of text with the same character."""
    first = grapheme[0]
    rest = grapheme[1:]
    if TEXT_STYLE in grapheme:
        return False
    if first in "#*0123456789":
        return rest.replace(EMOJI_STYLE, "") == _KEYCAP
    if _FIRST_PICTOGRAPH <= first <= "\U0001ffff" or characters("emoji_presentation").match(first):
        return True
    return EMOJI_STYLE in rest or ZWJ in rest or rest[:1] in tuple(_SKIN_TONES)


@cache
def _drawn() -> dict[str, str]:
    """The sequences that the emoji fonts draw, and the private-use character of each."""
    sequences = read_text("fonts/emoji.txt").splitlines()
    return {sequence: chr(code) for code, sequence in enumerate(sequences, _FIRST_DRAWN)}
