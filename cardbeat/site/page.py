"""What a page of built HTML says of itself. Pure."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from cardbeat.site.charset import byte_of, codec_of, decoded
from cardbeat.site.tags import Tag, attributes_of, tags_of, text_of

_REDIRECT: Final = re.compile(r"[\s\d.]*[;,]\s*\S")
_IMAGES: Final = ("og:image", "og:image:url", "og:image:secure_url")


@dataclass
class BuiltPage:
    """What a page says. A text that is not there is empty; `name` is that of `title`.

    `metas` has a name in small letters, and a content, for each name of a `meta`, wherever it
    stands. `image_end` is the byte behind the first `og:image`, 0 for none.
    """

    codec: str
    metas: list[tuple[str, str]] = field(default_factory=list)
    name: str = ""
    lang: str = ""
    canonical: str = ""
    is_redirect: bool = False
    image_end: int = 0

    def said(self, *names: str) -> str:
        """The content of the first of these names that has one."""
        for wanted in names:
            for name, content in self.metas:
                if name == wanted and content:
                    return content
        return ""

    @property
    def image(self) -> str:
        return self.said(*_IMAGES)


def read_page(raw: bytes) -> BuiltPage:
    """What a page says, read as a browser reads it."""
    page = BuiltPage(codec_of(raw))
    text = decoded(raw, page.codec)
    small = text.lower()
    # Behind these nothing is said, but perhaps the title.
    last = max(map(small.rfind, ("<meta", "<link", "<html")))
    has_title = False
    image_end = 0
    open_templates = 0
    for tag in tags_of(text):
        if has_title and tag.start > last:
            break
        if tag.name == "template":
            open_templates += 1
        elif tag.name == "/template" and open_templates:
            open_templates -= 1
        elif open_templates:
            continue
        elif tag.name == "title" and not has_title:
            has_title = True
            page.name = text_of(tag.text)
        elif tag.name == "noscript":
            # Text to browsers, but not to networks.
            images = [
                meta
                for meta in _metas_of(tags_of(tag.text))
                if meta[0] in _IMAGES
            ]
            page.metas.extend(images)
        else:
            _take(page, tag)
            if (
                not image_end
                and page.metas
                and page.metas[-1][0] == _IMAGES[0]
            ):
                image_end = tag.end
    page.image_end = byte_of(raw, text, image_end, page.codec) or 0
    return page


def _take(page: BuiltPage, tag: Tag) -> None:
    values = attributes_of(tag)
    match tag.name:
        case "meta":
            page.metas.extend(_metas_of([tag]))
            is_refresh = values.get("http-equiv", "").lower() == "refresh"
            if is_refresh and _REDIRECT.match(values.get("content", "")):
                page.is_redirect = True
        case "html":
            page.lang = (
                page.lang or values.get("lang") or values.get("xml:lang", "")
            )
        case "link" if "canonical" in values.get("rel", "").lower().split():
            page.canonical = page.canonical or values.get("href", "")


def _metas_of(tags: Iterable[Tag]) -> list[tuple[str, str]]:
    """The names and contents of the `meta` among these tags."""
    found: list[tuple[str, str]] = []
    for tag in tags:
        if tag.name == "meta":
            values = attributes_of(tag)
            names = f"{values.get('property', '')} {values.get('name', '')}".lower()
            found.extend(
                (name, values.get("content", "")) for name in names.split()
            )
    return found
