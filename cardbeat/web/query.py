"""The query of a request, as names and values."""

import re
from collections.abc import Collection
from functools import cache
from urllib.parse import unquote_to_bytes

from cardbeat.errors import Invalid

_BROKEN_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_UNKNOWN = "\ufffd".encode()


def pairs_of(query: str) -> list[tuple[str, str]]:
    """The decoded names and values of a query as sent, one character a byte (`Request.query`).

    A value may be empty, with or without `=` before it. `+` is a space. A percent sign that begins no escape, and
    bytes that are not UTF-8, become U+FFFD.
    """
    parts = (part.partition("=") for part in query.split("&") if part)
    return [(_decoded(name), _decoded(value)) for name, _, value in parts]


def first_value(query: str, name: str) -> str | None:
    """The value of the first parameter of this name, percent-encoded or not; None if there is none.

    `name` is ASCII. The rest of the query is not decoded, so the cost is small for any query.
    """
    match = _named(name).search("&" + query)
    return match and _decoded(match[1] or "")


def known_among(names: Collection[str], query: str) -> dict[str, str]:
    """The parameters of a query that have one of these names; others are ignored.

    Raises `Invalid` if one of these is repeated.
    """
    values: dict[str, str] = {}
    for name, value in pairs_of(query):
        if name in values:
            raise Invalid("duplicate_parameter", field=name)
        if name in names:
            values[name] = value
    return values


@cache
def _named(name: str) -> re.Pattern[str]:
    """A pattern for a parameter of this name, whose characters may be percent-encoded, and for its value.

    It begins with the character `&`, because `re` finds a plain character much faster than alternatives.
    """
    spelling = "".join(f"(?:{re.escape(letter)}|%(?i:{ord(letter):02x}))" for letter in name)
    return re.compile(rf"&{spelling}(?:=([^&]*+)|(?=&|\Z))")


def _decoded(part: str) -> str:
    if "%" not in part and part.isascii():
        return part.replace("+", " ")
    data = part.encode("latin-1").replace(b"+", b" ")
    # A bad percent sign becomes U+FFFD itself, whose bytes `unquote_to_bytes` leaves alone.
    return unquote_to_bytes(_BROKEN_ESCAPE.sub(_UNKNOWN, data)).decode("utf-8", "replace")
