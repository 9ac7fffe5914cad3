"""What a card's URL asks for: from the query as sent to a `Card`, as the README's section "Cards" has it."""

import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes

from cardbeat.errors import Invalid
from cardbeat.typeset.clusters import EMOJI_STYLE, IGNORED, TEXT_STYLE, is_mark

TEXTS = ("title", "description", "author", "tag", "domain")
TEMPLATES = ("default", "blog", "article")
THEMES = ("dark", "light")
PARAMETERS = frozenset((*TEXTS, "template", "theme", "key"))

MAX_CHARACTERS = 4_000
"""Of one text. No card has room for more, and what comes after would only cost time."""

Pairs = list[tuple[str, str]]

_BROKEN_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_CONTROL_CHARACTERS = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_INVISIBLE = {"Cc", "Cf", "Zs", "Zl", "Zp"}
_BLANK = {TEXT_STYLE, EMOJI_STYLE, "\u2800"}
"""What draws nothing by itself, whatever its category; the last is the Braille pattern without dots."""

_DOTTED_CIRCLE = "\u25cc"
"""Stands for the letter of marks that have none, as in the code charts of Unicode."""


@dataclass(frozen=True, slots=True)
class Card:
    """What is drawn. The texts are trimmed and hold no control characters; an empty one is absent."""

    title: str
    description: str = ""
    author: str = ""
    tag: str = ""
    domain: str = ""
    template: str = "default"
    theme: str = "dark"


def pairs_of(query: str) -> Pairs:
    """Names and values of a query as sent, percent-encoding undone; what is broken in it becomes U+FFFD."""
    parts = (part.partition("=") for part in query.split("&") if part)
    return [(_decoded(name), _decoded(value)) for name, _, value in parts]


def key_in(pairs: Pairs) -> str | None:
    """The value of `key`. Raises `Invalid` when there are two."""
    return _single(pairs, ("key",)).get("key")


def card_of(pairs: Pairs) -> Card:
    """The card asked for; unknown parameters are allowed. Raises `Invalid` for what can't be drawn."""
    return card_from(_single(pairs, PARAMETERS))


def card_from(values: Mapping[str, str]) -> Card:
    """A card from its fields by name. Raises `Invalid` for a blank title or an unknown template or theme."""
    texts = {name: _clean(values.get(name, "")) for name in TEXTS}
    if not texts["title"]:
        raise Invalid("missing_parameter", "Give the card a title that is not blank: title=...", field="title")
    template = _one_of("template", values.get("template", TEMPLATES[0]), TEMPLATES)
    theme = _one_of("theme", values.get("theme", THEMES[0]), THEMES)
    return Card(**texts, template=template, theme=theme)


def as_sent(text: str) -> bytes:
    """The bytes of a part of the request: the server hands them over as Latin-1, one character a byte."""
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def _decoded(part: str) -> str:
    escaped = _BROKEN_ESCAPE.sub(b"%EF%BF%BD", as_sent(part).replace(b"+", b" "))
    return unquote_to_bytes(escaped).decode("utf-8", "replace")


def _single(pairs: Pairs, names: Collection[str]) -> dict[str, str]:
    values: dict[str, str] = {}
    for name, value in pairs:
        if name in values:
            raise Invalid("duplicate_parameter", f"Give the parameter {name} only once.", field=name)
        if name in names:
            values[name] = value
    return values


def _clean(text: str) -> str:
    """A text without control characters and surrounding white space; empty if it shows nothing."""
    text = _CONTROL_CHARACTERS.sub("", text).strip()[:MAX_CHARACTERS]
    if not any(_visible(text)):
        return ""
    return _DOTTED_CIRCLE + text if all(map(is_mark, _visible(text))) else text


def _visible(text: str) -> Iterator[str]:
    return (
        character
        for character in IGNORED.sub("", text)
        if unicodedata.category(character) not in _INVISIBLE and character not in _BLANK
    )


def _one_of(name: str, value: str, allowed: tuple[str, ...]) -> str:
    if value not in allowed:
        raise Invalid("invalid_parameter", f"The {name} must be one of: {', '.join(allowed)}.", field=name)
    return value
