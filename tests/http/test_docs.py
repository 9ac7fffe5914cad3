"""The documentation as the server answers it."""

import html
import json
import re
from urllib.parse import urljoin

import pytest

from tests.documentation import DOCS, PAGES

PATHS = ["/docs", *(f"/docs/{name}" for name in DOCS)]


@pytest.fixture
def page(app):
    def page(path: str) -> str:
        answer = app("GET", path)
        assert (answer.status, answer.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
        return answer.body.decode()

    return page


@pytest.mark.parametrize("path", PATHS)
def test_a_page_is_whole_without_scripts_and_loads_nothing_from_elsewhere(page, path):
    text = page(path)
    assert text.startswith('<!doctype html>\n<html lang="en">')
    assert text.count("<h1") == 1
    assert not re.search(r"<script|<style|\sstyle=|\son\w+=", text)
    assert not re.search(r'src="(?!\.\./|pages/)', text)
    assert "|---|" not in text


@pytest.mark.parametrize("path", PATHS)
def test_all_that_a_page_links_is_there(app, page, path):
    text = page(path)
    links = {html.unescape(link) for link in re.findall(r'(?:href|src)="([^"]+)"', text)}
    assert len(links) > len(DOCS)
    for link in links:
        if link.startswith("https://"):
            continue
        target, _, anchor = urljoin(path, link).partition("#")
        answer = app("GET", target)
        assert answer.status == 200, link
        assert not anchor or anchor == "main" or f' id="{anchor}"' in answer.body.decode(), link


def test_a_page_has_a_table_of_its_contents_and_the_list_of_all_pages(page):
    text = page("/docs/checks")
    sections, pages = re.findall(r"<nav class=.*?</nav>", text, re.DOTALL)
    assert '<a href="#checks-in-a-file">Checks in a file</a>' in sections
    assert '<a href="../docs/checks" aria-current="page">Checks</a>' in pages
    assert pages.count("<a ") == len(DOCS)


@pytest.mark.parametrize(
    "path", ["/docs/nothing", "/docs/README", "/docs/index", "/docs/cards.md", "/docs/", "/docs/.."]
)
def test_other_names_are_refused_as_everywhere(app, path):
    answer = app("GET", path)
    assert (answer.status, json.loads(answer.body)["code"]) == (404, "not_found")


@pytest.mark.parametrize("path", ["/docs", "/docs/api"])
def test_a_known_page_is_not_sent_again(app, path):
    first = app("GET", path)
    assert first.headers["Cache-Control"] == "no-cache"
    again = app("GET", path, headers={"if-none-match": first.headers["ETag"]})
    assert (again.status, again.body) == (304, b"")


def test_the_page_of_the_api_lists_each_endpoint_and_each_error(app, page):
    text = page("/docs/api")
    described = app.json("GET", "/openapi.json")
    for path, item in described["paths"].items():
        for method in item.keys() - {"parameters"}:
            assert f">{method.upper()} {path}</a></h3>" in text
    for answer in described["components"]["responses"].values():
        for code in answer["content"]["application/json"]["examples"]:
            assert f"<code>{code}</code>" in text


def test_the_api_says_what_people_stumble_over():
    said = " ".join(PAGES["api"].split())
    for words in ("Times are UTC", "412", "If-Match", "cut after 4,000 characters", "Retry-After"):
        assert words in said
