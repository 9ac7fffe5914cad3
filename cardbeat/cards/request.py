"""What a card's URL asks for: from the parameters of its query to a `Card`."""

import re
from collections.abc import Mapping
from typing import NamedTuple

from cardbeat.errors import Invalid
from cardbeat.text import first_seen, seen
from cardbeat.typeset.unicode.clusters import is_mark

TEXTS = ("title", "description", "author", "tag", "domain")
TEMPLATES = ("default", "blog", "article")
THEMES = ("dark", "light")
LOOKS = {"template": TEMPLATES, "theme": THEMES}
"""The values of a card's look; the first of each is the default."""
PARAMETERS = frozenset((*TEXTS, *LOOKS, "key"))
"""The parameters of a card's query, each allowed once. `lang` is one too, and may be repeated."""

MAX_CHARACTERS = 4_000  # limit of one text: no card has room for more

_BREAKS = re.compile(
    r"[\t-\r\x85]+"
)  # control characters between words: the tab, and line ends
_CONTROL_CHARACTERS = re.compile(r"[\x00-\x1f\x7f-\x9f]")

_LANGUAGE_TAG = re.compile(
    "[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8}){0,6}"
).fullmatch
_DOTTED_CIRCLE = "\u25cc"  # drawn as the letter of marks that have none


class Card(NamedTuple):
    """What to draw. The texts are trimmed, without control characters; an empty one is absent."""

    title: str
    description: str = ""
    author: str = ""
    tag: str = ""
    domain: str = ""
    template: str = "default"
    theme: str = "dark"
    lang: str = ""
    """A BCP 47 tag, which chooses letter shapes and line breaks; empty where the texts tell."""


def card_from(values: Mapping[str, str]) -> Card:
    """A card from its fields by name.

    Raises `Invalid` for a blank title or an unknown template or theme. An unknown `lang` is none.
    """
    texts = {name: _clean(values.get(name, "")) for name in TEXTS}
    looks = {
        name: values.get(name, allowed[0])
        for name, allowed in LOOKS.items()
    }
    wrong = []
    if not texts["title"]:
        wrong.append(Invalid("missing_parameter", field="title"))
    for name, value in looks.items():
        if value not in LOOKS[name]:
            known = ", ".join(LOOKS[name])
            wrong.append(
                Invalid("invalid_parameter", field=name, known=known)
            )
    if wrong:
        raise Invalid.of_all(wrong, "invalid_parameter")
    lang = values.get("lang", "")
    return Card(
        **texts, **looks, lang=lang if _LANGUAGE_TAG(lang) else ""
    )


def _clean(text: str) -> str:
    """A text on one line, without control characters in it; empty if it shows nothing."""
    text = _CONTROL_CHARACTERS.sub("", _BREAKS.sub(" ", text)).strip()[
        :MAX_CHARACTERS
    ]
    if not first_seen(text):
        return ""
    return (
        _DOTTED_CIRCLE + text if all(map(is_mark, seen(text))) else text
    )
