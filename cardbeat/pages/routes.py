"""The endpoints of the pages, of the files that they load, and `GET /openapi.json`."""

import hashlib
import json
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
for _name in (
    "access",
    "builder",
    "dashboard",
    "docs",
    "editor",
    "looks",
    "shared",
):
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
_REGISTER = '<form id="register"'


class PageRoutes:
    """Answers each file from memory, after reading it once.

    The builder shows the cards' accent, and the dashboard offers keys if registration `is_open`.
    """

    def __init__(
        self,
        base_url: str,
        accent: str | None = None,
        is_open: bool = True,
    ) -> None:
        self._changes: list[tuple[str, str]] = []
        if accent:
            shown = _ACCENT.format(accent)
            self._changes.append(("<!-- accent -->", shown))
        if not is_open:
            self._changes.append((_REGISTER, f"{_REGISTER} hidden"))
        url = json.dumps(base_url).encode()
        described = read_bytes("openapi.json").replace(
            b'"http://127.0.0.1:8080"', url, 1
        )
        self._description = Response(
            200, described, {"Content-Type": "application/json"}
        )
        self._doc = cache(partial(_doc, base_url))

    def routes(self) -> list[Route]:
        return [
            Route(
                "GET", "/", partial(self.page, "builder"), in_loop=True
            ),
            Route(
                "GET",
                "/dashboard",
                partial(self.page, "dashboard"),
                in_loop=True,
            ),
            Route(
                "GET", "/pages/{folder}/{name}", self.file, in_loop=True
            ),
            Route(
                "GET",
                "/openapi.json",
                lambda _: self._description,
                in_loop=True,
            ),
            # A thread makes a page of the documentation: that takes up to 0.1 s.
            Route("GET", "/docs", self.doc),
            Route("GET", "/docs/{page}", self.doc),
        ]

    def page(self, name: str, request: Request) -> Response:
        page = _file(f"pages/{name}/{name}.html", *self._changes)
        return _unless_known(request, page)

    def file(self, request: Request) -> Response:
        """A script, style, picture or font, or a file that the documentation links."""
        folder = request.params["folder"]
        name = request.params["name"]
        is_part = folder == "files" or name.rpartition(".")[2] in PARTS
        if (
            folder not in FOLDERS
            or not is_part
            or not _NAME.fullmatch(name)
        ):
            raise NotFound
        return _unless_known(request, _file(f"{FOLDERS[folder]}/{name}"))

    def doc(self, request: Request) -> Response:
        return _unless_known(
            request, self._doc(request.params.get("page", ""))
        )


def _unless_known(request: Request, page: Response) -> Response:
    """A page or a file of one, or 304 if the request names its entity tag."""
    if request.names_tag("if-none-match", page.headers["ETag"]):
        return Response(304, b"", page.headers)
    return page


def _doc(base_url: str, name: str) -> Response:
    """A page of the documentation; that of the list has no name. Raises `NotFound`."""
    from cardbeat.pages.documentation import page_of  # noqa: PLC0415 - not at the start

    return _page(page_of(name, base_url), TYPES["html"])


@cache
def _file(path: str, *changes: tuple[str, str]) -> Response:
    """A file of the package, with changed texts. Raises `NotFound`, which is not cached."""
    try:
        body = read_bytes(path)
    except OSError:
        raise NotFound from None
    for old, new in changes:
        body = body.replace(old.encode(), new.encode())
    return _page(body, TYPES.get(path.rpartition(".")[2], TEXT))


def _page(body: bytes, media_type: str) -> Response:
    etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    return Response(
        200,
        body,
        {**PAGE_HEADERS, "Content-Type": media_type, "ETag": etag},
    )
