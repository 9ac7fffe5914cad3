"""The pages, their files and the documentation, without a socket."""

import html
import re
from pathlib import Path
from urllib.parse import urljoin

import pytest

import cardbeat
from cardbeat.pages.routes import PageRoutes
from cardbeat.web.message import Request, header_lines
from cardbeat.web.router import Router
from tests.kit.documentation import DOCS
from tests.kit.support import answer_of

PAGES = ("/", "/dashboard", "/docs", *(f"/docs/{name}" for name in DOCS))
FOLDER = Path(cardbeat.__file__).parent / "pages"
AS_HTML = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function"
)


def site(base_url="https://cards.example", accent=None, is_open=True):
    """Answers the paths of a server with this URL and accent."""
    router = Router(PageRoutes(base_url, accent, is_open).routes())

    def get(path, method="GET", **headers):
        return answer_of(
            router, Request(method, path, path, headers=headers)
        )

    return get


get = site()


@pytest.mark.parametrize("path", PAGES)
def test_a_page_has_no_inline_code_and_only_relative_links(path):
    answer = get(path)
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    page = answer.body.decode()
    assert page.startswith('<!doctype html>\n<html lang="en">')
    assert not re.search(
        r"<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)|\|---\|", page
    )
    # A page behind a path prefix would miss "/pages/...".
    assert not re.search(r'href="/|src="(?:/|https?:)', page)


def links_of(path):
    page = get(path).body.decode()
    found = re.findall(r'(?:href|src)="([^"]+)"', page)
    return {urljoin(path, html.unescape(link)) for link in found}


def test_all_that_pages_load_and_link_is_there(app):
    waiting = set()
    for path in PAGES:
        waiting |= links_of(path)
    seen = set()
    texts = {}
    while waiting:
        link = waiting.pop()
        if link in seen or link.startswith("https://"):
            continue
        seen.add(link)
        target, _, anchor = link.partition("#")
        if target not in texts:
            answer = app("GET", target)
            assert answer.status == 200, link
            texts[target] = answer.body.decode("latin-1")
        text = texts[target]
        assert not anchor or f' id="{anchor}"' in text, link
        if target.endswith(".js"):
            for other in re.findall(r'from "(\.[\w./-]+)"', text):
                waiting.add(urljoin(target, other))
    assert len(seen) > 100


def test_scripts_never_parse_text_as_html():
    scripts = list(FOLDER.glob("*/*.js"))
    assert len(scripts) > 20
    assert [
        script for script in scripts if AS_HTML.search(script.read_text())
    ] == []


def test_the_builder_names_the_accent_of_the_cards():
    usual = get("/")
    own = site(accent="#16a34a")("/")
    assert (
        b'This server draws in <code id="accent">#16a34a</code>.'
        in own.body
    )
    assert b"This server draws" not in usual.body
    assert own.headers["ETag"] != usual.headers["ETag"]


def test_the_dashboard_offers_no_key_while_registration_is_closed():
    hidden = b'<form id="register" hidden'
    assert hidden in site(is_open=False)("/dashboard").body
    assert hidden not in get("/dashboard").body


FILES = (
    "/pages/shared/style.css",
    "/pages/looks/blog-light.png",
    "/pages/files/Caddyfile",
)


@pytest.mark.parametrize("path", ["/", "/dashboard", "/docs", *FILES])
def test_every_file_forbids_what_it_does_not_need_and_is_not_sent_again(
    path,
):
    first = get(path)
    policy = first.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; ")
    assert "unsafe" not in policy
    for part in (
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
        again = get(path, **{"if-none-match": known})
        assert again.status == 304
        assert again.body == b""
        assert again.headers["ETag"] == etag
    assert get(path, **{"if-none-match": '"other"'}).status == 200


OTHERS = """
    /dashboard/ /index.html /docs/ /docs/nothing /docs/README /docs/cards.md /docs/..
    /pages/shared/ /pages/style.css /pages/shared/none.js /pages/shared/style.css/
    /pages/builder/builder.html /pages/fonts/index.json /pages/fonts/build
    /pages/../routes.py /pages/shared/.. /pages/words/thai.gz /pages/files/none
""".split()


@pytest.mark.parametrize("path", OTHERS)
def test_other_paths_are_not_there(path):
    assert get(path).status == 404


@pytest.mark.parametrize(
    "base_url", ["http://10.0.0.5:9000", "https://og.example.org"]
)
def test_commands_have_the_servers_own_address_but_on_the_tour(base_url):
    get = site(base_url)
    for name in DOCS:
        text = get(f"/docs/{name}").body.decode()
        assert ("http://127.0.0.1:8080" in text) == (name == "tour"), name
        assert (
            "https://cards.example.com" not in text
            or base_url.startswith("http:")
        ), name
    assert f"{base_url}/ping/ID" in get("/docs/checks").body.decode()


def test_a_page_lists_its_sections_and_all_pages():
    page = get("/docs/checks").body.decode()
    sections, pages = re.findall(r"<nav class=.*?</nav>", page, re.DOTALL)
    assert '<a href="#checks-in-a-file">Checks in a file</a>' in sections
    assert (
        '<a href="../docs/checks" aria-current="page">Checks</a>' in pages
    )
