"""What a page of built HTML says of itself. Pure."""

import re
from dataclasses import dataclass, field
from itertools import chain

from cardbeat.site.charset import byte_of, codec_of, decoded
from cardbeat.site.tags import Tag, tags_of, text_of

_REDIRECT = re.compile(r"[\s\d.]*[;,]\s*\S")
_IMAGES = ("og:image", "og:image:url", "og:image:secure_url")


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

    def contents(self, wanted: str) -> list[str]:
        """The contents of a name, in order."""
        return [content for name, content in self.metas if name == wanted]

    def said(self, *names: str) -> str:
        """The content of the first of these names that has one."""
        contents = chain.from_iterable(map(self.contents, names))
        return next(filter(None, contents), "")

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
        else:
            _take(page, tag)
            is_image = page.metas and page.metas[-1][0] in _IMAGES
            if is_image and not page.image_end:
                end = byte_of(raw, text, tag.end, page.codec)
                page.image_end = end or 0
    return page


def _take(page: BuiltPage, tag: Tag) -> None:
    """Note what a tag says of its page."""
    values = tag.values
    match tag.name:
        case "meta":
            page.metas += _metas_of(tag)
            is_refresh = values.get("http-equiv", "").lower() == "refresh"
            if is_refresh and _REDIRECT.match(values.get("content", "")):
                page.is_redirect = True
        case "html":
            lang = values.get("lang") or values.get("xml:lang", "")
            page.lang = page.lang or lang
        case "link" if "canonical" in values.get("rel", "").lower().split():
            page.canonical = page.canonical or values.get("href", "")
        case "noscript":
            # Text to browsers, but not to networks.
            for inner in tags_of(tag.text):
                for name, content in _metas_of(inner):
                    if name in _IMAGES:
                        page.metas.append((name, content))


def _metas_of(tag: Tag) -> list[tuple[str, str]]:
    """The names and the content of a tag, if it is a `meta`."""
    if tag.name != "meta":
        return []
    names = f"{tag.values.get('property', '')} {tag.values.get('name', '')}"
    content = tag.values.get("content", "")
    return [(name, content) for name in names.lower().split()]
