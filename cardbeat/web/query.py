"""The query of a request, as names and values."""

from collections.abc import Collection, Iterator
from urllib.parse import unquote_to_bytes

from cardbeat.errors import Invalid

_LONGEST_NAME = 64
"""Longer than any known name, percent-encoded or not: longer ones are not decoded."""


def first_value(query: str, name: str) -> str | None:
    """The value of the first parameter of this name; None if there is none."""
    return next((value for _, value in _known(query, (name,))), None)


def only_value(query: str, name: str) -> str:
    """The value of the parameter of this name; empty if there is none, or if it is repeated."""
    values = [value for _, value in _known(query, (name,))]
    if len(values) == 1:
        return values[0]
    return ""


def known_among(names: Collection[str], query: str) -> dict[str, str]:
    """The parameters of a query that have one of these names. Others are ignored.

    A value may be empty, with or without `=` before it. `+` is a space. A percent sign that begins
    no escape stays: `100%` is `100%`. Bytes that are not UTF-8 become U+FFFD.
    Raises `Invalid` if one of these parameters is repeated.
    """
    values: dict[str, str] = {}
    for name, value in _known(query, names):
        if name in values:
            raise Invalid("duplicate_parameter", field=name)
        values[name] = value
    return values


def _known(query: str, names: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield the name and the value of each known parameter."""
    for part in query.split("&"):
        name, _, value = part.partition("=")
        if "%" in name and len(name) <= _LONGEST_NAME:
            name = _decoded(name)
        if name in names:
            yield name, _decoded(value)


def _decoded(part: str) -> str:
    if "%" not in part and part.isascii():
        return part.replace("+", " ")
    data = part.encode("latin-1").replace(b"+", b" ")
    return unquote_to_bytes(data).decode("utf-8", "replace")
