"""The endpoints `GET /docs` and `GET /docs/{page}`: the documentation, made from the Markdown in `docs`."""

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from functools import cache

from cardbeat.errors import NotFound
from cardbeat.pages.routes import TYPES, page_answer
from cardbeat.resources import read_text
from cardbeat.web.message import Request, Response
from cardbeat.web.router import Route

INDEX = "README"
"""The page that lists the others. GitHub shows it where it shows the folder."""
API = "api"
"""The page that ends with all endpoints, as the server describes them."""
EXAMPLE_URL = "http://127.0.0.1:8080"
_ROW = re.compile(r"^\| (?:\*\*(?P<group>[^|]+)\*\*|\[(?P<title>[^|]+)\]\((?P<page>[\w-]+)\.md\)) \|", re.MULTILINE)
_FIELD = re.compile(r"\{(\w+)\}")
_read = cache(read_text)


class DocRoutes:
    """Makes each page at its first request, and then answers it from memory.

    `describe` returns the OpenAPI description of the service, as JSON.
    """

    def __init__(self, describe: Callable[[], bytes]) -> None:
        self._describe = describe
        self._page = cache(self._make)

    def routes(self) -> list[Route]:
        # A worker makes a page: that takes up to 0.1 s.
        return [Route("GET", "/docs", self.index), Route("GET", "/docs/{page}", self.read)]

    def load(self) -> None:
        """Load what makes pages, before an upgrade can replace the artifact."""
        from cardbeat.pages import markdown, reference  # noqa: F401, PLC0415 - a start needs neither

        _read("pages/docs/docs.html")
        for page in _titles():
            _read(f"docs/{page}.md")

    def index(self, request: Request) -> Response:
        return page_answer(request, *self._page(INDEX), TYPES["html"])

    def read(self, request: Request) -> Response:
        name = request.params["page"]
        if name == INDEX or name not in _titles():
            raise NotFound
        return page_answer(request, *self._page(name), TYPES["html"])

    def _make(self, name: str) -> tuple[bytes, str]:
        """The body and entity tag of a page."""
        from cardbeat.pages.markdown import rendered  # noqa: PLC0415
        from cardbeat.pages.reference import reference  # noqa: PLC0415

        to_root = "" if name == INDEX else "../"
        markdown = _read(f"docs/{name}.md")
        if name == API:
            described = json.loads(self._describe())
            markdown = markdown.replace(EXAMPLE_URL, described["servers"][0]["url"]) + reference(described)
        text = rendered(markdown, to_root)
        inside = [section for section in text.sections if section.level < 4]
        fields = {
            "root": to_root,
            "home": to_root or "./",
            "title": text.title,
            "up": "" if name == INDEX else '<p class="up"><a href="../docs">Documentation</a></p>',
            "sections": "".join(
                f'<li class="level{level}"><a href="#{slug}">{title}</a></li>' for level, slug, title in inside
            ),
            "text": text.body,
            "pages": "".join(_entries(name, to_root)),
        }
        body = _FIELD.sub(lambda field: fields[field[1]], _read("pages/docs/docs.html")).encode()
        return body, f'"{hashlib.sha256(body).hexdigest()[:32]}"'


def _entries(current: str, to_root: str) -> Iterator[str]:
    """The list of all pages, in groups. The current one is marked."""
    for row in _ROW.finditer(_read(f"docs/{INDEX}.md")):
        if row["group"]:
            yield f'<li class="group">{row["group"]}</li>'
        else:
            mark = ' aria-current="page"' if row["page"] == current else ""
            yield f'<li><a href="{to_root}docs/{row["page"]}"{mark}>{row["title"]}</a></li>'


@cache
def _titles() -> dict[str, str]:
    """The title of each page but the index, by the page's name, in their order."""
    return {row["page"]: row["title"] for row in _ROW.finditer(_read(f"docs/{INDEX}.md")) if row["page"]}
