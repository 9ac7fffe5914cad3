"""Texts that other people read: invisible characters, and URLs that may hold a password."""

import re
from collections.abc import Iterable
from pathlib import PurePath
from typing import Final

_BIDI_CONTROLS: Final = r"\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
"""Unicode's property Bidi_Control: these characters change the order of the text around them."""
SPACE: Final = r"\t-\r\u001c- \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
"""What `str.strip` removes, for the brackets of a regular expression, as the next two."""
CONTROL: Final = r"\u0000-\u001f\u007f-\u009f\u2028\u2029"
"""Control characters, and the separators of lines and paragraphs."""
_UNSEEN: Final = (
    r"\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5"
    r"\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0"
    "\ufff0-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""Formats, joiners, fillers, variation selectors, tags and the empty Braille pattern."""
SEEN: Final = f"[^{SPACE}{CONTROL}{_UNSEEN}]"
"""A regular expression for one visible character."""

seen: Final = re.compile(SEEN).findall
"""The visible characters of a text, in order."""
first_seen: Final = re.compile(SEEN).search
"""A match of the first visible character; None if a text shows nothing."""
first_control_of_direction: Final = re.compile(
    f"[{_BIDI_CONTROLS}]"
).search
"""A match of the first character that changes the direction of text; None if there is none."""

# Not compiled here: only errors need them.
_URL: Final = (
    r"(?is)\b[a-z][a-z0-9+.-]+:/|//.*@|\bpostgres(ql)?:|password="
)
"""Part of a URL, also of a mistyped one: `postgresql:/me@host`. Not of `C:/data`, `me@host`."""
_SCHEME_AND_HOST: Final = r"(?i)https?://([a-z0-9.-]+|\[[0-9a-f:.]+\])(:[0-9]+)?(?=[/?#][^@]*$|$)"


def holds_url(text: str) -> bool:
    return re.search(_URL, text) is not None


def without_urls(sentence: str, values: Iterable[str]) -> str:
    """The sentence, with each value that holds a URL cut after its scheme and host.

    `not https://example.com/?token=1` becomes `not https://example.com/...`. Of anything but a web
    address nothing stays: a password may stand anywhere in it, and hold any character.
    """
    for value in filter(holds_url, values):
        shown = re.match(_SCHEME_AND_HOST, value)
        if shown and shown[0] == value:
            continue
        cut = f"{shown[0]}/..." if shown else "..."
        for form in (
            value,
            repr(value)[1:-1],
            value.strip(),
            str(PurePath(value)),
        ):
            sentence = sentence.replace(form, cut)
    return sentence
