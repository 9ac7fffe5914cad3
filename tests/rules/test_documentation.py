"""README and documentation: their links, their blocks of code, and the library that makes HTML of them."""

import ast
import hashlib
import json
import re
import subprocess

import pytest

from cardbeat.heartbeat.alerts.retries import JITTER, SCHEDULE_SECONDS
from cardbeat.pages.documentation import rendered, slug_of
from tests.kit.artifact import ROOT
from tests.kit.documentation import BLOCK, DOCS, FOLDER, PAGES, README

VENDOR = ROOT / "cardbeat" / "vendor"
LINKING = [
    ROOT / "README.md",
    *sorted(FOLDER.glob("*.md")),
    *sorted((ROOT / ".github").glob("*.md")),
]

RUN = """
README-bash README-crontab README-sh api-sh backup-bash backup-sh cards-console cards-json
cards-sh checks-busybox checks-crontab checks-powershell checks-sh checks-shell-script checks-toml
keys-sh keys-toml nodes-ini nodes-nginx nodes-shell options-text recipes-astro
recipes-go-html-template recipes-html recipes-js recipes-liquid recipes-njk recipes-php running-bash
running-console service-bash service-console tour-sh troubleshooting-sh watching-sh watching-yaml
""".split()
"""The blocks of code that tests run, in `pyz`, `crash` and `sites`: a new kind needs a test first."""


def without_code(markdown):
    return re.sub(r"`[^`\n]*`", "", BLOCK.sub("", markdown))


def anchors(markdown):
    """Those that GitHub gives its headings, and that the server gives them."""
    title, _, sections = rendered(markdown, "")
    return {
        slug_of(re.sub("<.*?>", "", title)),
        *(slug for _, slug, _ in sections),
    }


@pytest.mark.parametrize(
    "path", LINKING, ids=lambda path: path.relative_to(ROOT).as_posix()
)
def test_every_link_leads_to_a_file_and_a_heading_that_are_there(path):
    text = without_code(path.read_text(encoding="utf-8"))
    links = re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(
        r'(?:src|href)="([^"]+)"', text
    )
    assert not re.search(r"\]\[", text), (
        "only links of one kind are looked at"
    )
    for link in links:
        if link.startswith("https://"):
            continue
        name, _, anchor = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        assert target.exists(), link
        assert not anchor or anchor in anchors(
            target.read_text(encoding="utf-8")
        ), link


def test_every_file_that_contributors_are_told_of_is_there():
    text = (ROOT / ".github" / "CONTRIBUTING.md").read_text(
        encoding="utf-8"
    )
    files = [
        path.as_posix()
        for folder in ("cardbeat", "tests")
        for path in (ROOT / folder).rglob("*.*")
    ]
    for name in re.findall(r"`([\w./-]+\.(?:py|js|html|txt))`", text):
        assert any(file.endswith(f"/{name}") for file in files), name


def test_the_retry_plan_is_told_as_it_is():
    units = {3600: "h", 60: "min", 1: "s"}
    waits = []
    for seconds in SCHEDULE_SECONDS:
        size = next(size for size in units if seconds % size == 0)
        waits.append(f"{seconds // size} {units[size]}")
    told = f"{', '.join(waits[:-1])} and {waits[-1]}"
    shortest = sum(SCHEDULE_SECONDS) / 3600
    hours = f"{shortest:.0f} to {shortest * (1 + JITTER):.0f} hours"
    alerts = " ".join(PAGES["alerts"].split())
    assert told in alerts
    assert hours in alerts
    assert hours in " ".join(README.split())
    assert told in (ROOT / "cardbeat" / "openapi.json").read_text(
        encoding="utf-8"
    )


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_one_title_no_heading_twice_and_no_raw_html(name):
    text = without_code(PAGES[name])
    assert len(re.findall(r"^# ", text, re.MULTILINE)) == 1
    headings = re.findall(r"^#+ (.*)", text, re.MULTILINE)
    assert sorted(headings) == sorted({*headings})
    assert name == "README" or not re.search(r"<\w", text)


def test_every_block_of_code_is_run_by_a_test():
    found = {
        f"{page}-{language}"
        for page, text in PAGES.items()
        for language, _ in BLOCK.findall(text)
    }
    assert sorted(found) == RUN
    for page, text in PAGES.items():
        assert text.count("\n```") == 2 * len(BLOCK.findall(text)), page


def test_the_list_of_pages_names_each_of_them_and_so_does_the_readme():
    listed = re.findall(
        r"^\| \[.+?\]\(([\w-]+)\.md\) \|", PAGES["index"], re.MULTILINE
    )
    assert sorted(listed) == sorted(DOCS)
    assert {*re.findall(r"cardbeat/docs/([\w-]+)\.md", README)} == {
        *DOCS,
        "README",
    }


MARKDOWN = {
    "A [link](checks.md#a-b).": '<p>A <a href="../docs/checks#a-b">link</a>.</p>\n',
    "[a](README.md) [b](#c)": '<p><a href="../docs">a</a> <a href="#c">b</a></p>\n',
    "![p](files/a.png)": '<p><img loading="lazy" src="../pages/files/a.png" alt="p" /></p>\n',
    "<b onclick=x>": "<p>&lt;b onclick=x&gt;</p>\n",
    "[x](javascript:alert(1))": '<p><a href="#harmful-link">x</a></p>\n',
    '```sh\necho "<&>"\n```': '<pre class="code"><code>echo "&lt;&amp;&gt;"\n</code></pre>\n',
}


@pytest.mark.parametrize(("markdown", "html"), MARKDOWN.items())
def test_markdown_becomes_html(markdown, html):
    _, body, _ = rendered(f"# T\n\n{markdown}", "../")
    assert body == html


def test_cells_of_a_table_name_their_columns():
    _, text, _ = rendered(
        "# T\n\n| A `b` | C |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\n", ""
    )
    assert re.findall(
        r'<td role="cell" data-head="(.*?)">(.)</td>', text
    ) == [*(("A b", "1"), ("C", "2"), ("A b", "3"), ("C", "4"))]


def test_a_change_is_one_short_line_of_the_changelog():
    text = (ROOT / ".github" / "CHANGELOG.md").read_text()
    newest = text.partition("## [2")[2].partition("## [1")[0]
    changes = re.findall(r"^- (.+(?:\n  .+)*)", newest, re.MULTILINE)
    assert changes
    assert [
        change for change in changes if len(change.split()) > 20
    ] == []


SENTENCE = re.compile(
    r"(?:The (?:answer|alert|connection|host's name|receiver)\b|There was no).+\."
)


def test_troubleshooting_has_a_row_for_each_sentence_of_a_failed_alert():
    found = set()
    for path in sorted((ROOT / "cardbeat" / "heartbeat").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(node, ast.Constant)
                and isinstance(node.value, str)
                and SENTENCE.fullmatch(node.value)
            ):
                found.add(node.value)
    assert len(found) > 8
    rows = "\n".join(
        re.findall(r"^\| .+", DOCS["troubleshooting"], re.MULTILINE)
    )
    assert [sentence for sentence in found if sentence not in rows] == []


@pytest.mark.parametrize("library", ["mistune", "webencodings"])
def test_the_library_is_the_published_one_and_nothing_else_is_beside_it(
    library,
):
    folder = VENDOR / library
    record = json.loads((folder / "record.json").read_text())
    tracked = subprocess.run(
        ["git", "ls-files", "."],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    assert {*tracked.stdout.split()} == {
        *record["files"],
        "record.json",
        "__init__.py",
    }
    for name, digest in record["files"].items():
        assert (
            hashlib.sha256((folder / name).read_bytes()).hexdigest()
            == digest
        ), name
    assert record["wheel"].startswith(
        f"{record['package']}-{record['version']}-py"
    )
    licence = " ".join((folder / "LICENSE.txt").read_text().split())
    assert "Redistribution and use in source and binary forms" in licence
