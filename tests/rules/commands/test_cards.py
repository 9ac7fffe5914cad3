"""The command `cards`: what it draws, skips, tags, removes and refuses."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from cardbeat.cards.drawing.render import Renderer
from cardbeat.cards.painter import Painter
from cardbeat.cards.request import Card
from cardbeat.host.system import UNSHAPED
from cardbeat.site.workers import FEW, draw
from tests.kit.artifact import ROOT, clean_environment
from tests.kit.fonts import BASIC, FONTS
from tests.kit.support import wait_until
from tests.kit.systems import LINKS, PIPES, STOPS, WINDOWS

PAGE = "<!doctype html>\n<html><head>\n<title>{} | My site</title>\n</head><body></body></html>\n"
OWN_IMAGE = "<meta property=og:image content={}><title>A"
REDIRECT = "<meta http-equiv=refresh content='0; url=/'>"
OUT = ("site", "--output", "out")
TAG = (
    "site",
    "--output",
    "site/cards",
    "--write-tags",
    "--base-url",
    "https://x.example",
)


@pytest.fixture
def cards(run):
    """Runs `cards`; its summary with numbers of what was done, the status and the lines on stderr.

    What is expected of these is compared.
    """

    def run_command(*argv, **expected):
        ran = run("cards", *argv, "--json")
        told = json.loads(ran.out or "{}")
        for kind in ("drawn", "unchanged", "tagged", "failed"):
            told[kind] = len(told[kind])
        told |= {"status": ran.status, "stderr": ran.err.splitlines()}
        assert {name: told[name] for name in expected} == expected
        return told

    return run_command


@pytest.fixture(autouse=True)
def _inside(run):
    """Commands and tests are in a folder of the test."""


def write(folder="site", **pages):
    """Pages by their names, with their titles or whole; __ stands for a slash."""
    for name, text in pages.items():
        path = Path(folder, name.replace("__", "/") + ".html")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(
            (text if "<" in text else PAGE.format(text)).encode()
        )


def write_lines(*lines):
    texts = [
        one if isinstance(one, str) else json.dumps(one) for one in lines
    ]
    Path("list.jsonl").write_text("\n".join(texts))


def files(folder="out"):
    paths = Path(folder).rglob("*")
    return {
        path.relative_to(folder).as_posix()
        for path in paths
        if path.is_file()
    }


def shows(file, **fields):
    """Whether a file is the card of these fields. Its seal is no part of the picture."""
    Path("one.png").write_bytes(
        Renderer(FONTS).render(Card(**fields)).png
    )
    with Image.open(file) as first, Image.open("one.png") as second:
        return first.tobytes() == second.tobytes()


def test_each_page_has_a_card_of_what_it_says(cards):
    more = (
        "<meta name=author content=Ada><meta name=description content=B>"
    )
    japanese = f"<html lang=ja><title>今日 | My site</title>{more}"
    write(index="Front", c="C", a__b__index=japanese)
    argv = "--base-url https://blog.example:8000/x --template blog --theme light"
    cards(*OUT, *argv.split(), status=0, stderr=[], drawn=3, failed=0)
    assert files() == {"index.png", "a/b.png", "c.png"}
    said = {
        "title": "今日",
        "description": "B",
        "lang": "ja",
        "author": "Ada",
    }
    look = {"template": "blog", "theme": "light"}
    assert shows("out/a/b.png", domain="blog.example", **said, **look)


WRONG_LINES = [
    ("{", "not a JSON object"),
    ("[" * 50_000, "not a JSON object"),
    ({"title": "A"}, "must end with .png"),
    ({"title": 1, "output": "a.png"}, "title must be a text"),
    ({"title": "A", "theme": "pink", "output": "c.png"}, "dark, light"),
    ({"title": "A", "output": "../a.png"}, "inside the folder"),
    ({"title": "A", "output": "./X/a.PNG"}, "line 1 too"),
]


def test_lines_give_cards_and_what_is_wrong_with_others_is_told(cards):
    shown = {"title": "A", "template": "article"}
    good = {**shown, "output": "x/a.png", "more": 1}
    write_lines(good, *(line for line, _ in WRONG_LINES), "")
    argv = ("list.jsonl", "--output", "out", "--theme", "light")
    told = cards(*argv, status=1, drawn=1, failed=len(WRONG_LINES))
    for sentence, (_, words) in zip(
        told["stderr"], WRONG_LINES, strict=True
    ):
        assert words in sentence
        assert len(sentence) < 300
    assert files() == {"x/a.png"}
    assert shows("out/x/a.png", theme="light", **shown)


def test_a_second_run_draws_only_what_is_new_or_looks_otherwise(cards):
    write(a="A", b="B", c="C", d="D")
    cards(*OUT, drawn=4)
    before = Path("out/d.png").stat().st_mtime_ns
    write(a="another")
    Path("out/b.png").unlink()
    cards(*OUT, drawn=2, unchanged=2)
    assert Path("out/d.png").stat().st_mtime_ns == before
    Path("out").rename("moved")
    moved = ("site", "--output", "moved")
    cards(*moved, drawn=0)
    for look in (("--theme", "light"), ("--accent", "#16a34a")):
        cards(*moved, *look, drawn=4)
        cards(*moved, *look, drawn=0)


@PIPES
def test_the_users_own_files_stay_and_pages_name_them(cards):
    write(about="About", front="Front", pipe="Pipe", large="Large")
    folder = Path("site/cards")
    folder.mkdir()
    Image.new("RGB", (1200, 630)).save(folder / "about.png")
    (folder / "large.png").write_bytes(bytes(2**20 + 1))
    os.mkfifo(folder / "pipe.png")
    mine = [folder / "about.png", folder / "large.png"]
    before = [*map(Path.read_bytes, mine)]
    replaced = ["about.png", "large.png", "pipe.png"]
    done = {"status": 0, "drawn": 1, "unchanged": 3, "tagged": 4}
    cards(*TAG, replaced=replaced, **done)
    assert [*map(Path.read_bytes, mine)] == before
    assert (folder / "pipe.png").is_fifo()


def edit(page, old, new):
    path = Path(f"site/{page}.html")
    path.write_text(path.read_text().replace(old, new))


def test_a_card_whose_page_is_gone_is_told_unless_a_page_names_it(cards):
    """As after a page was renamed, lost its title, moved or was copied. No picture is removed."""
    write(
        moved="<title>M</title>",
        untitled="<title>U",
        gone__index="G",
        **{"old é": "O"},
    )
    cards(*TAG, tagged=4)
    old = Path("site/old é.html").rename("site/new.html").read_text()
    Path("site/gone/index.html").unlink()
    Image.new("RGB", (1200, 630)).save("site/cards/own.png")
    edit("untitled", "<title>", "")
    edit("moved", "<title>", f"{REDIRECT}<title>")
    write(
        cdn=old.replace("x.example", "cdn.x"),
        own=OWN_IMAGE.format("https://x.example/own.png"),
    )
    before = files("site/cards")
    other = ["cdn.html", "new.html"]
    cards(*TAG, status=0, unused=["gone.png"], tagged=0, other_card=other)
    assert before < files("site/cards")
    Path("site/long.html").write_bytes(bytes(32 * 2**20 + 1))
    # A run that failed in part does not know.
    cards(*TAG, unused=[])


def contents(folder):
    paths = [path for path in Path(folder).rglob("*") if path.is_file()]
    return {
        path: (path.read_bytes(), path.stat().st_mtime_ns)
        for path in paths
    }


TAG_LINE = re.compile(
    rb'\r?\n<meta (?:property="og:|name="twitter:)[^\r\n]*'
)


def test_tags_are_written_once_and_name_each_card(cards):
    page = PAGE.format("A &amp; B").replace("\n", "\r\n")
    write(
        index="Front",
        **{"é #1__a": page},
        no="<head></head>",
        own=OWN_IMAGE.format("/own.png"),
    )
    Path("site/index.html").chmod(0o640)
    before = contents("site")
    argv = [
        *TAG[:2],
        "site/my cards",
        *TAG[3:5],
        "https://x.example/blog/",
    ]
    cards(*argv, status=0, drawn=3, tagged=2, without_title=["no.html"])
    url = "https://x.example/blog/my%20cards/%C3%A9%20%231/a.png"
    tagged = Path("site/é #1/a.html").read_bytes().decode()
    assert f'\r\n<meta property="og:image" content="{url}">\r\n' in tagged
    for path, (html, _) in before.items():
        assert TAG_LINE.sub(b"", path.read_bytes()) == html
    assert (
        WINDOWS or Path("site/index.html").stat().st_mode & 0o777 == 0o640
    )
    after = contents("site")
    cards(*argv, drawn=0, tagged=0, unused=[])
    assert contents("site") == after


def test_what_networks_will_not_see_is_told_and_no_failure(cards, run):
    small = OWN_IMAGE.format("https://x.example/cards/small.png")
    write(
        empty_image=OWN_IMAGE.format("''"),
        small=f"<meta name=twitter:card content=summary>{small}",
        moved=REDIRECT + OWN_IMAGE.format("own.png"),
    )
    told = cards(*TAG, status=0, relative_image=[])
    assert told["empty_image"] == ["empty_image.html"]
    assert told["twitter_card"] == ["small.html"]
    printed = run("cards", *TAG).out.splitlines()
    assert "empty_image: 1: empty_image.html" in printed


@LINKS
def test_links_hidden_files_and_the_folder_of_cards_are_not_read(cards):
    write("elsewhere", secret="no")
    write(a="A", **{".hidden__b": "no", ".c": "no", "cards__d": "no"})
    Path("site/e.txt").write_text(PAGE)
    Path("site/link").symlink_to("../elsewhere")
    Path("site/link.html").symlink_to("../elsewhere/secret.html")
    assert cards(*TAG[:3])["status"] == 0
    assert files("site/cards") == {"a.png", "d.html"}


@pytest.mark.parametrize("source", ["none", "empty", "empty.jsonl"])
def test_a_source_without_pages_is_one_line_and_status_1_and_removes_nothing(
    cards, source
):
    Path("empty").mkdir()
    Path("empty.jsonl").write_text("\n")
    write(a="A")
    cards(*OUT)
    told = cards(source, "--output", "out", status=1, failed=1)
    assert len(told["stderr"]) == 1
    assert files() == {"a.png"}


X = " --write-tags --base-url https://x.example"
REFUSED = {
    "site": "--output",
    "site --output out --theme pink": "dark, light",
    "site --output .": "of their own",
    "site --output site/c --write-tags": "--base-url",
    f"site --output out{X}": "of their own",
    f"list.jsonl --output out{X}": "folder",
    "site --output list.jsonl/x": "can't write",
}


@pytest.mark.parametrize("argv", REFUSED)
def test_wrong_options_are_one_line_and_status_2(run, argv):
    write(a="A")
    write_lines({"title": "A", "output": "a.png"})
    assert REFUSED[argv] in run("cards", *argv.split()).refused()


def test_what_fails_for_one_page_is_told_and_the_others_are_done(cards):
    page = b"<!-- \x1b$B\x1b(B --><head><meta charset=iso-2022-jp><title>A</title></head>"
    write(b="B", c="<title>&#" + "9" * 5000 + ";</title>")
    Path("site/a.html").write_bytes(page)
    Path("site/long.html").write_bytes(bytes(32 * 2**20 + 1))
    told = cards(*TAG, status=1, drawn=3, tagged=2)
    unread, untagged = told["stderr"]
    assert unread.endswith("long.html: it is longer than 32 MiB")
    assert "has no place" in untagged
    assert Path("site/a.html").read_bytes() == page


def test_what_can_not_be_shaped_here_is_told(cards, monkeypatch):
    write(a="<title>ټول ډېر</title>", b="<title>fine</title>")
    renderer = Renderer(BASIC)
    monkeypatch.setattr(
        Painter, "draw", lambda _, card: renderer.render(card)
    )
    assert [cards(*OUT)["stderr"] for _ in range(2)] == [
        [f"cardbeat: {UNSHAPED}"],
        [],
    ]


def test_a_card_that_cannot_be_drawn_costs_no_other_one():
    cards = {
        f"{number}": Card(f"Page {number}") for number in range(2 * FEW)
    }
    cards["7"] = Card("A", template="none")
    drawn = dict(draw(cards, None))
    assert drawn.keys() == cards.keys()
    assert re.fullmatch("drawing failed: .+", drawn.pop("7"))
    assert not [it for it in drawn.values() if isinstance(it, str)]


MANY = 600
"""Pages whose cards take so long that a signal comes before they are drawn, on a busy machine too."""


def group_is_gone(group):
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return True
    return False


def stopped(number):
    """The status and the stderr of `cards` that got a signal when some cards were there."""
    command = [sys.executable, "-m", "cardbeat", "cards", *OUT]
    environment = clean_environment(PYTHONPATH=str(ROOT))
    options = {
        "stderr": subprocess.PIPE,
        "text": True,
        "start_new_session": True,
    }
    with subprocess.Popen(command, env=environment, **options) as process:
        wait_until(lambda: len([*Path().glob("out/*.png")]) > 8)
        process.send_signal(number)
        _, told = process.communicate(timeout=60)
    wait_until(lambda: group_is_gone(process.pid))
    return process.returncode, told


@STOPS
@pytest.mark.parametrize(
    "number", [signal.Signals.SIGTERM, signal.Signals.SIGKILL]
)
def test_a_stop_ends_all_processes_and_leaves_whole_files(cards, number):
    write(**{f"{n}__index": f"Page {n}" for n in range(MANY)})
    status, told = stopped(number)
    drawn = [name for name in files() if name.endswith(".png")]
    if number == signal.SIGTERM:
        assert status == 130
        assert told.count("\n") == 1
        assert "stopped" in told
        assert {*drawn} == files()
    for name in drawn:
        with Image.open(f"out/{name}") as image:
            image.load()
    assert 8 < len(drawn) < MANY
    for page in Path("site").iterdir():
        if f"{page.name}.png" not in drawn:
            (page / "index.html").unlink()
    cards(*OUT, drawn=0, unchanged=len(drawn))


def test_only_a_terminal_gets_a_bar_which_goes_away(
    cards, run, monkeypatch
):
    write(a="A", b="B")
    assert cards(*OUT)["stderr"] == []
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    shown = run("cards", "site", "--output", "again").err
    assert f"[{'#' * 20}{' ' * 20}] 1 of 2\r" in shown
    assert shown.endswith(" \r")
