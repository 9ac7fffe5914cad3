"""What a page of built HTML says of itself, and where tags may be written into it. Pure.

Begin with `read_page`. Three questions are apart: what the page says, in `metas`, wherever they
stand; what its title is, the first `title` of HTML; and where its head begins, in `places`.
"""

import html
import re
from html.entities import html5
from typing import Final, NamedTuple

from cardbeat.site.charset import byte_of, codec_of, codec_of_meta, decoded
from cardbeat.site.tags import Tag, attributes, tags_of

_IN_HEAD: Final = frozenset(
    "! html head title meta link script style base basefont bgsound noscript noframes".split()
)
"""Not `template`, which ends the head for the parsers of some networks."""
_END_HEAD: Final = frozenset("/head /body /html /br".split())
_XHTML: Final = re.compile(r"<\?xml|<!doctype[^>]*xhtml", re.IGNORECASE)
_REDIRECT: Final = re.compile(r"[\s\d.]*[;,]\s*\S")
_IMAGES: Final = ("og:image", "og:image:url", "og:image:secure_url")
_REFERENCE: Final = re.compile("&(?:#[0-9a-zA-Z]++;?|([a-zA-Z][a-zA-Z0-9]*+(?:;|(?!=))))")
_BLANKS: Final = re.compile("[ \t\n\r\f]+")
_NO_LETTER: Final = re.compile("[\ud800-\udfff]")
_LONG_NUMBER: Final = re.compile("&#(?:[0-9]{10,}|[xX][0-9a-fA-F]{10,});?")


class BuiltPage(NamedTuple):
    """What a page says. A text that is not there is empty; `name` is that of `title`.

    `metas` has a name in small letters, and a content, for each name of a `meta`.
    `image_end` is the byte behind the first `og:image`, 0 for none. `places` are the bytes at which
    tags may be written, the best first: behind the charset's `meta`, and behind the start of the
    head. There is none where `codec` can't write the page.
    """

    metas: list[tuple[str, str]]
    name: str
    lang: str
    canonical: str
    is_redirect: bool
    is_xhtml: bool
    codec: str
    image_end: int
    places: list[int]

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
    codec = codec_of(raw)
    text = decoded(raw, codec)
    reader = _Reader(text)
    places = [
        byte_of(raw, text, place, codec)
        for place in (reader.behind_charset, reader.start_of_head)
        if place is not None
    ]
    return BuiltPage(
        metas=reader.metas,
        name=_on_one_line(html.unescape(_LONG_NUMBER.sub("\ufffd", reader.title or ""))),
        lang=reader.lang,
        canonical=reader.canonical,
        is_redirect=reader.is_redirect,
        is_xhtml=reader.is_xhtml,
        codec=codec,
        image_end=byte_of(raw, text, reader.image_end, codec) or 0,
        places=[place for place in places if place is not None],
    )


class _Reader:
    """Reads a page's text. What it finds is decoded, but for the title; places are characters."""

    def __init__(self, page: str) -> None:
        self.page = page
        self.metas: list[tuple[str, str]] = []
        self.title: str | None = None
        self.lang = ""
        self.canonical = ""
        self.is_redirect = False
        self.is_xhtml = False
        self.image_end = 0
        self.behind_charset: int | None = None
        self.start_of_head: int | None = None
        self._head_is_open = True
        self._in_noscript = False
        self._open_templates = 0
        self._last: int | None = None
        self._read(int(page.startswith("\ufeff")), len(page))

    def _read(self, at: int, stop: int) -> None:
        for tag in tags_of(self.page, at, stop):
            if self._head_is_open:
                self._follow_head(tag, at)
            if not self._head_is_open:
                break
            self._take(tag)
            at = tag.text_end
        if not self._head_is_open:
            for tag in tags_of(self.page, at, stop, self._last_place()):
                self._take(tag)

    def _last_place(self) -> int:
        """Where the last tag begins that may say something, before most of a body as a rule."""
        if self._last is None:
            title = [] if self.title else ["<title"]
            small = self.page.lower()
            self._last = max(map(small.rfind, ["<meta", "<link", "<html", *title]))
        return self._last

    def _follow_head(self, tag: Tag, before: int) -> None:
        """Note where the head begins, whose own tags may be left out, and whether it ends here."""
        has_text = bool(self.page[before : tag.start].strip(" \t\n\r\f"))
        if self.start_of_head is None:
            if tag.name == "head" and not has_text:
                self.start_of_head = tag.end
            elif has_text or tag.name not in ("!", "html"):
                self.start_of_head = before
        is_other = not tag.name.startswith("/") and tag.name not in _IN_HEAD
        self._head_is_open = not (has_text or is_other or tag.name in _END_HEAD)

    def _take(self, tag: Tag) -> None:
        if tag.name == "template":
            self._open_templates += 1
        elif tag.name == "/template":
            self._open_templates = max(0, self._open_templates - 1)
        elif self._open_templates:
            pass
        elif tag.name == "meta":
            self._take_meta(tag)
        elif not self._in_noscript:
            self._take_other(tag)

    def _take_other(self, tag: Tag) -> None:
        match tag.name:
            case "noscript":
                self._in_noscript = True
                self._read(tag.end, tag.text_end)
                self._in_noscript = False
            case "title" if self.title is None:
                self.title = self.page[tag.end : tag.text_end]
            case "html":
                values = attributes(self.page, tag)
                self.is_xhtml = self.is_xhtml or "xmlns" in values
                self.lang = self.lang or _value(values, "lang") or _value(values, "xml:lang")
            case "link" if not self.canonical:
                values = attributes(self.page, tag)
                if "canonical" in _value(values, "rel").lower().split():
                    self.canonical = _value(values, "href")
            case "!" if self._head_is_open and _XHTML.match(self.page, tag.start):
                self.is_xhtml = True

    def _take_meta(self, tag: Tag) -> None:
        """Note what a `meta` says. Of one in `noscript`, which is text to browsers, the image."""
        values = attributes(self.page, tag)
        content = _value(values, "content")
        names = f"{_value(values, 'property')} {_value(values, 'name')}"
        for name in names.lower().split():
            if name in _IMAGES or not self._in_noscript:
                self.metas.append((name, content))
            if name == _IMAGES[0]:
                self.image_end = self.image_end or tag.end
        kind = _value(values, "http-equiv").lower()
        if self._in_noscript:
            return
        if kind == "refresh" and _REDIRECT.match(content):
            self.is_redirect = True
        if self._head_is_open and self.behind_charset is None and codec_of_meta(values):
            self.behind_charset = tag.end


def _value(values: dict[str, str], name: str) -> str:
    """The value of an attribute, in which `&copy=` is not a reference; empty if there is none."""
    text = values.get(name, "")
    if "&" in text:
        text = _REFERENCE.sub(_referred, _LONG_NUMBER.sub("\ufffd", text))
    return _on_one_line(text)


def _referred(found: re.Match[str]) -> str:
    """The character of a reference, such as `&amp;`; the reference if there is none."""
    return html5.get(found[1], found[0]) if found[1] else html.unescape(found[0])


def _on_one_line(text: str) -> str:
    return _BLANKS.sub(" ", _NO_LETTER.sub("\ufffd", text)).strip(" ")
