"""The pages and their files, without a socket."""

import posixpath
import re
from pathlib import Path

import pytest

import cardbeat
from cardbeat.pages.routes import PageRoutes
from cardbeat.web.message import Request, Response, header_lines
from cardbeat.web.router import Router
from tests.support import answer_of

PAGES = ("/", "/dashboard")
STYLE = "/pages/shared/style.css"
FOLDER = Path(cardbeat.__file__).parent / "pages"
AS_HTML = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function"
)


def get(path: str, method: str = "GET", accent: str | None = None, **headers: str) -> Response:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    router = Router(PageRoutes(accent).routes())
    return answer_of(router, Request(method, path, path, headers=sent))


@pytest.mark.parametrize("path", PAGES)
def test_a_page_has_no_inline_code_and_all_that_it_loads_is_there(path):
    answer = get(path)
    assert (answer.status, answer.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    page = answer.body.decode()
    assert page.startswith('<!doctype html>\n<html lang="en">')
    assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)", page)
    # Relative links only: a page behind a path prefix would miss "/pages/...".
    assert not re.search(r'(?:href|src)="(?:/|https?:)', page)
    waiting = set(re.findall(r"pages/[\w.-]+/[\w.-]+", page))
    seen = set()
    while waiting:
        name = waiting.pop()
        answer = get(f"/{name}")
        assert answer.status == 200, name
        assert not answer.headers["Content-Type"].startswith("text/html"), name
        seen.add(name)
        if name.endswith(".js"):
            imported = re.findall(r'from "(\.[\w./-]+)"', answer.body.decode())
            waiting |= {
                posixpath.normpath(f"{posixpath.dirname(name)}/{other}") for other in imported
            } - seen
    assert len(seen) > 10


def test_scripts_never_parse_text_as_html():
    scripts = list(FOLDER.glob("*/*.js"))
    assert len(scripts) > 20
    assert [script for script in scripts if AS_HTML.search(script.read_text())] == []


def test_the_builder_names_the_accent_of_the_cards():
    usual, own = get("/"), get("/", accent="#16a34a")
    assert b'This server draws in <code id="accent">#16a34a</code>.' in own.body
    assert b"This server draws" not in usual.body
    assert own.headers["ETag"] != usual.headers["ETag"]
    assert get("/dashboard", accent="#16a34a").body == get("/dashboard").body


@pytest.mark.parametrize(
    "path", [*PAGES, STYLE, "/pages/looks/blog-light.png", "/pages/files/Caddyfile"]
)
def test_every_file_forbids_what_it_does_not_need_and_is_not_sent_again(path):
    first = get(path)
    policy = first.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    for part in (
        "script-src 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
        "form-action 'none'",
    ):
        assert part in policy
    assert first.headers["Referrer-Policy"] == "no-referrer"
    assert b"X-Content-Type-Options: nosniff\r\n" in header_lines(first)
    assert first.headers["Cache-Control"] == "no-cache"
    etag = first.headers["ETag"]
    for known in (etag, f"W/{etag}", f'"other", {etag}', "*"):
        again = get(path, if_none_match=known)
        assert (again.status, again.body, again.headers["ETag"]) == (304, b"", etag)
    assert get(path, if_none_match='"other"').status == 200


@pytest.mark.parametrize(
    "path",
    [
        *(
            "/dashboard/",
            "/index.html",
            "/pages/",
            "/pages/shared/",
            "/pages/style.css",
            "/pages/shared/none.js",
        ),
        *(
            "/pages/builder/builder.html",
            f"{STYLE}/",
            "/pages/fonts/index.json",
            "/pages/fonts/build",
        ),
        *(
            "/pages/routes.py",
            "/pages/..",
            "/pages/../routes.py",
            "/pages/shared/..",
            "/pages/words/thai.gz",
        ),
        *("/pages/files/..", "/pages/files/none", "/pages/looks/none.png"),
    ],
)
def test_other_paths_are_not_there(path):
    assert get(path).status == 404


def test_pages_are_read_only_and_come_from_the_loop():
    answer = get("/", "POST")
    assert (answer.status, answer.headers["Allow"]) == (405, "GET, HEAD")
    assert Router(PageRoutes().routes()).find(Request("GET", "/", "/")).in_loop
