"""Hides passwords in texts that may hold a URL."""

import re
from typing import Final

NAMED: Final = "(?i:{}=)".format(
    "".join(f"(?:{letter}|%{ord(letter):02x}|%{ord(letter.upper()):02x})" for letter in "password")
)
"""Matches `password=` and `sslpassword=` in a query, with any letter percent-encoded (RFC 3986, 2.1)."""
_NAMED: Final = re.compile(rf"({NAMED}).*", re.DOTALL)
_USER: Final = r"(?:postgres(?:ql)?:/*+|[\w+.-]{2,64}:/++)(?![\s,]|user:password@host)[^:/?#\[\s]*:"
"""Matches a URL up to the colon after the user name. Does not match example URLs in our own messages. A file path made
from a URL has one slash instead of two."""
_PORT: Final = r"""[0-9]+:?(?![^\s/?'";,)])"""
_WORD: Final = r"""\S+?(?=['"]?[;,)]?(?:\s|$))"""
_IN_AUTHORITY: Final = re.compile(f"({_USER})(?:.*(?=@)|(?!{_PORT}){_WORD})", re.IGNORECASE | re.DOTALL)


def without_passwords(text: str) -> str:
    """The text with `***` in place of each password in a URL.

    An unencoded password may hold any character. So everything from the user's colon to the last @ of the text is
    hidden, and everything after `password=`. Without an @, the word after the colon is hidden unless it is a port.
    """
    return _IN_AUTHORITY.sub(r"\1***", _NAMED.sub(r"\1***", text))
