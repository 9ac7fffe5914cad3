"""Hides passwords in messages that may repeat a URL."""

import re
from collections.abc import Iterable
from pathlib import PurePath
from typing import Final

NAMED: Final = "(?i:{}=)".format(
    "".join(f"(?:{letter}|%{ord(letter):02x}|%{ord(letter.upper()):02x})" for letter in "password")
)
"""Matches `password=` and `sslpassword=` in a query, with any letter percent-encoded (RFC 3986, 2.1)."""
_SCHEME: Final = "[a-z][a-z0-9+.:-]+"
# Not compiled here: that takes long, and most runs need neither.
_URL: Final = rf"(?is)(?P<start>{_SCHEME}:/|postgres(?:ql)?:|(?:{_SCHEME})?//(?=.*@)|{NAMED}).*"
"""Also matches what was to be a URL: `postgresql:/me@host`, `https//me@host`. Not `C:/data`."""
_PLAIN: Final = r"(?i)(?P<host>https?://(?:[a-z0-9.-]+|\[[0-9a-f:.]+\])(?::[0-9]+)?/?)(?P<path>[^@]*)"


def looks_like_url(text: str) -> bool:
    return re.match(_URL, text.lstrip()) is not None


def without_urls(text: str, given: Iterable[str]) -> str:
    """The text with each of the given URLs, or the values with a URL in them, cut after its scheme and host.

    They are known, not searched for: a password that was not encoded may hold any character.
    """
    for value in given:
        if re.search(_URL, value):
            _, _, of_flag = value.partition("=")
            for repeated in filter(None, (value, of_flag, value.strip())):
                for form in (repeated, repr(repeated)[1:-1], str(PurePath(repeated))):
                    text = text.replace(form, _cut(repeated))
    return text


def _cut(text: str) -> str:
    found = re.search(_URL, text)
    if found is None:
        return text
    plain = re.fullmatch(_PLAIN, found[0])
    if plain is None:
        return text[: found.start()] + found["start"].rstrip("/") + "//..."
    return text[: found.start()] + plain["host"] + ("..." if plain["path"] else "")
