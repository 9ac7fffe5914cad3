"""What is written into the head of a page that has no image of its own. Pure."""

import html
import re
from collections.abc import Iterator
from typing import Final

from cardbeat.site.charset import byte_of, codec_of_meta, decoded
from cardbeat.site.page import BuiltPage, read_page
from cardbeat.site.tags import attributes_of, tags_of

NETWORKS_READ: Final = 32 * 1024
"""Bytes of a page that Slack reads. No other network is known to read less."""
_EARLY: Final = 8 * 1024  # characters
_TAGS: Final = """\
<meta property="og:image" content="{url}">
<meta property="og:image:width" content="1200">
<meta property="og:image:height" content="630">
<meta property="og:image:alt" content="{alt}">
<meta name="twitter:card" content="summary_large_image">
<meta name="twitter:image:alt" content="{alt}">"""
_TITLE: Final = '<meta property="og:title" content="{alt}">'
_URL: Final = '<meta property="og:url" content="{url}">'
_IN_HEAD: Final = (
    "! html head base title meta link script style noframes".split()
)
"""Not `template` and `noscript`, which end the head for the parsers of some networks."""
_XHTML: Final = re.compile(
    r"<\?xml|<!doctype[^>]*xhtml|<html[^>]*xmlns", re.IGNORECASE
)


def image_tags(url: str, title: str) -> list[str]:
    """The lines that the builder's page gives."""
    return _TAGS.format(url=_escaped(url), alt=_escaped(title)).split("\n")


def with_tags(
    raw: bytes, url: str, title: str
) -> tuple[bytes, BuiltPage] | None:
    """A page that names its image, early in its head, and what it says then.

    All other bytes are as before; a page that has an image is returned as it is. None if there is
    no place, or if the page would not have this image.
    """
    page = read_page(raw)
    if page.image:
        return raw, page
    text = decoded(raw, page.codec)
    place = _place_in(text)
    lines = image_tags(url, title)
    if not page.said("og:title"):
        lines.append(_TITLE.format(alt=_escaped(title)))
    if not page.said("og:url") and _is_whole_url(page.canonical):
        lines.append(_URL.format(url=_escaped(page.canonical)))
    line_end = "\r\n" if "\r\n" in text else "\n"
    # At the very start, but for a byte order mark, the line's end is behind the lines.
    tags = line_end.join(["", *lines] if place > 1 else [*lines, ""])
    if _XHTML.search(text, 0, place):
        tags = tags.replace(">", " />")
    at = byte_of(raw, text, place, page.codec)
    if at is None:
        return None
    tagged = raw[:at] + tags.encode(page.codec, "xmlcharrefreplace") + raw[at:]
    says = read_page(tagged)
    return (tagged, says) if says.image == url else None


def _place_in(text: str) -> int:
    """The character at which tags are written.

    1. Behind the charset's `meta`, where it is early in the head.
    2. At the start of the head, whose own tags may be left out.
    """
    at = int(text.startswith("\ufeff"))
    start = at
    has_begun = False
    for tag in tags_of(text):
        if tag.name not in _IN_HEAD or text[at : tag.start].strip(" \t\n\r\f"):
            break
        at = tag.end
        if not has_begun and tag.name in ("!", "html", "head"):
            start = at
        has_begun = has_begun or tag.name not in ("!", "html")
        if tag.name == "meta" and codec_of_meta(attributes_of(tag)):
            return at if at <= _EARLY else start
    return start


def warnings_of(page: BuiltPage, *, names_card: bool) -> Iterator[str]:
    """What networks will not see of a page, by the names of the summary's lists."""
    images = [content for name, content in page.metas if name == "og:image"]
    if "" in images:
        yield "empty_image"
    if not all(map(_is_whole_url, filter(None, images))):
        yield "relative_image"
    cards = [
        content.lower()
        for name, content in page.metas
        if name == "twitter:card"
    ]
    is_large = cards[:1] == ["summary_large_image"]
    if len(set(cards)) > 1 or (names_card and cards and not is_large):
        yield "twitter_card"
    if page.image_end > NETWORKS_READ:
        yield "late_tags"


def _is_whole_url(url: str) -> bool:
    return url.lower().startswith(("https://", "http://"))


def _escaped(text: str) -> str:
    """A text as the value of an attribute in double quotes, on one line."""
    return re.sub(
        r"\s+", " ", html.escape(text, quote=False).replace('"', "&quot;")
    )
