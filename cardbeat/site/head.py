"""What is written into the head of a page that has no image of its own. Pure."""

import html
import re
from collections.abc import Iterator

from cardbeat.site.charset import byte_of, codec_of_meta, decoded
from cardbeat.site.page import BuiltPage, read_page
from cardbeat.site.tags import tags_of

NETWORKS_READ = 32 * 1024
"""Bytes of a page that Slack reads. No other network is known to read less."""
_EARLY = 8 * 1024  # characters
_IN_HEAD = (
    "! html head base title meta link script style noframes".split()
)
"""Not `template` and `noscript`, which end the head for the parsers of some networks."""
_IS_WHOLE = re.compile("https?://", re.IGNORECASE).match
_XHTML = re.compile(
    r"<\?xml|<!doctype[^>]*xhtml|<html[^>]*xmlns", re.IGNORECASE
)


def image_tags(url: str, title: str) -> list[str]:
    """The lines that the builder's page gives."""
    return [
        _line("og:image", url),
        _line("og:image:width", "1200"),
        _line("og:image:height", "630"),
        _line("og:image:alt", title),
        _line("twitter:card", "summary_large_image"),
        _line("twitter:image:alt", title),
    ]


def _line(name: str, content: str) -> str:
    key = "property" if name.startswith("og:") else "name"
    text = html.escape(content, quote=False).replace('"', "&quot;")
    text = re.sub(r"\s+", " ", text)
    return f'<meta {key}="{name}" content="{text}">'


def with_tags(
    raw: bytes, page: BuiltPage, url: str, title: str
) -> tuple[bytes, BuiltPage] | None:
    """A page without an image that names this one, early in its head, and what it says then.

    All other bytes are as before. None if there is no place, or if a reader would not find it.
    """
    text = decoded(raw, page.codec)
    place = _place_in(text)
    at = byte_of(raw, text, place, page.codec)
    if at is None:
        return None
    lines = image_tags(url, title)
    if not page.said("og:title"):
        lines.append(_line("og:title", title))
    if not page.said("og:url") and _IS_WHOLE(page.canonical):
        lines.append(_line("og:url", page.canonical))
    # At the very start, but for a byte order mark, the line's end is behind the lines.
    lines.insert(0 if place > 1 else len(lines), "")
    tags = ("\r\n" if "\r\n" in text else "\n").join(lines)
    if _XHTML.search(text, 0, place):
        tags = tags.replace(">", " />")
    tagged = (
        raw[:at] + tags.encode(page.codec, "xmlcharrefreplace") + raw[at:]
    )
    says = read_page(tagged)
    return (tagged, says) if says.image == url else None


def _place_in(text: str) -> int:
    """The character at which tags are written.

    1. Behind the charset's `meta`, where it is early in the head.
    2. At the start of the head, whose own tags may be left out.
    """
    at = start = int(text.startswith("\ufeff"))
    for tag in tags_of(text):
        if tag.name not in _IN_HEAD or text[at : tag.start].strip(
            " \t\n\r\f"
        ):
            break
        is_start = at == start and tag.name in ("!", "html", "head")
        at = tag.end
        if is_start:
            start = at
        elif tag.name == "meta" and codec_of_meta(tag.values):
            return at if at <= _EARLY else start
    return start


def warnings_of(page: BuiltPage, *, names_card: bool) -> Iterator[str]:
    """What networks will not see of a page, by the names of the summary's lists."""
    images = page.metas.get("og:image", [])
    if "" in images:
        yield "empty_image"
    if not all(map(_IS_WHOLE, filter(None, images))):
        yield "relative_image"
    cards = [card.lower() for card in page.metas.get("twitter:card", [])]
    is_small = cards != [] and cards[0] != "summary_large_image"
    if len(set(cards)) > 1 or (names_card and is_small):
        yield "twitter_card"
    if page.image_end > NETWORKS_READ:
        yield "late_tags"
