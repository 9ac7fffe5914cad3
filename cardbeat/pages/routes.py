"""The endpoints `GET /`, `GET /dashboard`, and `GET /pages/...` for the files that pages load."""

import hashlib
import re
from functools import cache, partial

from cardbeat.errors import NotFound
from cardbeat.files import read_bytes
from cardbeat.web.message import Request, Response
from cardbeat.web.router import Route

TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "png": "image/png",
    "jpg": "image/jpeg",
    "woff2": "font/woff2",
}
TEXT = "text/plain; charset=utf-8"

FOLDERS = {"files": "docs/files", "fonts": "fonts"}
for _name in ("access", "builder", "dashboard", "docs", "editor", "looks", "shared"):
    FOLDERS[_name] = f"pages/{_name}"
"""The folder of the package for each folder under `/pages`."""
PARTS = {"css", "js", "png", "svg", "woff2"}
"""What they give, but for the documentation's files. No HTML: its links are relative to a page."""
_NAME = re.compile(r"[\w-]+(?:\.[a-z0-9]+)?")

PAGE_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; "
        "img-src 'self' blob: data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'; require-trusted-types-for 'script'"
    ),
    # A card's URL holds a key: no other site may see the URL that its visitor comes from.
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    # The browser asks again each time, so that a page never loads scripts of another version.
    "Cache-Control": "no-cache",
}

_ACCENT = '<p class="hint">This server draws in <code id="accent">{}</code>.</p>'


class PageRoutes:
    """Answers each file from memory, after reading it once. The builder shows the cards' accent."""

    def __init__(self, accent: str | None = None) -> None:
        self._accent = accent

    def routes(self) -> list[Route]:
        return [
            Route("GET", "/", partial(self.page, "builder"), in_loop=True),
            Route("GET", "/dashboard", partial(self.page, "dashboard"), in_loop=True),
            Route("GET", "/pages/{folder}/{name}", self.file, in_loop=True),
        ]

    def page(self, name: str, request: Request) -> Response:
        body, etag = _file(f"pages/{name}/{name}.html", self._accent)
        return page_answer(request, body, etag, TYPES["html"])

    def file(self, request: Request) -> Response:
        """A script, style, picture or font, or a file that the documentation links."""
        folder, name = request.params["folder"], request.params["name"]
        kind = name.rpartition(".")[2]
        is_part = folder in FOLDERS and (folder == "files" or kind in PARTS)
        if not is_part or not _NAME.fullmatch(name):
            raise NotFound
        body, etag = _file(f"{FOLDERS[folder]}/{name}")
        return page_answer(request, body, etag, TYPES.get(kind, TEXT))


def page_answer(request: Request, body: bytes, etag: str, media_type: str) -> Response:
    """A page or a file of one, or 304 if the request names its entity tag."""
    headers = {**PAGE_HEADERS, "Content-Type": media_type, "ETag": etag}
    if request.names_tag("if-none-match", etag):
        return Response(304, b"", headers)
    return Response(200, body, headers)


def tagged(body: bytes) -> tuple[bytes, str]:
    """The body and its entity tag."""
    return body, f'"{hashlib.sha256(body).hexdigest()[:32]}"'


@cache
def _file(path: str, accent: str | None = None) -> tuple[bytes, str]:
    """The body and entity tag of a file of the package. Raises `NotFound`, which is not cached."""
    try:
        body = read_bytes(path)
    except OSError:
        raise NotFound from None
    if accent:
        body = body.replace(b"<!-- accent -->", _ACCENT.format(accent).encode())
    return tagged(body)
