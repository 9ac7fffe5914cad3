"""The pages and their files, without a socket."""

import posixpath
import re
from importlib import resources

import pytest

from cardbeat.pages.routes import PageRoutes
from cardbeat.web.message import Request, Response, header_lines
from cardbeat.web.router import Router
from tests.support import answer_of

PAGES = ("/", "/dashboard")


@pytest.fixture(scope="module")
def router() -> Router:
    return Router(PageRoutes().routes())


@pytest.fixture
def get(router):
    def answer(path: str, method: str = "GET", **headers: str) -> Response:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        return answer_of(router, Request(method, path, path, headers=sent))

    return answer


def linked(text: str) -> set[str]:
    return set(re.findall(r"pages/[\w.-]+/[\w.-]+", text))


@pytest.mark.parametrize("path", PAGES)
def test_a_page_is_html_with_one_heading_and_a_language(get, path):
    answer = get(path)
    assert (answer.status, answer.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    page = answer.body.decode()
    assert page.startswith('<!doctype html>\n<html lang="en">')
    assert "<title>" in page
    assert 'name="viewport"' in page


def test_the_builder_shows_the_accent_of_the_cards(get):
    pages = [get(path) for path in PAGES]
    own = [answer_of(Router(PageRoutes("#16a34a").routes()), Request("GET", path, path)) for path in PAGES]
    assert own[1].body == pages[1].body
    assert own[0].headers["ETag"] != pages[0].headers["ETag"]
    before, html = pages[0].body.decode(), own[0].body.decode()
    assert "This server draws in <code>#16a34a</code>." in html
    assert "This server draws" not in before
    # The pictures of the templates: the light of default, all around the bubble of blog, the bar of article.
    for colour in ("#9fb0ff", "#2c3f9c", "#5a2334", "#a5281d"):
        assert colour in before
        assert colour not in html
    assert "#f8f4ea" in html


@pytest.mark.parametrize("path", PAGES)
def test_everything_a_page_links_is_there_and_typed(get, path):
    for name in linked(get(path).body.decode()):
        answer = get(f"/{name}")
        assert answer.status == 200, name
        assert answer.headers["Content-Type"] != "text/html; charset=utf-8"


@pytest.mark.parametrize("path", PAGES)
def test_a_page_has_no_inline_code_and_nothing_from_elsewhere(get, path):
    page = get(path).body.decode()
    assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)", page)
    # Relative links only: a page behind a path prefix would miss "/pages/...".
    assert not re.search(r'(?:href|src)="(?:/|https?:)', page)


@pytest.mark.parametrize("path", PAGES)
def test_scripts_import_only_files_that_are_there(get, path):
    waiting = {name for name in linked(get(path).body.decode()) if name.endswith(".js")}
    seen = set()
    while waiting:
        name = waiting.pop()
        answer = get(f"/{name}")
        assert answer.status == 200, name
        seen.add(name)
        others = re.findall(r'from "(\.[\w./-]+)"', answer.body.decode())
        waiting |= {posixpath.normpath(f"{posixpath.dirname(name)}/{other}") for other in others} - seen
    assert seen


def test_scripts_never_parse_text_as_html(router):
    folder = resources.files("cardbeat") / "pages"
    groups = [group for group in folder.iterdir() if group.is_dir()]
    scripts = [f"{group.name}/{file.name}" for group in groups for file in group.iterdir() if file.name.endswith(".js")]
    assert len(scripts) > 20
    for name in scripts:
        body = answer_of(router, Request("GET", f"/pages/{name}", f"/pages/{name}")).body.decode()
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", body), (
            name
        )


@pytest.mark.parametrize(
    "path", [*PAGES, "/pages/shared/style.css", "/pages/shared/icon.svg", "/pages/fonts/inter-latin-400.woff2"]
)
def test_every_file_forbids_what_it_does_not_need(get, path):
    answer = get(path)
    headers = answer.headers
    policy = headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    for part in ("script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"):
        assert part in policy
    assert headers["Referrer-Policy"] == "no-referrer"
    assert b"X-Content-Type-Options: nosniff\r\n" in header_lines(answer)


@pytest.mark.parametrize("path", [*PAGES, "/pages/shared/style.css"])
def test_a_known_file_is_not_sent_again(get, path):
    first = get(path)
    assert first.headers["Cache-Control"] == "no-cache"
    etag = first.headers["ETag"]
    for known in (etag, f"W/{etag}", f'"other", {etag}', "*"):
        again = get(path, if_none_match=known)
        assert (again.status, again.body, again.headers["ETag"]) == (304, b"", etag)
    assert get(path, if_none_match='"other"').status == 200


@pytest.mark.parametrize(
    "path",
    [
        *("/dashboard/", "/index.html", "/pages/", "/pages/shared/", "/pages/style.css", "/pages/shared/none.js"),
        *("/pages/builder/builder.html", "/pages/shared/style.css/", "/pages/fonts/index.json", "/pages/fonts/build"),
        *("/pages/routes.py", "/pages/..", "/pages/../routes.py", "/pages/shared/..", "/pages/words/thai.gz"),
    ],
)
def test_other_paths_are_not_there(get, path):
    assert get(path).status == 404


def test_pages_are_read_only(get):
    answer = get("/", "POST")
    assert (answer.status, answer.headers["Allow"]) == (405, "GET, HEAD")


def test_the_server_answers_pages_from_its_own_loop(router):
    assert router.find(Request("GET", "/", "/")).in_loop
