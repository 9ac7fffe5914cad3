"""The documentation as the server answers it."""

import html
import json
import re
from urllib.parse import urljoin

import pytest

from cardbeat.pages.documentation import DocRoutes
from cardbeat.web.message import Request
from cardbeat.web.router import Router
from tests.documentation import DOCS, PAGES
from tests.support import answer_of

PATHS = ["/docs", *(f"/docs/{name}" for name in DOCS)]


@pytest.fixture
def page(app):
    def page(path: str) -> str:
        answer = app("GET", path)
        assert (answer.status, answer.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
        return answer.body.decode()

    return page


@pytest.mark.parametrize("path", PATHS)
def test_a_page_loads_nothing_from_elsewhere_and_all_that_it_links_is_there(app, page, path):
    text = page(path)
    assert text.startswith('<!doctype html>\n<html lang="en">')
    assert text.count("<h1") == 1
    assert not re.search(r"<script>|<style|\sstyle=|\son\w+=|src=\"(?!\.\./|pages/)", text)
    assert "|---|" not in text
    links = {html.unescape(link) for link in re.findall(r'(?:href|src)="([^"]+)"', text)}
    assert len(links) > len(DOCS)
    for link in links:
        if link.startswith("https://"):
            continue
        target, _, anchor = urljoin(path, link).partition("#")
        answer = app("GET", target)
        assert answer.status == 200, link
        assert not anchor or anchor == "main" or f' id="{anchor}"' in answer.body.decode(), link


@pytest.mark.parametrize("base_url", ["http://10.0.0.5:9000", "https://og.example.org"])
def test_commands_have_the_servers_own_address_but_on_the_tour(base_url):
    routes = DocRoutes(json.dumps({**DESCRIPTION, "servers": [{"url": base_url}]}).encode())
    router = Router(routes.routes())
    for path in PATHS:
        text = answer_of(router, Request("GET", path, path)).body.decode()
        assert ("http://127.0.0.1:8080" in text) == (path == "/docs/tour"), path
        assert "https://cards.example.com" not in text or base_url.startswith("http:"), path
    assert (
        f"{base_url}/ping/ID"
        in answer_of(router, Request("GET", "/docs/checks", "/docs/checks")).body.decode()
    )


DESCRIPTION = {"tags": [], "paths": {}, "components": {"responses": {}}}


def test_a_page_lists_its_sections_and_all_pages_and_others_are_404(app, page):
    sections, pages = re.findall(r"<nav class=.*?</nav>", page("/docs/checks"), re.DOTALL)
    assert '<a href="#checks-in-a-file">Checks in a file</a>' in sections
    assert '<a href="../docs/checks" aria-current="page">Checks</a>' in pages
    for name in ("nothing", "README", "cards.md", "", ".."):
        assert app("GET", f"/docs/{name}").status == 404


def test_a_known_page_is_not_sent_again(app):
    first = app("GET", "/docs/api")
    assert first.headers["Cache-Control"] == "no-cache"
    again = app("GET", "/docs/api", headers={"if-none-match": first.headers["ETag"]})
    assert (again.status, again.body) == (304, b"")


def test_the_page_of_the_api_lists_each_endpoint_and_each_error(app, page):
    text = page("/docs/api")
    described = app.json("GET", "/openapi.json")
    for path, item in described["paths"].items():
        for method in item.keys() - {"parameters"}:
            assert f">{method.upper()} {path}</a></h3>" in text
    for answer in described["components"]["responses"].values():
        for code in answer.get("content", {}).get("application/json", {}).get("examples", {}):
            assert f"<code>{code}</code>" in text
    said = " ".join(PAGES["api"].split())
    for words in ("Times are UTC", "412", "If-Match", "cut after 4,000 characters", "Retry-After"):
        assert words in said
