"""The tags of a page, found as the HTML standard finds them. Pure.

Only what decides where a tag begins and ends is followed: comments, quoted values, the text of
scripts and titles, and SVG, whose `title` is not the page's. `html.parser` of the standard library
reads pages otherwise in each version of Python.
"""

import html
import re
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

_WITH_TEXT = "title textarea script style xmp iframe noembed noframes noscript".split()
"""Elements whose content is text. `noscript` is one where scripts run."""
_FLAGS = re.ASCII | re.DOTALL | re.IGNORECASE
_NAME = r"[a-z][^\s/>]*+"
# A value whose quote is never closed ends no tag.
# Groups are not possessive: Python 3.11.2, that of Debian 12, reads such wrongly (gh-106052).
_REST = r"""(?:[^=>]++|=\s*+(?:"[^"]*+"|'[^']*+'|(?!["'])))*"""
_ATTRIBUTE = re.compile(
    r"""([^\s/>][^\s/>=]*+)(?:\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s"'>][^\s>]*+)))?""",
    _FLAGS,
)
_BEGIN = re.compile("<[a-z/!?]", _FLAGS)
_TAG = re.compile(
    rf"<(?:(/?{_NAME})({_REST})>"
    r"|!--(?:-?>|.*?(?:--!?>|\Z))|(?:[!?]|/(?![a-z]))[^>]*+(?:>|\Z))",
    _FLAGS,
)
_TOLD = "|".join(
    [
        "html",
        "head",
        "base",
        "meta",
        "link",
        "template",
        "svg",
        *_WITH_TEXT,
    ]
)
_UNTOLD = re.compile(
    rf"(?:[^<]*+</?(?!(?:{_TOLD})[\s/>]){_NAME}{_REST}>){{1,999}}", _FLAGS
)
_NO_REFERENCE = re.compile("&(?=[a-z0-9]+=|#x?[0-9a-f]{10})", _FLAGS)
"""`&copy=` in a URL, and a number that is no character's."""
_NO_LETTER = re.compile("[\ud800-\udfff]")
_SPACES = re.compile("[ \t\n\r\f]+")


class Tag(NamedTuple):
    """A tag, with the text of an element such as `title`, whose end tag is a part of it then.

    An end tag has the name `/name`, a comment or declaration `!`. `values` are its attributes, of
    which the first of a name counts; one that is not there is empty. `end` is behind all of it.
    """

    name: str
    values: defaultdict[str, str]
    text: str
    start: int
    end: int


def tags_of(page: str) -> Iterator[Tag]:
    """The tags of a page, in order, up to one that never ends.

    Left out are most of those that say nothing of a page, such as `<p>`, and the title of an SVG.
    """
    at = 0
    open_svgs = 0
    while True:
        untold = _UNTOLD.match(page, at)
        begin = _BEGIN.search(page, untold.end() if untold else at)
        found = begin and _TAG.match(page, begin.start())
        if not found:
            return
        name = (found[1] or "!").lower()
        attributes = found[2] or ""
        is_closed = attributes.endswith("/")
        text_end = at = found.end()
        if name in _WITH_TEXT and not (open_svgs and is_closed):
            end_tag = re.compile(rf"</{name}(?=[\s/>])[^>]*+>", _FLAGS)
            text_end = at = len(page)
            if ended := end_tag.search(page, found.end()):
                text_end, at = ended.span()
        if not (open_svgs and name == "title"):
            text = page[found.end() : text_end]
            yield Tag(
                name, _values_in(attributes), text, found.start(), at
            )
        if name == "svg" and not is_closed:
            open_svgs += 1
        elif name == "/svg" and open_svgs:
            open_svgs -= 1


def _values_in(attributes: str) -> defaultdict[str, str]:
    values: defaultdict[str, str] = defaultdict(str)
    for name, *value in _ATTRIBUTE.findall(attributes):
        values.setdefault(name.lower(), text_of("".join(value)))
    return values


def text_of(source: str) -> str:
    """A text on one line, with its references read. What is no letter becomes U+FFFD."""
    text = html.unescape(_NO_REFERENCE.sub("&amp;", source))
    return _NO_LETTER.sub("\ufffd", _SPACES.sub(" ", text)).strip(" ")
