"""Sites of many pages, built by the programs themselves; the documented command draws and names a card for each page.

An Open Graph reader then finds the image of every page. `CARDBEAT_PAGES=1000` builds larger sites.
"""

import json
import os
import re
import subprocess
from urllib.parse import unquote

import linkpreview
import pytest
from PIL import Image

from tests.artifact.sites.programs import run, write
from tests.kit.artifact import clean_environment
from tests.kit.documentation import DOCS

PAGES = int(os.environ.get("CARDBEAT_PAGES", "60"))
ADDRESS = "https://blog.example.com"
NAME = "My site"
_COMMAND = re.compile(
    r"^python cardbeat\.pyz (cards .*?) +# (.+)$", re.MULTILINE
)


def commands():
    """The documentation's command of each program."""
    return {
        program: line.split()
        for line, program in _COMMAND.findall(DOCS["cards"])
    }


def title_of(number):
    return f'Page {number}: Söhne & Co. <b> "100 %" 東京'


def escaped(text):
    return (
        text.replace("&", "&amp;")
        .replace("<", "&lt;")
        .replace(">", "&gt;")
        .replace('"', "&quot;")
    )


def hugo(folder, _request):
    layout = "<!doctype html><html><head><title>{{ site.Title }}</title></head><body></body></html>\n"
    post = "<!doctype html><html><head>\n<title>{{ .Title }} | {{ site.Title }}</title>\n</head></html>\n"
    pages = {
        f"content/posts/{n}.md": json.dumps({"title": title_of(n)})
        for n in range(PAGES)
    }
    config = json.dumps({"baseURL": f"{ADDRESS}/", "title": NAME})
    write(
        folder,
        {
            "config.json": config,
            "layouts/_default/single.html": post,
            "layouts/index.html": layout,
            **pages,
        },
    )
    run(
        folder,
        "hugo",
        "--quiet",
        "--disableKinds",
        "taxonomy,term,RSS,sitemap,404,section",
    )


def eleventy(folder, request):
    (folder / "node_modules").symlink_to(
        request.getfixturevalue("node_modules")
    )
    layout = f"<!doctype html><html><head><title>{{{{ title }}}} | {NAME}</title></head><body></body></html>\n"
    head = {"layout": "layout.njk"}
    pages = {
        f"posts/{n}.md": f"---json\n{json.dumps({**head, 'title': title_of(n)})}\n---\n"
        for n in range(PAGES)
    }
    front = (
        f"<!doctype html><html><head><title>{NAME}</title></head></html>"
    )
    write(
        folder,
        {"_includes/layout.njk": layout, "index.html": front, **pages},
    )
    run(folder, "node", "node_modules/@11ty/eleventy/cmd.cjs", "--quiet")


def plain(folder, _request):
    page = "<html><head><title>{} | My site</title></head></html>"
    write(
        folder,
        {
            f"posts/{n}.html": page.format(escaped(title_of(n)))
            for n in range(PAGES)
        },
    )
    write(folder, {"index.html": f"<title>{NAME}</title><p>Hello"})


BUILDERS = {"Hugo": hugo, "Eleventy": eleventy, "plain HTML": plain}


@pytest.mark.parametrize("program", BUILDERS)
def test_a_reader_finds_the_card_of_every_page(
    program, request, python, pyz, tmp_path
):
    BUILDERS[program](tmp_path, request)
    command = commands()[program]
    told = []
    for _ in range(2):
        line = [python, pyz, *command, "--json"]
        ran = subprocess.run(
            line,
            cwd=tmp_path,
            env=clean_environment(),
            capture_output=True,
            check=True,
            timeout=500,
        )
        told.append(json.loads(ran.stdout))
    assert [
        [len(one[kind]) for kind in ("drawn", "unchanged", "tagged")]
        for one in told
    ] == [
        [PAGES + 1, 0, PAGES + 1],
        [0, PAGES + 1, 0],
    ]
    source = tmp_path / command[1]
    pages = [
        page
        for page in source.rglob("*.html")
        if "node_modules" not in page.parts
    ]
    cards = {card_of(page, source) for page in pages}
    assert len(cards) == PAGES + 1
    assert {
        card.is_relative_to(tmp_path / command[3]) for card in cards
    } == {True}


def card_of(page, source):
    """The file of the card that a page names, which is whole and has the page's own title."""
    html = page.read_text()
    preview = linkpreview.link_preview(f"{ADDRESS}/post", html)
    path = source / unquote(preview.image.removeprefix(f"{ADDRESS}/"))
    with Image.open(path) as card:
        assert card.format == "PNG"
        assert card.size == (1200, 630)
    number = re.search(r"posts/(\d+)", page.as_posix())
    alt = re.search('og:image:alt" content="(.*?)"', html)[1]
    assert alt == (escaped(title_of(number[1])) if number else NAME)
    return path.resolve()
