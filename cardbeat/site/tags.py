"""The tags of a page, found as the HTML standard has them. Pure.

Only what decides where a tag begins and ends is followed: comments, quoted values, the text of
scripts and titles, and SVG and MathML, whose elements are not those of HTML. `html.parser` of the
standard library reads pages otherwise in each version of Python.
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

_WITH_TEXT: Final = frozenset(
    "title textarea script style xmp iframe noembed noframes noscript".split()
)
"""Elements of HTML whose content is text. `noscript` is one where scripts run."""
_HTML_INSIDE: Final = {
    "svg": ("foreignobject", "desc", "title"),
    "math": tuple("mi mo mn ms mtext".split()),
}
"""Elements of SVG and MathML whose content is HTML again."""
_NEVER_FOREIGN: Final = frozenset(
    "b big blockquote body br center code dd div dl dt em embed h1 h2 h3 h4 h5 h6 head hr i img li"
    " listing menu meta nobr ol p pre ruby s small span strong strike sub sup table tt u ul var"
    " /p /br".split()
)
"""Tags that end an `svg` or `math` around them."""
_DEEPEST: Final = 512  # of these inside one another, as in browsers

_VALUE: Final = r"""\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|(?!["'])([^\s>]*+))"""
_NAME: Final = r"[^\s/>][^\s/>=]*+"
_ATTRIBUTE: Final = re.compile(f"({_NAME})(?:{_VALUE})?", re.ASCII)
# A value whose quote is never closed ends no tag, so a name is no attribute without its value.
# Groups are not possessive: Python 3.11.2, that of Debian 12, reads such wrongly (gh-106052).
_REST_OF_TAG: Final = rf"(?:[\s/]++|{_NAME}(?:{_VALUE}|(?!\s*+=)))*>"
_TAG: Final = re.compile(rf"<(/?[a-zA-Z][^\s/>]*+){_REST_OF_TAG}", re.ASCII)
_SAYS_SOMETHING: Final = "|".join(
    ["html|meta|link|template|svg|math|plaintext", *sorted(_WITH_TEXT)]
)
_SAYING_NOTHING: Final = re.compile(
    rf"(?:[^<]*+<(?!/?(?:{_SAYS_SOMETHING})[\s/>])/?[a-z][^\s/>]*+{_REST_OF_TAG}){{1,999}}",
    re.ASCII | re.IGNORECASE,
)
"""Text and tags of HTML that neither say anything of a page nor change how it is read."""
_BEGINS_TAG: Final = re.compile("</?[a-zA-Z]")
_CDATA: Final = re.compile(r"<!\[CDATA\[.*?(?:]]>|\Z)", re.DOTALL)
_COMMENT: Final = re.compile(
    r"<!--(?:-?>|.*?(?:--!?>|\Z))|<(?:[!?]|/(?![a-zA-Z]))[^>]*+(?:>|\Z)", re.DOTALL
)
_IN_SCRIPT: Final = re.compile(r"<!--(?!-?>)|-->|</?script(?=[\s/>])", re.ASCII | re.IGNORECASE)


class Tag(NamedTuple):
    """A tag of HTML, or a comment or declaration, whose name is `!`. An end tag is `/name`.

    A page's characters `start` to `end` are the tag; those to `text_end` are the text of a title,
    a script and their like. For other tags `text_end` is `end`.
    """

    name: str
    start: int
    end: int
    text_end: int


def tags_of(page: str, at: int, stop: int, last: int | None = None) -> Iterator[Tag]:
    """The tags of a part of a page, in order. One that does not end there is none.

    With `last`, those that say nothing, such as `<p>`, are left out, and those behind `last`.
    """
    open_elements: list[str] = []  # those that change what is HTML
    while last is None or at <= last:
        if last is not None and not open_elements:
            at = _behind_plain_tags(page, at, stop)
        at = page.find("<", at, stop)
        if at < 0:
            return
        found = _TAG.match(page, at, stop)
        if found is None:
            if _BEGINS_TAG.match(page, at, stop):
                return
            other = (open_elements and _CDATA.match(page, at, stop)) or _COMMENT.match(
                page, at, stop
            )
            if other:
                yield Tag("!", at, other.end(), other.end())
            at = other.end() if other else at + 1
            continue
        name = found[1].lower()
        text_end = found.end()
        if _is_html(name, open_elements):
            if name in _WITH_TEXT:
                text_end = _end_of_text(page, name, text_end, stop)
            yield Tag(name, at, found.end(), text_end)
            if name == "plaintext":
                return
        _note(name, open_elements, is_closed=found[0].endswith("/>"))
        at = text_end


def attributes(page: str, tag: Tag) -> dict[str, str]:
    """The attributes of a tag as they are written. Of one that is there twice, the first counts."""
    values: dict[str, str] = {}
    for found in _ATTRIBUTE.finditer(page, tag.start + 1 + len(tag.name), tag.end - 1):
        name, *value = found.groups(default="")
        values.setdefault(name.lower(), "".join(value))
    return values


def _behind_plain_tags(page: str, at: int, stop: int) -> int:
    while found := _SAYING_NOTHING.match(page, at, stop):
        at = found.end()
    return at


def _is_html(name: str, open_elements: list[str]) -> bool:
    """Whether a tag is one of HTML. Ends the foreign elements that it ends."""
    if name in _NEVER_FOREIGN:
        while open_elements and open_elements[-1] in _HTML_INSIDE:
            open_elements.pop()
    return not open_elements or open_elements[-1] not in _HTML_INSIDE


def _note(name: str, open_elements: list[str], *, is_closed: bool) -> None:
    """Keep the list of open elements that change what is HTML."""
    if name[1:] in open_elements and name.startswith("/"):
        while open_elements.pop() != name[1:]:
            pass
    elif not is_closed and len(open_elements) < _DEEPEST:
        inside = open_elements[-1] if open_elements else ""
        if name in _HTML_INSIDE or name in _HTML_INSIDE.get(inside, ()):
            open_elements.append(name)


def _end_of_text(page: str, name: str, at: int, stop: int) -> int:
    """Where the text of an element ends: before its end tag.

    In a script's `<!--`, a `<script>` takes the next `</script>` with it.
    """
    if name != "script":
        end_tag = re.compile(rf"</{name}(?=[\s/>])", re.ASCII | re.IGNORECASE)
        found = end_tag.search(page, at, stop)
        return found.start() if found else stop
    depth = 0  # 1 in `<!--`, 2 in a `<script>` there
    for part in _IN_SCRIPT.finditer(page, at, stop):
        match part[0].lower():
            case "-->":
                depth = 0
            case "<!--":
                depth = max(depth, 1)
            case "<script":
                depth = min(2 * depth, 2)
            case _ if depth < 2:
                return part.start()
            case _:
                depth = 1
    return stop
