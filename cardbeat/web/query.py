"""The query of a request, as names and values."""

import re
from collections.abc import Collection
from functools import cache
from urllib.parse import unquote_to_bytes

from cardbeat.errors import Invalid

_BROKEN_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_LONGEST = 512  # characters of a value that `first_value` decodes, more than any key has: to decode 8 KB takes 0.7 ms
_UNKNOWN = "\ufffd".encode()


def first_value(query: str, name: str) -> str | None:
    """The value of the first parameter of this name, percent-encoded or not; None if there is none.

    `name` is ASCII. The rest of the query, and of a value longer than any key, is not decoded: the cost is small.
    """
    match = _named(name).search("&" + query)
    return match and _decoded((match[2] or "")[:_LONGEST])


def known_among(names: Collection[str], query: str) -> dict[str, str]:
    """The parameters of a query that have one of these names, which are ASCII. Others are ignored, and not decoded.

    A value may be empty, with or without `=` before it. `+` is a space. A percent sign that begins no escape, and
    bytes that are not UTF-8, become U+FFFD. Raises `Invalid` if one of these parameters is repeated.
    """
    values: dict[str, str] = {}
    for match in _named(*names).finditer("&" + query):
        name = _decoded(match[1])
        if name in values:
            raise Invalid("duplicate_parameter", field=name)
        values[name] = match[2] or ""
    return {name: _decoded(value) for name, value in values.items()}


@cache
def _named(*names: str) -> re.Pattern[str]:
    """A pattern for a parameter with one of these names, whose characters may be percent-encoded, and for its value.

    It begins with the character `&`, because `re` finds a plain character much faster than alternatives.
    """
    spellings = ("".join(f"(?:{re.escape(letter)}|%(?i:{ord(letter):02x}))" for letter in name) for name in names)
    return re.compile(rf"&({'|'.join(spellings)})(?:=([^&]*+)|(?=&|\Z))")


def _decoded(part: str) -> str:
    if "%" not in part and part.isascii():
        return part.replace("+", " ")
    data = part.encode("latin-1").replace(b"+", b" ")
    # A bad percent sign becomes U+FFFD itself, whose bytes `unquote_to_bytes` leaves alone.
    return unquote_to_bytes(_BROKEN_ESCAPE.sub(_UNKNOWN, data)).decode("utf-8", "replace")
