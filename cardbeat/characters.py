"""Invisible characters: those that texts for other people must not hold, and whether a text shows anything."""

import re
import unicodedata
from typing import Final

BIDI_CONTROLS: Final = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
"""The characters of Unicode's property Bidi_Control: invisible, they change the order of the text around them."""
_JOINERS: Final = "\u200c\u200d"
"""Invisible too, but part of the spelling of several scripts and emoji."""

SPACE: Final = r"\t-\r\u001c- \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
"""What `str.strip` removes, to put between the brackets of a regular expression, as the next two."""
CONTROL: Final = r"\u0000-\u001f\u007f-\u009f\u2028\u2029"
"""Control characters, and the separators of lines and paragraphs."""
_UNSEEN: Final = (
    r"\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    r"\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""Formats, joiners, fillers, variation selectors, tags and the empty Braille pattern: alone they show nothing."""
SEEN: Final = f"[^{SPACE}{CONTROL}{_UNSEEN}]"
"""A regular expression for one visible character."""

seen: Final = re.compile(SEEN).findall
"""The visible characters of a text, in order."""
first_seen: Final = re.compile(SEEN).search
"""A match of the first visible character; None if a text shows nothing."""
first_control_of_direction: Final = re.compile(f"[{BIDI_CONTROLS}]").search
"""A match of the first of `BIDI_CONTROLS`; None if there is none."""


def holds_formats(text: str) -> bool:
    """Whether a text holds any of Unicode's invisible format characters, except for joiners."""
    return any(unicodedata.category(character) == "Cf" and character not in _JOINERS for character in text)
