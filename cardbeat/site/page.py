"""What a page of built HTML says of itself. Pure."""

import re
from collections.abc import Container, Mapping
from dataclasses import dataclass, field

from cardbeat.site.charset import byte_of, codec_of, decoded
from cardbeat.site.tags import Tag, tags_of, text_of

_REDIRECT = re.compile(r"[\s\d.]*[;,]\s*\S")
_IMAGES = ("og:image", "og:image:url", "og:image:secure_url")


@dataclass
class BuiltPage:
    """What a page says. A text that is not there is empty; `name` is that of `title`.

    `metas` has the contents of each `meta`, in order, by its names in small letters, wherever it
    stands. `image_end` is the byte behind the first that names an image, 0 for none.
    """

    codec: str
    metas: dict[str, list[str]] = field(default_factory=dict)
    name: str = ""
    lang: str = ""
    canonical: str = ""
    is_redirect: bool = False
    image_end: int = 0

    def said(self, *names: str) -> str:
        """The content of the first of these names that has one."""
        for name in names:
            for content in self.metas.get(name, []):
                if content:
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
            if page.image and not page.image_end:
                end = byte_of(raw, text, tag.end, page.codec)
                page.image_end = end or 0
    return page


def _take(page: BuiltPage, tag: Tag) -> None:
    """Note what a tag says of its page."""
    values = tag.values
    match tag.name:
        case "meta":
            _note(page, values)
            is_refresh = values["http-equiv"].lower() == "refresh"
            if is_refresh and _REDIRECT.match(values["content"]):
                page.is_redirect = True
        case "html":
            page.lang = page.lang or values["lang"] or values["xml:lang"]
        case "link" if "canonical" in values["rel"].lower().split():
            page.canonical = page.canonical or values["href"]
        case "noscript":
            # Text to browsers, but networks take an image there.
            for inner in tags_of(tag.text):
                if inner.name == "meta":
                    _note(page, inner.values, _IMAGES)


def _note(
    page: BuiltPage, values: Mapping[str, str], only: Container[str] = ()
) -> None:
    """Note what a `meta` with these attributes says, of all or only of some names."""
    names = f"{values['property']} {values['name']}".lower()
    for name in names.split():
        if not only or name in only:
            page.metas.setdefault(name, []).append(values["content"])
