"""The query of a request: the names and values in it, which an endpoint knows some of."""

import re
from collections.abc import Collection, Sequence
from functools import cache
from urllib.parse import unquote_to_bytes

from cardbeat.errors import Invalid

Pairs = Sequence[tuple[str, str]]
"""Names and values in the order in which they were sent, repeated ones too."""

_BROKEN_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_UNKNOWN = "\ufffd".encode()


def pairs_of(query: str) -> Pairs:
    """Names and values of a query as sent (one character a byte, as `Request.query` has it), decoded.

    A value may be empty, with or without `=` before it. `+` is a space; a percent sign that begins no escape, and
    bytes that are no UTF-8, become U+FFFD.
    """
    parts = (part.partition("=") for part in query.split("&") if part)
    return [(_decoded(name), _decoded(value)) for name, _, value in parts]


def first_value(query: str, name: str) -> str | None:
    """The value of the first parameter of this name, however it is spelled; None if there is none.

    Nothing else of the query is decoded, so it costs little whatever a stranger has sent. `name` is ASCII.
    """
    match = _named(name).search("&" + query)
    return match and _decoded(match[1] or "")


def known_among(names: Collection[str], query: str) -> dict[str, str]:
    """The parameters of these names that a query has, as `pairs_of` reads it; others may come, however often.

    Raises `Invalid` for one of these that is repeated.
    """
    values: dict[str, str] = {}
    for name, value in pairs_of(query):
        if name in values:
            raise Invalid("duplicate_parameter", f"Give the parameter {name} only once.", field=name)
        if name in names:
            values[name] = value
    return values


@cache
def _named(name: str) -> re.Pattern[str]:
    """Finds a parameter of this name, each character of which may be percent-encoded, and its value if it has one.

    It begins with a plain character, which is looked for many times as fast as a choice would be.
    """
    spelling = "".join(f"(?:{re.escape(letter)}|%(?i:{ord(letter):02x}))" for letter in name)
    return re.compile(rf"&{spelling}(?:=([^&]*+)|(?=&|\Z))")


def _decoded(part: str) -> str:
    if "%" not in part and part.isascii():
        return part.replace("+", " ")
    data = part.encode("latin-1").replace(b"+", b" ")
    # What begins no escape is replaced by the character itself: an escape for it would have to be undone with the rest.
    return unquote_to_bytes(_BROKEN_ESCAPE.sub(_UNKNOWN, data)).decode("utf-8", "replace")
