"""Characters that are not seen: what a text that others read must not hold, and whether it shows anything at all."""

import re
import unicodedata
from collections.abc import Iterator
from typing import Final

BIDI_CONTROLS: Final = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
"""The characters of Unicode's property Bidi_Control: unseen, they change the order of the text around them."""
_JOINERS: Final = "\u200c\u200d"
"""Unseen too, but part of how several scripts and emoji are spelt."""

SPACE: Final = r"\t-\r\u001c- \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
"""What `str.strip` takes away, as it stands between the brackets of a regular expression; so do the next two."""
CONTROL: Final = r"\u0000-\u001f\u007f-\u009f\u2028\u2029"
"""Control characters, and the separators of lines and paragraphs, which break a line too."""
_UNSEEN: Final = (
    r"\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    r"\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""Formats, joiners, fillers, variation selectors, tags and the empty Braille pattern: alone they draw nothing."""
SEEN: Final = f"[^{SPACE}{CONTROL}{_UNSEEN}]"
"""A regular expression for one character that is seen."""

_SEEN = re.compile(SEEN)


def shows_nothing(text: str) -> bool:
    return _SEEN.search(text) is None


def seen(text: str) -> Iterator[str]:
    """The characters of a text that are seen, in order."""
    return (match[0] for match in _SEEN.finditer(text))


def turns_direction(text: str) -> bool:
    """Whether a text holds characters that control the direction of what is around them."""
    return not set(BIDI_CONTROLS).isdisjoint(text)


def holds_formats(text: str) -> bool:
    """Whether a text holds any of Unicode's format characters, which are not seen, but for joiners."""
    return any(unicodedata.category(character) == "Cf" and character not in _JOINERS for character in text)
