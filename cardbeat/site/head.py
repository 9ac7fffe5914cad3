"""What is written into the head of a page that has no image of its own. Pure."""

import html
import re
from collections.abc import Iterator
from typing import Final

from cardbeat.site.page import BuiltPage, read_page

NETWORKS_READ: Final = 32 * 1024
"""Bytes of a page that Slack reads. No other network is known to read less."""
_LONGEST_MARK: Final = 3  # bytes of a byte order mark; no tag is so short
_TAGS: Final = """\
<meta property="og:image" content="{url}">
<meta property="og:image:width" content="1200">
<meta property="og:image:height" content="630">
<meta property="og:image:alt" content="{alt}">
<meta name="twitter:card" content="summary_large_image">
<meta name="twitter:image:alt" content="{alt}">"""
_TITLE: Final = '<meta property="og:title" content="{alt}">'
_WRITTEN: Final = re.findall('="([a-z:]+)" content', _TAGS + _TITLE)
"""The names that are written into a page without a title for networks, in this order."""


def image_tags(url: str, title: str) -> list[str]:
    """The lines that the builder's page gives."""
    return _TAGS.format(url=_escaped(url), alt=_escaped(title)).split("\n")


def with_tags(raw: bytes, url: str, title: str) -> tuple[bytes, BuiltPage] | None:
    """A page that names its image, early in its head, and what it says then.

    All other bytes are as before; a page that has an image is returned as it is. None if there is
    no place, or if the page would not have this image.
    """
    page = read_page(raw)
    if page.image:
        return raw, page
    line_end = "\r\n" if "\r\n".encode(page.codec) in raw else "\n"
    tags = line_end.join(_lines(page, url, title))
    places = sorted(page.places, key=lambda place: place + len(tags) > NETWORKS_READ)
    if not places:
        return None
    place = places[0]
    text = tags + line_end if place <= _LONGEST_MARK else line_end + tags
    tagged = raw[:place] + text.encode(page.codec, "xmlcharrefreplace") + raw[place:]
    says = read_page(tagged)
    return (tagged, says) if says.image == url else None


def written_title(page: BuiltPage) -> str:
    """The `og:title` that an earlier run wrote behind the other lines; empty if none did."""
    names = [name for name, _ in page.metas]
    count = len(_WRITTEN)
    for begin in range(len(names) - count + 1):
        if names[begin : begin + count] == _WRITTEN:
            return page.metas[begin + count - 1][1]
    return ""


def warnings_of(page: BuiltPage, *, names_card: bool) -> Iterator[str]:
    """What networks will not see of a page, by the names of the summary's lists."""
    images = [content for name, content in page.metas if name == "og:image"]
    if "" in images:
        yield "empty_image"
    if not all(map(_is_whole_url, filter(None, images))):
        yield "relative_image"
    cards = [content.lower() for name, content in page.metas if name == "twitter:card"]
    is_large = cards[:1] == ["summary_large_image"]
    if len(set(cards)) > 1 or (names_card and cards and not is_large):
        yield "twitter_card"
    if page.image_end > NETWORKS_READ:
        yield "late_tags"


def _lines(page: BuiltPage, url: str, title: str) -> Iterator[str]:
    lines = image_tags(url, title)
    if not page.said("og:title"):
        lines.append(_TITLE.format(alt=_escaped(title)))
    if not page.said("og:url") and _is_whole_url(page.canonical):
        lines.append(f'<meta property="og:url" content="{_escaped(page.canonical)}">')
    for line in lines:
        yield line.removesuffix(">") + " />" if page.is_xhtml else line


def _is_whole_url(url: str) -> bool:
    return url.lower().startswith(("https://", "http://"))


def _escaped(text: str) -> str:
    """A text as the value of an attribute in double quotes, on one line."""
    return re.sub(r"\s+", " ", html.escape(text, quote=False).replace('"', "&quot;"))
