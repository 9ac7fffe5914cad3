"""The pages of the documentation: the Markdown of `docs`, as HTML.

The anchors of headings are those that GitHub makes.
"""

import html
import re
from typing import Any

from cardbeat.errors import NotFound
from cardbeat.files import read_text
from cardbeat.vendor.mistune.markdown import Markdown
from cardbeat.vendor.mistune.plugins.table import table
from cardbeat.vendor.mistune.renderers.html import HTMLRenderer

INDEX = "README"
"""The page that lists the others. GitHub shows it where it shows the folder."""
TOUR = "tour"
"""The page whose commands start a server of their own."""
TRIAL_URL = "http://127.0.0.1:8080"
PUBLIC_URL = "https://cards.example.com"
_ROW = re.compile(
    r"^\| (?:\*\*(.+)\*\*|\[(.+)\]\(([\w-]+)\.md\)) \|", re.MULTILINE
)
"""A row of the list of pages: the title of a group, or the title and the name of a page."""
_TAG = re.compile(r"<[^>]*>")
_NOT_IN_SLUG = re.compile(r"[^\w\- ]")
_PAGE = re.compile(r"([\w-]+)\.md(#.*)?")


Section = tuple[int, str, str]
"""The level, the anchor and the title of a heading, as HTML."""


def page_of(name: str, base_url: str) -> bytes:
    """The HTML of a page, for the server with this URL; that of the list of pages has no name.

    Raises `NotFound` for a page that is not in the list.
    """
    listed = _ROW.findall(read_text(f"docs/{INDEX}.md"))
    if name and name not in [page for _, _, page in listed]:
        raise NotFound
    markdown = read_text(f"docs/{name or INDEX}.md")
    if name != TOUR:
        markdown = markdown.replace(TRIAL_URL, base_url)
    if base_url.startswith("https:"):
        markdown = markdown.replace(PUBLIC_URL, base_url)
    to_root = ""
    up = ""
    if name:
        to_root = "../"
        up = '<p class="up"><a href="../docs">Documentation</a></p>'
    page_title, text, headings = rendered(markdown, to_root)
    sections = ""
    for level, slug, title in headings:
        if level < 4:
            sections += f'<li class="level{level}"><a href="#{slug}">{title}</a></li>'
    pages = ""
    for group, title, page in listed:
        if group:
            pages += f'<li class="group">{group}</li>'
        else:
            mark = ' aria-current="page"' if page == name else ""
            pages += f'<li><a href="{to_root}docs/{page}"{mark}>{title}</a></li>'
    filled = read_text("pages/docs/docs.html").format(
        root=to_root,
        home=to_root or "./",
        title=page_title,
        up=up,
        sections=sections,
        text=text,
        pages=pages,
    )
    return filled.encode()


def rendered(
    markdown: str, to_root: str
) -> tuple[str, str, list[Section]]:
    """The title, the HTML and the other headings of a page with this Markdown.

    `to_root` is the relative URL from it to `/`, such as `../`.
    """
    renderer = _Renderer(to_root)
    body = Markdown(renderer, plugins=[table])(markdown)
    (_, _, title), *sections = renderer.sections
    return title, str(body), sections


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
        self._columns: list[str] = []
        self._cells = 0

    def heading(self, text: str, level: int, **attrs: Any) -> str:
        slug = slug_of(html.unescape(_TAG.sub("", text)))
        self.sections.append((level, slug, text))
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
        attributes = 'class="code"'
        if info == "text":
            attributes = 'class="code wide" tabindex="0"'
        return f"<pre {attributes}><code>{html.escape(code, quote=False)}</code></pre>\n"

    def table(self, text: str) -> str:
        self._columns = []
        rows = text.replace("<tr>", '<tr role="row">')
        return f'<table role="table">\n{rows}</table>\n'

    def table_row(self, text: str) -> str:
        self._cells = 0
        return f"<tr>\n{text}</tr>\n"

    def table_cell(
        self, text: str, align: str | None = None, head: bool = False
    ) -> str:
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
