"""The endpoints `GET /`, `GET /dashboard`, and `GET /pages/...` for the files that pages load."""

import hashlib
import re
from functools import cache, partial

from cardbeat.errors import NotFound
from cardbeat.resources import read_bytes
from cardbeat.web.message import Request, Response
from cardbeat.web.router import Route

TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "png": "image/png",
    "jpg": "image/jpeg",
    "json": "text/plain; charset=utf-8",
    "woff2": "font/woff2",
}

_NAME = re.compile(r"[a-z0-9-]+\.[a-z0-9]+")

FOLDERS = {name: f"pages/{name}" for name in ("access", "builder", "dashboard", "docs", "editor", "shared")} | {
    "files": "docs/files",
    "fonts": "fonts",
}
"""The folder of the package for each folder under `/pages`."""
PARTS = {"css", "js", "svg"}
"""What a folder of `pages` gives. Not its HTML, whose links are relative to the page's own path."""
KINDS = {"files": {"png", "jpg", "json"}, "fonts": {"woff2"}}
"""What the other folders give."""

PAGE_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src 'self' blob: data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'"
    ),
    # A card's URL holds a key: no other site may see the URL that its visitor comes from.
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    # The browser asks again each time, so that a page never loads scripts of another version.
    "Cache-Control": "no-cache",
}


_TILE = re.compile(r'name="template" value="(\w+)"(?:(?!</svg>).)*</svg>', re.DOTALL)
"""A template's small picture in the builder, with its name."""
_ACCENT = "<!-- accent -->"


class PageRoutes:
    """Answers each file from memory, after reading it once. The builder shows the accent of the cards."""

    def __init__(self, accent: str | None = None) -> None:
        self._accent = accent

    def routes(self) -> list[Route]:
        return [
            Route("GET", "/", partial(self.page, "builder"), in_loop=True),
            Route("GET", "/dashboard", partial(self.page, "dashboard"), in_loop=True),
            Route("GET", "/pages/{folder}/{name}", self.file, in_loop=True),
        ]

    def page(self, name: str, request: Request) -> Response:
        return self._answer(request, f"pages/{name}/{name}.html", self._accent)

    def file(self, request: Request) -> Response:
        """A script, style, picture or font, or a file that the documentation links."""
        folder, name = request.params["folder"], request.params["name"]
        if folder not in FOLDERS or not _NAME.fullmatch(name) or _kind(name) not in KINDS.get(folder, PARTS):
            raise NotFound
        return self._answer(request, f"{FOLDERS[folder]}/{name}")

    def _answer(self, request: Request, path: str, accent: str | None = None) -> Response:
        return page_answer(request, *_file(path, accent), TYPES[_kind(path)])


def page_answer(request: Request, body: bytes, etag: str, media_type: str) -> Response:
    """A page or a file of one, or 304 if the request names its entity tag."""
    headers = {**PAGE_HEADERS, "Content-Type": media_type, "ETag": etag}
    if request.names_tag("if-none-match", etag):
        return Response(304, b"", headers)
    return Response(200, body, headers)


@cache
def _file(path: str, accent: str | None) -> tuple[bytes, str]:
    """The body and entity tag of a file of the package. Raises `NotFound`, which is not cached."""
    try:
        body = read_bytes(path)
    except OSError:
        raise NotFound from None
    if accent:
        body = _in_accent(body.decode(), accent).encode()
    return body, f'"{hashlib.sha256(body).hexdigest()[:32]}"'


def _in_accent(html: str, accent: str) -> str:
    """A page whose pictures of the templates have the colours of the cards, and which names their accent."""
    from cardbeat.cards.drawing.accent import recoloured  # noqa: PLC0415 - the first answer does without it

    def tile(match: re.Match[str]) -> str:
        theme = "light" if match[1] == "article" else "dark"
        return re.sub("#[0-9a-f]{6}", lambda colour: recoloured(match[1], theme, accent, colour[0]), match[0])

    swatch = f'<svg viewBox="0 0 16 16" aria-hidden="true"><circle cx="8" cy="8" r="8" fill="{accent}"/></svg>'
    named = f'<p class="hint swatch">{swatch}This server draws in <code>{accent}</code>.</p>'
    return _TILE.sub(tile, html).replace(_ACCENT, named)


def _kind(name: str) -> str:
    return name.rpartition(".")[2]
