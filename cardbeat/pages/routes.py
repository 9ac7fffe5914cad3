"""GET / and GET /dashboard, and the files that the two pages load."""

import hashlib
import re
from functools import cache

from cardbeat.errors import NotFound
from cardbeat.resources import read_bytes
from cardbeat.web.message import Request, Response
from cardbeat.web.router import Route

TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "woff2": "font/woff2",
}

_NAME = re.compile(r"[a-z0-9-]+\.[a-z0-9]+")

FONTS = ("inter-latin-400.woff2", "inter-latin-600.woff2", "inter-latin-800.woff2")

POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "font-src": "'self'",
    "img-src": "'self' blob: data:",
    "connect-src": "'self'",
    "base-uri": "'none'",
    "form-action": "'none'",
    "frame-ancestors": "'none'",
    "require-trusted-types-for": "'script'",
}

PAGE_HEADERS = {
    "Content-Security-Policy": "; ".join(f"{name} {sources}" for name, sources in POLICY.items()),
    # A card's URL holds a key, so no page may tell another site where its visitor came from.
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    # Asked again each time, so that an upgrade never meets the scripts of the version before.
    "Cache-Control": "no-cache",
}


class PageRoutes:
    """Each file is read when it is first asked for, and then answered from memory."""

    def routes(self) -> list[Route]:
        return [
            Route("GET", "/", self.builder, in_loop=True),
            Route("GET", "/dashboard", self.dashboard, in_loop=True),
            Route("GET", "/pages/{name}", self.file, in_loop=True),
        ]

    def builder(self, request: Request) -> Response:
        return self._answer(request, "index.html")

    def dashboard(self, request: Request) -> Response:
        return self._answer(request, "dashboard.html")

    def file(self, request: Request) -> Response:
        """A script, style, picture or font. The pages are not here: their links are relative to the root."""
        name = request.params["name"]
        if not _NAME.fullmatch(name) or _kind(name) not in TYPES or _kind(name) == "html":
            raise NotFound("There is nothing at this path.")
        return self._answer(request, name)

    def _answer(self, request: Request, name: str) -> Response:
        body, etag = _file(name)
        headers = {**PAGE_HEADERS, "Content-Type": TYPES[_kind(name)], "ETag": etag}
        if request.names_tag("if-none-match", etag):
            return Response(304, b"", headers)
        return Response(200, body, headers)


@cache
def _file(name: str) -> tuple[bytes, str]:
    """The body and entity tag of a file. Raises `NotFound`, which is not remembered."""
    try:
        body = read_bytes(f"fonts/{name}" if name in FONTS else f"pages/{name}")
    except OSError:
        raise NotFound("There is nothing at this path.") from None
    return body, f'"{hashlib.sha256(body).hexdigest()[:32]}"'


def _kind(name: str) -> str:
    return name.rpartition(".")[2]
