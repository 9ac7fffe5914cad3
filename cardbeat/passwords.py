"""Passwords as they stand in URLs, and texts that are fit to be read by others."""

import re
from typing import Final

NAMED: Final = "(?i:{}=)".format(
    "".join(f"(?:{letter}|%{ord(letter):02x}|%{ord(letter.upper()):02x})" for letter in "password")
)
"""A pattern of what stands before the value of `password` or `sslpassword` in a query. RFC 3986, 2.1: any character of
a name may be percent-encoded."""
_NAMED: Final = re.compile(rf"({NAMED}).*", re.DOTALL)
_USER: Final = r"(?:postgres(?:ql)?:/*+|[\w+.-]{2,64}:/++)(?![\s,]|user:password@host)[^:/?#\[\s]*:"
"""To the colon behind a user's name. Our own sentences name schemes, and show how a URL is to be written. A path of a
file has one slash where the URL had two."""
_PORT: Final = r"""[0-9]+:?(?![^\s/?'";,)])"""
_WORD: Final = r"""\S+?(?=['"]?[;,)]?(?:\s|$))"""
_IN_AUTHORITY: Final = re.compile(f"({_USER})(?:.*(?=@)|(?!{_PORT}){_WORD})", re.IGNORECASE | re.DOTALL)


def without_passwords(text: str) -> str:
    """A text with `***` for each password of a URL in it.

    A password that is not percent-encoded may hold any character, so all up to the text's last @ is taken for one, and
    all behind `password=`. Without an @ the word behind the user's name is, unless it is a port's number.
    """
    return _IN_AUTHORITY.sub(r"\1***", _NAMED.sub(r"\1***", text))
