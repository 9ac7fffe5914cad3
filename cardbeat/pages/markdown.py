"""A page of the documentation, from Markdown to HTML. Its anchors are those that GitHub makes."""

import html
import re
from typing import Any, NamedTuple

from cardbeat.vendor.mistune.markdown import Markdown
from cardbeat.vendor.mistune.plugins.table import table
from cardbeat.vendor.mistune.renderers.html import HTMLRenderer

_TAG = re.compile(r"<[^>]*>")
_NOT_IN_SLUG = re.compile(r"[^\w\- ]")
_PAGE = re.compile(r"([\w-]+)\.md(#.*)?")


class Section(NamedTuple):
    level: int
    slug: str
    title: str
    """As HTML."""


class Rendered(NamedTuple):
    """A page: its title and its text below it, both as HTML, and the headings of the text."""

    title: str
    body: str
    sections: list[Section]


def rendered(markdown: str, to_root: str) -> Rendered:
    """The page with this Markdown. `to_root` is the relative URL from it to `/`, such as `../`."""
    renderer = _Renderer(to_root)
    body = Markdown(renderer, plugins=[table])(markdown)
    title, *sections = renderer.sections
    return Rendered(title.title, str(body), sections)


def slug_of(heading: str) -> str:
    """The anchor of a heading, given as text."""
    return _NOT_IN_SLUG.sub("", heading.strip().lower()).replace(" ", "-")


class _Renderer(HTMLRenderer):
    """Raw HTML is shown as text. Pages and files are linked where the server has them.

    Each cell of a table names its column, because on a phone the cells of a row stand below each
    other. It has a role, because browsers drop the roles of a table that is not shown as one.
    """

    def __init__(self, to_root: str) -> None:
        super().__init__()
        self._to_root = to_root
        self.sections: list[Section] = []
        self._used: dict[str, int] = {}
        self._columns: list[str] = []
        self._cells = 0

    def heading(self, text: str, level: int, **attrs: Any) -> str:
        slug = first = slug_of(html.unescape(_TAG.sub("", text)))
        while slug in self._used:
            self._used[first] += 1
            slug = f"{first}-{self._used[first]}"
        self._used[slug] = 0
        self.sections.append(Section(level, slug, text))
        if level == 1:
            return ""
        return f'<h{level} id="{slug}"><a href="#{slug}">{text}</a></h{level}>\n'

    def link(self, text: str, url: str, title: str | None = None) -> str:
        return super().link(text, self._served(url), title)

    def image(self, text: str, url: str, title: str | None = None) -> str:
        image = super().image(text, self._served(url), title)
        return image.replace("<img ", '<img loading="lazy" ')

    def block_code(self, code: str, info: str | None = None) -> str:
        # Lines of `text` keep their columns, so such a block scrolls: the keyboard must reach it.
        wide = ' class="code wide" tabindex="0"' if info == "text" else ' class="code"'
        return f"<pre{wide}><code>{html.escape(code, quote=False)}</code></pre>\n"

    def table(self, text: str) -> str:
        self._columns = []
        return f'<table role="table">\n{text.replace("<tr>", _ROW)}</table>\n'

    def table_row(self, text: str) -> str:
        self._cells = 0
        return f"<tr>\n{text}</tr>\n"

    def table_cell(self, text: str, align: str | None = None, head: bool = False) -> str:
        if head:
            self._columns.append(_TAG.sub("", text))
            return f'<th role="columnheader" scope="col">{text}</th>\n'
        column = self._columns[self._cells]
        self._cells += 1
        return f'<td role="cell" data-head="{column}">{text}</td>\n'

    def _served(self, url: str) -> str:
        if url.startswith("files/"):
            return f"{self._to_root}pages/{url}"
        if page := _PAGE.fullmatch(url):
            name = "" if page[1] == "README" else f"/{page[1]}"
            return f"{self._to_root}docs{name}{page[2] or ''}"
        return url


_ROW = '<tr role="row">'
