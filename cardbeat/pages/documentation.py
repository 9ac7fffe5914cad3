"""The endpoints `GET /docs` and `GET /docs/{page}`: the Markdown of `docs`, as HTML."""

import json
import re
from collections.abc import Iterator
from functools import cache

from cardbeat.errors import NotFound
from cardbeat.files import read_text
from cardbeat.pages.routes import TYPES, page_answer, tagged
from cardbeat.web.message import Request, Response
from cardbeat.web.router import Route

INDEX = "README"
"""The page that lists the others. GitHub shows it where it shows the folder."""
API = "api"
"""The page that ends with all endpoints, as the server describes them."""
TOUR = "tour"
"""The page whose commands start a server of their own."""
TRIAL_URL = "http://127.0.0.1:8080"
PUBLIC_URL = "https://cards.example.com"
_ROW = re.compile(
    r"^\| (?:\*\*(?P<group>[^|]+)\*\*|\[(?P<title>[^|]+)\]\((?P<page>[\w-]+)\.md\)) \|",
    re.MULTILINE,
)
_FIELD = re.compile(r"\{(\w+)\}")
_read = cache(read_text)


class DocRoutes:
    """Makes each page at its first request, and then answers it from memory.

    `description` is the OpenAPI description of the service, as JSON.
    """

    def __init__(self, description: bytes) -> None:
        self._description = description
        self._page = cache(self._make)

    def routes(self) -> list[Route]:
        # A thread makes a page: that takes up to 0.1 s.
        return [Route("GET", path, self.read) for path in ("/docs", "/docs/{page}")]

    def load(self) -> None:
        """Load what makes pages, before an upgrade can replace the artifact."""
        from cardbeat.pages import markdown, reference  # noqa: F401, PLC0415 - a start needs neither

        _read("pages/docs/docs.html")
        for page in _pages():
            _read(f"docs/{page}.md")

    def read(self, request: Request) -> Response:
        name = request.params.get("page", INDEX)
        if request.params and name not in _pages():
            raise NotFound
        body, etag = self._page(name)
        return page_answer(request, body, etag, TYPES["html"])

    def _make(self, name: str) -> tuple[bytes, str]:
        """The body and entity tag of a page."""
        from cardbeat.pages.markdown import rendered  # noqa: PLC0415

        to_root = "" if name == INDEX else "../"
        text = rendered(self._markdown(name), to_root)
        sections = ""
        for section in text.sections:
            if section.level < 4:
                link = f'<a href="#{section.slug}">{section.title}</a>'
                sections += f'<li class="level{section.level}">{link}</li>'
        fields = {
            "root": to_root,
            "home": to_root or "./",
            "title": text.title,
            "up": '<p class="up"><a href="../docs">Documentation</a></p>' if to_root else "",
            "sections": sections,
            "text": text.body,
            "pages": "".join(_entries(name, to_root)),
        }
        page = _FIELD.sub(lambda field: fields[field[1]], _read("pages/docs/docs.html"))
        return tagged(page.encode())

    def _markdown(self, name: str) -> str:
        """The text of a page, with this server's own URL in place of those of the examples."""
        from cardbeat.pages.reference import reference  # noqa: PLC0415

        described = json.loads(self._description)
        base_url = described["servers"][0]["url"]
        markdown = _read(f"docs/{name}.md")
        if name == API:
            markdown += reference(described)
        if name != TOUR:
            markdown = markdown.replace(TRIAL_URL, base_url)
        if base_url.startswith("https:"):
            markdown = markdown.replace(PUBLIC_URL, base_url)
        return markdown


def _entries(current: str, to_root: str) -> Iterator[str]:
    """The list of all pages, in groups. The current one is marked."""
    for row in _rows():
        if row["group"]:
            yield f'<li class="group">{row["group"]}</li>'
        else:
            mark = ' aria-current="page"' if row["page"] == current else ""
            yield f'<li><a href="{to_root}docs/{row["page"]}"{mark}>{row["title"]}</a></li>'


def _pages() -> list[str]:
    """The names of all pages but the index, in their order."""
    return [row["page"] for row in _rows() if row["page"]]


def _rows() -> Iterator[re.Match[str]]:
    return _ROW.finditer(_read(f"docs/{INDEX}.md"))
