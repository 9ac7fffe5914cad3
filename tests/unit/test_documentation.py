"""README and documentation: their links, their blocks of code, and the library that makes HTML of them."""

import hashlib
import json
import re
import subprocess

import pytest

from cardbeat.pages.markdown import rendered, slug_of
from tests.artifact import ROOT
from tests.documentation import BLOCK, DOCS, FOLDER, PAGES, README

VENDORED = ROOT / "cardbeat" / "vendor" / "mistune"
LINKING = [ROOT / "README.md", *sorted(FOLDER.glob("*.md")), *sorted((ROOT / ".github").glob("*.md"))]

RUN_BY = {
    "README": {"sh": "pyz/test_first_minute.py", "crontab": "pyz/test_docs.py"},
    "tour": {"sh": "pyz/test_docs.py"},
    "cards": {"sh": "pyz/test_docs.py", "console": "sites/test_built_sites.py", "json": "pyz/test_docs.py"},
    "recipes": dict.fromkeys(
        ("html", "go-html-template", "njk", "astro", "liquid", "php", "js"), "sites/test_recipes.py"
    ),
    "checks": dict.fromkeys(("sh", "shell-script", "toml", "crontab"), "pyz/test_docs.py"),
    "troubleshooting": {"sh": "pyz/test_docs.py"},
    "keys": {"sh": "pyz/test_docs.py", "toml": "pyz/test_docs.py"},
    "api": {"sh": "pyz/test_docs.py"},
    "options": {"text": "pyz/test_docs.py"},
    "running": dict.fromkeys(
        ("console", "caddyfile", "nginx", "ini", "bash", "dockerfile", "yaml"), "pyz/test_docs.py"
    ),
    "watching": {"sh": "pyz/test_docs.py", "yaml": "pyz/test_prometheus.py"},
    "backup": {"sh": "pyz/test_docs.py", "bash": "pyz/test_docs.py"},
    "nodes": dict.fromkeys(("shell", "nginx", "ini"), "pyz/test_more_machines.py"),
}
"""Which test runs the blocks of code of each page, by their language: a new kind of block needs a test first."""


def without_code(markdown: str) -> str:
    return re.sub(r"`[^`\n]*`", "", BLOCK.sub("", markdown))


def anchors(markdown: str) -> set[str]:
    """Those that GitHub gives its headings, and that the server gives them."""
    text = rendered(markdown, "")
    return {slug_of(re.sub("<.*?>", "", text.title)), *(section.slug for section in text.sections)}


@pytest.mark.parametrize("path", LINKING, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_link_leads_to_a_file_and_a_heading_that_are_there(path):
    text = without_code(path.read_text(encoding="utf-8"))
    links = re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r'(?:src|href)="([^"]+)"', text)
    assert not re.search(r"\]\[", text), "only links of one kind are looked at"
    for link in links:
        if link.startswith("https://"):
            continue
        name, _, anchor = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        assert target.exists(), link
        assert not anchor or anchor in anchors(target.read_text(encoding="utf-8")), link


def test_pages_link_only_what_is_inside_the_artifact_too():
    for name, text in PAGES.items():
        if name != "README":
            inside = re.findall(r"\]\((?!https://|#)([^)#]+)", without_code(text))
            assert all(re.fullmatch(r"[\w-]+\.md|files/[\w.-]+", link) for link in inside), name


def test_the_readme_is_short_and_the_documentation_has_few_pages():
    assert len(README.splitlines()) <= 250
    assert len(list(FOLDER.glob("*.md"))) <= 15


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_one_title_and_no_raw_html(name):
    text = without_code(PAGES[name])
    assert len(re.findall(r"^# ", text, re.MULTILINE)) == 1
    assert name == "README" or not re.search(r"<\w", text)


def test_every_block_of_code_is_run_by_a_test():
    found = {name: {language for language, _ in BLOCK.findall(text)} for name, text in PAGES.items()}
    assert {name: languages for name, languages in found.items() if languages} == {
        name: {*languages} for name, languages in RUN_BY.items()
    }
    assert sum(text.count("\n```") for text in PAGES.values()) == 2 * sum(
        len(BLOCK.findall(text)) for text in PAGES.values()
    )
    assert all((ROOT / "tests" / test).is_file() for tests in RUN_BY.values() for test in tests.values())


def test_the_list_of_pages_names_each_of_them_and_so_does_the_readme():
    listed = re.findall(r"^\| \[.+?\]\(([\w-]+)\.md\) \|", PAGES["index"], re.MULTILINE)
    assert sorted(listed) == sorted(DOCS)
    assert {*re.findall(r"cardbeat/docs/([\w-]+)\.md", README)} == {*DOCS, "README"}


@pytest.mark.parametrize(
    ("markdown", "html"),
    [
        ("# T\n\nA [link](checks.md#a-b).", '<p>A <a href="../docs/checks#a-b">link</a>.</p>\n'),
        ("# T\n\n[a](README.md) [b](#c)", '<p><a href="../docs">a</a> <a href="#c">b</a></p>\n'),
        (
            "# T\n\n![p](files/a.png)",
            '<p><img loading="lazy" src="../pages/files/a.png" alt="p" /></p>\n',
        ),
        ("# T\n\n<b onclick=x>", "<p>&lt;b onclick=x&gt;</p>\n"),
        ("# T\n\n[x](javascript:alert(1))", '<p><a href="#harmful-link">x</a></p>\n'),
        ('# T\n\n```sh\necho "<&>"\n```', '<pre class="code"><code>echo "&lt;&amp;&gt;"\n</code></pre>\n'),
        (
            "# T\n\n## `GET /a/{b}` & c",
            '<h2 id="get-ab--c"><a href="#get-ab--c"><code>GET /a/{b}</code> &amp; c</a></h2>\n',
        ),
    ],
)
def test_markdown_becomes_html(markdown, html):
    assert rendered(markdown, "../").body == html


def test_equal_headings_get_anchors_of_their_own_as_on_github():
    text = rendered("# T\n\n## A\n\n## A\n\n### A-1\n", "")
    assert [section.slug for section in text.sections] == ["a", "a-1", "a-1-1"]


def test_the_library_is_the_published_one_and_nothing_else_is_beside_it():
    record = json.loads((VENDORED / "record.json").read_text())
    tracked = subprocess.run(["git", "ls-files", "."], cwd=VENDORED, capture_output=True, text=True, check=True)
    assert {*tracked.stdout.split()} == {*record["files"], "record.json", "__init__.py"}
    for name, digest in record["files"].items():
        assert hashlib.sha256((VENDORED / name).read_bytes()).hexdigest() == digest, name
    assert record["wheel"] == f"{record['package']}-{record['version']}-py3-none-any.whl"
    assert "Redistribution and use in source and binary forms" in (VENDORED / "LICENSE.txt").read_text()
