"""One page of built HTML: the texts of its card, and where the tags of an image go. Pure."""

import codecs
import html
import re
from html.parser import HTMLParser
from typing import Final, NamedTuple

READ_BYTES: Final = 1024 * 1024  # of a page, whose head ends long before
_PART: Final = 16 * 1024  # characters that are parsed at once
_MOST_UNREAD: Final = 16 * 1024
"""The parser gives up at a longer tag: its time grows with the square of the length, or faster."""

_IN_HEAD: Final = frozenset(
    ["html", "head", "title", "meta", "link", "script", "style", "base", "noscript", "template"]
)
"""Elements that leave the head open where its own tags are left out, as HTML allows."""
_APART: Final = frozenset(("svg", "math", "noscript", "template", "iframe", "object"))
"""Elements whose content says nothing about the page."""
_DEEPEST: Final = 100  # of them inside one another
_BLANKS: Final = " \t\n\r\f"
_REDIRECT: Final = re.compile(r"[\s\d.]*[;,]\s*\S")
_CHARSET: Final = re.compile(rb"<meta[^>]*?charset\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE)
_BOMS: Final = {b"\xef\xbb\xbf": "utf-8", b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
_READ_AS: Final = {
    **dict.fromkeys(("ascii", "iso8859-1"), "cp1252"),
    **dict.fromkeys(("gb2312", "gbk"), "gb18030"),
    **dict.fromkeys(("tis-620", "iso8859-11"), "cp874"),
    "iso8859-9": "cp1254",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "big5": "big5hkscs",
}
"""What browsers read in place of a charset: a larger one that holds it."""


class BuiltPage(NamedTuple):
    """What the head of a page says. A text is empty if it is not there; `name` is the content of `<title>`.

    `end_of_head` is the number of bytes before the place for more tags; None if there is no such place.
    """

    title: str
    name: str
    description: str
    author: str
    tag: str
    image: str
    is_redirect: bool
    end_of_head: int | None
    encoding: str


def read_page(raw: bytes) -> BuiltPage:
    """What the first `READ_BYTES` of a page say. Raises `ValueError` for a number of thousands of digits."""
    encoding = next((name for bom, name in _BOMS.items() if raw.startswith(bom)), "") or _declared(raw[:1024])
    head, before = _Head(), ""
    try:
        # Each byte that can't be decoded is a lone surrogate, and is the same byte again below.
        text = raw.decode(encoding, "surrogateescape")
    except (LookupError, UnicodeError):
        encoding, text = "utf-8", raw.decode("utf-8", "surrogateescape")
    try:
        for start_of_part in range(0, len(text), _PART):
            head.feed(text[start_of_part : start_of_part + _PART])
            if len(head.rawdata) > _MOST_UNREAD and not (head.cdata_elem or head.rawdata.startswith("<!--")):
                raise AssertionError
        # A comment without an end goes on to the end of the page; the parser would look for it at each "<!--" in it.
        if not head.rawdata.startswith("<!--"):
            head.close()
        before = text if len(raw) < READ_BYTES else ""
    except _HeadEnds:
        line, column = head.getpos()
        lines = text.split("\n", line)
        before = "\n".join([*lines[: line - 1], lines[line - 1][:column]])
    except AssertionError:
        pass  # html.parser gives up at a declaration that is none, and this at a tag without an end, or too deep.
    try:
        start = before.encode(encoding, "surrogateescape")
    except UnicodeError:
        start = b""  # A charset with states, as ISO-2022-JP, has no way to write a byte that it can't read.
    said = {name: _on_one_line(content) for name, content in head.metas.items()}

    def first(*names: str) -> str:
        return next((said[name] for name in names if said.get(name)), "")

    return BuiltPage(
        title=first("og:title"),
        name=_on_one_line(html.unescape(head.title or "")),
        description=first("og:description", "description"),
        author=first("author"),
        tag=first("article:tag", "article:section"),
        image=first("og:image", "og:image:url", "og:image:secure_url"),
        is_redirect=head.is_redirect,
        end_of_head=len(start) if start and raw.startswith(start) else None,
        encoding=encoding,
    )


def image_tags(url: str, title: str) -> list[str]:
    """The lines that the builder's page gives."""
    alt = _escaped(title)
    return [
        f'<meta property="og:image" content="{_escaped(url)}">',
        '<meta property="og:image:width" content="1200">',
        '<meta property="og:image:height" content="630">',
        f'<meta property="og:image:alt" content="{alt}">',
        '<meta name="twitter:card" content="summary_large_image">',
        f'<meta name="twitter:image:alt" content="{alt}">',
    ]


def with_lines(raw: bytes, lines: list[str]) -> bytes | None:
    """A page, or its first `READ_BYTES`, with these lines at the end of its head, in its own charset.

    Unchanged if it has an image, which another run may have just written. None if there is no such place, or if the
    page would still not have an image.
    """
    page = read_page(raw)
    if page.image:
        return raw
    if page.end_of_head is None:
        return None
    start, rest = raw[: page.end_of_head], raw[page.end_of_head :]
    end = "\r\n" if "\r\n".encode(page.encoding) in start else "\n"
    added = "".join(line + end for line in lines).encode(page.encoding, "xmlcharrefreplace")
    return start + added + rest if read_page(start + added + rest[:READ_BYTES]).image else None


class _HeadEnds(Exception):
    """The parser stands where the head ends."""


class _Head(HTMLParser):
    """Reads a page up to the end of its head."""

    # Nothing in these is a tag. The parsers of older versions of Python find some there.
    CDATA_CONTENT_ELEMENTS = (  # type: ignore[misc]
        *("script", "style", "title", "textarea", "xmp", "iframe", "noembed", "noframes"),
    )

    def __init__(self) -> None:
        super().__init__()
        self.metas: dict[str, str] = {}
        self.title: str | None = None
        self.is_redirect = False
        self._data = ""  # since the last tag
        self._apart: list[str] = []  # the open elements of `_APART`
        self._has_head = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._data = ""
        if tag == "body" or not (self._has_head or self._apart or tag in _IN_HEAD):
            raise _HeadEnds
        self._has_head = self._has_head or tag == "head"
        if tag in _APART:
            if len(self._apart) == _DEEPEST:
                raise AssertionError
            self._apart.append(tag)
        elif tag == "meta" and not self._apart:
            # Of an attribute that is there twice, the first counts.
            self._meta({name: value or "" for name, value in reversed(attrs)})

    def handle_endtag(self, tag: str) -> None:
        if tag in ("head", "body", "html"):
            raise _HeadEnds
        if tag in self._apart:
            del self._apart[self._apart.index(tag) :]
        elif tag == "title" and self.title is None and not self._apart:
            self.title = self._data

    def handle_data(self, data: str) -> None:
        self._data += data[: _MOST_UNREAD - len(self._data)]
        if not (self._has_head or self._apart or self.cdata_elem) and data.strip(_BLANKS + "\ufeff"):
            raise _HeadEnds

    def _meta(self, values: dict[str, str]) -> None:
        content = values.get("content", "").strip(_BLANKS)
        if values.get("http-equiv", "").strip().lower() == "refresh" and _REDIRECT.match(content):
            self.is_redirect = True
        for name in f"{values.get('property', '')} {values.get('name', '')}".lower().split():
            if content:
                self.metas.setdefault(name, content)


def _declared(start: bytes) -> str:
    """The encoding in which browsers read a page without a byte order mark; UTF-8 if it tells no known one."""
    label = _CHARSET.search(re.sub(b"<!--.*?-->", b"", start, flags=re.DOTALL))
    try:
        name = codecs.lookup(label[1].decode("latin-1") if label else "utf-8").name
    except LookupError:
        return "utf-8"
    # A page that declares UTF-16 in ASCII is in UTF-8. The others are not for pages.
    return "utf-8" if name.startswith(("utf", "idna", "puny", "unicode", "raw")) else _READ_AS.get(name, name)


def _on_one_line(text: str) -> str:
    """A text without line breaks. What could not be decoded is U+FFFD."""
    return re.sub(f"[{_BLANKS}]+", " ", re.sub("[\ud800-\udfff]", "\ufffd", text)).strip(" ")


def _escaped(text: str) -> str:
    """A text as the value of an attribute in double quotes, on one line."""
    return re.sub(r"\s+", " ", html.escape(text, quote=False).replace('"', "&quot;"))
