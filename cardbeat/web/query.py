"""The query of a request: the names and values in it, which an endpoint knows some of."""

import re
from collections.abc import Collection, Sequence
from urllib.parse import unquote_to_bytes

from cardbeat.errors import Invalid

Pairs = Sequence[tuple[str, str]]
"""Names and values in the order in which they were sent, repeated ones too."""

_BROKEN_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")


def pairs_of(query: str) -> Pairs:
    """Names and values of a query as sent (one character a byte, as `Request.query` has it), decoded.

    A value may be empty, with or without `=` before it. `+` is a space; a percent sign that begins no escape, and
    bytes that are no UTF-8, become U+FFFD.
    """
    parts = (part.partition("=") for part in query.split("&") if part)
    return [(_decoded(name), _decoded(value)) for name, _, value in parts]


def known_among(pairs: Pairs, names: Collection[str]) -> dict[str, str]:
    """The parameters of these names that were sent. All others are ignored, however often they come.

    Raises `Invalid` for one of these that is repeated.
    """
    values: dict[str, str] = {}
    for name, value in pairs:
        if name in values:
            raise Invalid("duplicate_parameter", f"Give the parameter {name} only once.", field=name)
        if name in names:
            values[name] = value
    return values


def _decoded(part: str) -> str:
    escaped = _BROKEN_ESCAPE.sub(b"%EF%BF%BD", part.encode("latin-1").replace(b"+", b" "))
    return unquote_to_bytes(escaped).decode("utf-8", "replace")
