"""The command `cards`: what it draws, skips, tags, removes and refuses."""

import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, features

from cardbeat.cards.drawing.render import Renderer
from cardbeat.cli import main
from cardbeat.commands import cards
from cardbeat.host.system import UNSHAPED
from cardbeat.site import folder, workers
from cardbeat.typeset.faces.fonts import Fonts
from tests.artifact import ROOT, clean_environment
from tests.support import wait_until
from tests.systems import IN_USE, WINDOWS

Run = Callable[..., dict[str, Any]]
PAGE = "<!doctype html>\n<html><head>\n<title>{} | My site</title>\n</head><body></body></html>\n"


@pytest.fixture(autouse=True)
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the test, in which commands run."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs `cards`; gives its status, the lines on stderr, and its summary."""

    def run_command(*argv: str) -> dict[str, Any]:
        capsys.readouterr()
        status = main(["cards", *argv, "--json"])
        out, err = capsys.readouterr()
        return {"status": status, "stderr": err.splitlines(), **json.loads(out or "{}")}

    return run_command


def write(pages: dict[str, str], folder: str = "site") -> None:
    for path, html in pages.items():
        Path(folder, path).parent.mkdir(parents=True, exist_ok=True)
        Path(folder, path).write_bytes(html.encode())


def write_lines(*lines: object) -> None:
    Path("list.jsonl").write_text("".join(f"{one if isinstance(one, str) else json.dumps(one)}\n" for one in lines))


def pngs(folder: str = "out") -> set[str]:
    found = {path.relative_to(folder).as_posix() for path in Path(folder).rglob("*") if path.is_file()}
    return found - {".cardbeat.json"}


def test_each_page_of_a_site_has_a_card(run: Run) -> None:
    write({"index.html": PAGE.format("Front"), "a/b/index.html": PAGE.format("A"), "404.html": PAGE.format("None")})
    told = run("site", "--output", "out")
    assert (told["status"], told["stderr"], told["drawn"], told["failed"]) == (0, [], 3, 0)
    assert pngs() == {"index.png", "a/b.png", "404.png"}
    for name in pngs():
        with Image.open(Path("out", name)) as image:
            image.load()
            assert image.size == (1200, 630)


def test_a_card_is_what_the_command_card_draws(run: Run) -> None:
    write({"a.html": '<title>A</title><meta name=author content=Ada><meta name="description" content="B">'})
    run(
        "site", "--output", "out", "--base-url", "https://blog.example:8000/x", "--template", "blog", "--theme", "light"
    )
    texts = ("--title", "A", "--author", "Ada", "--description", "B", "--domain", "blog.example")
    assert main(["card", *texts, "--template", "blog", "--theme", "light", "--output", "one.png"]) == 0
    assert Path("out/a.png").read_bytes() == Path("one.png").read_bytes()


def test_lines_give_the_fields_of_a_card(run: Run) -> None:
    write_lines(
        {"title": "A", "output": "x/a.png", "template": "article", "more": 1}, "", {"title": "B", "output": "b.PNG"}
    )
    assert run("list.jsonl", "--output", "out", "--theme", "light")["drawn"] == 2
    assert main(["card", "--title", "A", "--template", "article", "--theme", "light", "--output", "one.png"]) == 0
    assert Path("out/x/a.png").read_bytes() == Path("one.png").read_bytes()
    assert pngs() == {"x/a.png", "b.PNG"}


def test_what_is_wrong_with_a_line_is_told_and_the_others_are_drawn(run: Run, inside: Path) -> None:
    (inside / "out").mkdir()
    (inside / "elsewhere").mkdir()
    links = not WINDOWS
    if links:
        (inside / "out/link").symlink_to(inside / "elsewhere")
        (inside / "out/link.png").symlink_to(inside / "elsewhere/victim.png")
        (inside / "out/loop").symlink_to("loop")
    wrong = [
        ("{", "not a JSON object"),
        ("[]", "not a JSON object"),
        ("[" * 50_000, "not a JSON object"),
        ('{"title": "' + "x" * 70_000 + '"}', "not a JSON object"),
        ({"title": "A"}, "output is missing"),
        ({"title": 1, "output": "a.png"}, "title must be a text"),
        ({"title": "A", "author": None, "output": "a.png"}, "author must be a text"),
        ({"title": "A", "output": ["a.png"]}, "output must be a text"),
        ({"title": " ", "output": "a.png"}, "title"),
        ({"title": "A", "theme": "pink", "output": "a.png"}, "dark, light"),
        ({"title": "A", "output": "../a.png"}, "inside the folder"),
        ({"title": "A", "output": str(inside / "a.png")}, "inside the folder"),
        ({"title": "A", "output": "aux.png"}, "Windows"),
        ({"title": "A", "output": "a/" * 32_000 + "a.png"}, "longer than 4096 bytes"),
        ({"title": "A", "output": "./GOOD.png"}, "line 1 too"),
        *[({"title": "A", "output": output}, "link") for output in ("link/a.png", "link.png", "loop/a.png")] * links,
    ]
    write_lines({"title": "Good", "output": "good.png"}, *(line for line, _ in wrong))
    told = run("list.jsonl", "--output", "out")
    assert (told["status"], told["drawn"], told["failed"]) == (1, 1, len(wrong))
    assert len(told["stderr"]) == len(wrong)
    for sentence, (_, words) in zip(told["stderr"], wrong, strict=True):
        assert words in sentence
        assert len(sentence) < 300
    assert not list((inside / "elsewhere").iterdir())
    assert not (inside / "a.png").exists()


@pytest.mark.skipif(WINDOWS, reason="links need a right there")
@pytest.mark.parametrize("source", ["site", "list.jsonl"])
def test_a_folder_of_cards_that_is_a_link_to_itself_is_told(run: Run, source: str) -> None:
    write({"a.html": PAGE.format("A")})
    write_lines({"title": "A", "output": "a.png"})
    Path("out").symlink_to("out")
    assert run(source, "--output", "out")["stderr"] == ["cardbeat: can't write to out: File exists"]


def test_a_second_run_draws_only_what_is_new(run: Run) -> None:
    write({f"{name}.html": PAGE.format(name) for name in "abcd"})
    assert run("site", "--output", "out")["drawn"] == 4
    before = {name: Path("out", name).stat().st_mtime_ns for name in pngs()}
    write({"a.html": PAGE.format("another")})
    Path("out/b.png").write_bytes(Path("out/b.png").read_bytes()[:-1])
    Path("out/c.png").write_bytes(b"damaged")
    told = run("site", "--output", "out")
    assert (told["drawn"], told["unchanged"]) == (3, 1)
    assert Path("out/d.png").stat().st_mtime_ns == before["d.png"]
    assert run("site", "--output", "out")["unchanged"] == 4


def test_another_look_or_renderer_draws_all_again(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    write({"a.html": PAGE.format("A")})
    run("site", "--output", "out")
    assert run("site", "--output", "out", "--theme", "light")["drawn"] == 1
    assert run("site", "--output", "out", "--theme", "light")["drawn"] == 0
    designed = Path("out/a.png").read_bytes()
    for drawn in (1, 0):
        assert run("site", "--output", "out", "--theme", "light", "--accent", "#16a34a")["drawn"] == drawn
    assert Path("out/a.png").read_bytes() != designed
    monkeypatch.setenv("CARDBEAT_ACCENT", "#16A34A")
    assert run("site", "--output", "out", "--theme", "light")["drawn"] == 0
    monkeypatch.setattr(folder, "_renderer_version", lambda _: "another")
    assert run("site", "--output", "out", "--theme", "light")["drawn"] == 1


@pytest.mark.parametrize("manifest", ["", "[]", "{", '{"a.png": 1}', '{"a.png": ["x", "y", "z"]}', "[" * 50_000])
def test_with_a_damaged_manifest_all_are_drawn_again(run: Run, manifest: str) -> None:
    write({"a.html": PAGE.format("A")})
    run("site", "--output", "out")
    Path("out/.cardbeat.json").write_text(manifest)
    assert (run("site", "--output", "out")["drawn"], run("site", "--output", "out")["drawn"]) == (1, 0)


def test_a_file_that_no_run_drew_stays_and_is_told(run: Run) -> None:
    write({f"{name}.html": PAGE.format(name) for name in ("about", "front", "large")})
    Path("out").mkdir()
    Path("out/about.png").write_bytes(b"my own picture")
    Path("out/large.png").write_bytes(bytes(2**20 + 1))
    for drawn, unchanged in ((1, 0), (0, 1)):
        told = run("site", "--output", "out")
        assert (told["status"], told["drawn"], told["unchanged"], told["failed"]) == (1, drawn, unchanged, 2)
        advice = "the file there is not in .cardbeat.json, so it may be your own; move it away"
        assert told["stderr"] == [
            f"cardbeat: can't write about.png: {advice}",
            "cardbeat: can't write large.png: what is there is not a file of cardbeat; move it away",
        ]
    assert Path("out/about.png").read_bytes() == b"my own picture"
    Path("out/about.png").unlink()
    Path("out/large.png").unlink()
    assert run("site", "--output", "out")["drawn"] == 2


def test_a_file_that_took_the_place_of_a_card_stays(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    write({f"{name}.html": PAGE.format(name) for name in ("about", "front")})
    run("site", "--output", "out")
    card = Path("out/about.png").read_bytes()
    mine = card.replace(b"IDAT", b"IDAT my own picture")
    Path("out/about.png").write_bytes(mine)
    told = run("site", "--output", "out", "--prune")
    assert [told[it] for it in ("status", "drawn", "unchanged", "replaced")] == [0, 0, 1, ["about.png"]]
    assert main(["cards", "site", "--output", "out"]) == 0
    line = "1 cards whose file others changed, which stays; remove it to have the card drawn again: about.png\n"
    assert capsys.readouterr().out.endswith(line)
    write({"about.html": PAGE.format("Another")})
    told = run("site", "--output", "out")
    assert [told[it] for it in ("status", "drawn", "unchanged", "replaced")] == [1, 0, 1, []]
    assert "so it may be your own; move it away" in told["stderr"][0]
    assert Path("out/about.png").read_bytes() == mine
    Path("out/about.png").unlink()
    assert run("site", "--output", "out")["drawn"] == 1
    assert Path("out/about.png").read_bytes() != card


def test_a_card_that_was_drawn_under_another_spelling_of_its_name_is_drawn_again(run: Run) -> None:
    """As after `A.html` has become `a.html`, with another title, where one file has both names."""
    write({"A.html": PAGE.format("A")})
    run("site", "--output", "out")
    Path("out/A.png").rename("out/a.png")
    Path("site/A.html").unlink()
    write({"a.html": PAGE.format("another")})
    assert run("site", "--output", "out")["drawn"] == 1


def test_cards_of_pages_that_are_gone_are_told_and_removed_if_asked_for(run: Run) -> None:
    write({"a/b/index.html": PAGE.format("A"), "c.html": PAGE.format("C"), "d.html": PAGE.format("D")})
    run("site", "--output", "out")
    Path("site/a/b/index.html").unlink()
    Path("site/d.html").unlink()
    Path("out/d.png").write_bytes(b"now a file of somebody else")
    assert run("site", "--output", "out")["unused"] == ["a/b.png"]
    assert "a/b.png" in pngs()
    told = run("site", "--output", "out", "--prune")
    assert (told["unused"], told["removed"]) == ([], ["a/b.png"])
    assert pngs() == {"c.png", "d.png"}
    assert not Path("out/a").exists()
    assert run("site", "--output", "out", "--prune")["removed"] == []


def test_a_card_that_a_page_names_is_not_removed(run: Run) -> None:
    """As after a page was renamed, lost its title or was copied."""
    argv = ("site", "--output", "site/cards", "--write-tags", "--base-url", "https://x.example/blog")
    write({f"{name}.html": PAGE.format(name) for name in ("old é", "untitled", "gone", "copied", "moved")})
    assert run(*argv)["tagged"] == 5
    Path("site/old é.html").rename("site/new.html")
    Path("site/gone.html").unlink()
    for name, text, other in (
        ("untitled", "<title>", ""),
        ("moved", "<title>", "<meta http-equiv=refresh content='0; url=/'><title>"),
    ):
        Path(f"site/{name}.html").write_text(Path(f"site/{name}.html").read_text().replace(text, other))
    copied = Path("site/copied.html").read_text()
    write({"copy.html": copied.replace(">copied", ">copy"), "cdn.html": copied.replace("x.example/blog", "cdn.x")})
    told = run(*argv)
    assert [told[it] for it in ("status", "unused", "tagged")] == [0, ["gone.png"], 0]
    assert sorted(told["other_card"]) == ["cdn.html", "copy.html", "new.html"]
    assert run(*argv[:3], "--prune")["removed"] == ["gone.png"]
    assert run(*argv, "--prune")["removed"] == []
    assert {"old é.png", "untitled.png", "copied.png", "moved.png"} < pngs("site/cards")


def test_a_page_may_name_its_own_card_or_an_own_picture(run: Run) -> None:
    write({"a.html": PAGE.format("A"), "b.html": PAGE.format("B")})
    tag = "<meta property=og:image content={}><title>"
    for name, image in (("a", "https://[cdn/cards/a.png?v=2"), ("b", "/cards/own.png")):
        write({f"{name}.html": PAGE.format(name).replace("<title>", tag.format(image))})
    told = run("site", "--output", "site/cards", "--write-tags", "--base-url", "https://x.example")
    assert [told[it] for it in ("status", "tagged", "other_card")] == [0, 0, []]


def test_after_an_error_nothing_is_removed(run: Run) -> None:
    write_lines({"title": "A", "output": "a.png"}, {"title": "B", "output": "b.png"})
    run("list.jsonl", "--output", "out")
    write_lines({"title": "A", "output": "a.png"}, "{")
    assert run("list.jsonl", "--output", "out", "--prune")["removed"] == []
    assert pngs() == {"a.png", "b.png"}


def test_a_manifest_that_was_changed_by_others_removes_nothing_outside(run: Run) -> None:
    write({"a.html": PAGE.format("A")})
    run("site", "--output", "out")
    manifest = json.loads(Path("out/.cardbeat.json").read_text())
    Path("victim.png").write_bytes(Path("out/a.png").read_bytes())
    Path("out/.cardbeat.json").write_text(json.dumps({**manifest, "../victim.png": manifest["a.png"]}))
    assert run("site", "--output", "out", "--prune")["removed"] == []
    assert Path("victim.png").exists()


@pytest.mark.skipif(WINDOWS, reason="one file there")
def test_a_card_that_is_in_use_under_another_spelling_of_its_name_stays(run: Run) -> None:
    """As after `A.html` has become `a.html` on macOS; here one file has both names."""
    write({"A.html": PAGE.format("A"), "b.html": PAGE.format("B")})
    run("site", "--output", "out")
    Path("site/A.html").rename("site/a.html")
    Path("out/a.png").hardlink_to("out/A.png")
    manifest = json.loads(Path("out/.cardbeat.json").read_text())
    spelled = {**manifest, "a.png": manifest["A.png"], "./b.png": manifest["b.png"], "out//b.png": manifest["b.png"]}
    Path("out/.cardbeat.json").write_text(json.dumps(spelled))
    assert run("site", "--output", "out", "--prune")["removed"] == []
    assert pngs() == {"A.png", "a.png", "b.png"}


@pytest.fixture
def removed_by_rm(inside: Path) -> Iterator[None]:
    """What is so deep pytest can't remove, as `shutil.rmtree` calls itself for each folder."""
    yield
    os.chdir(inside)
    subprocess.run(["rm", "-rf", *(path.name for path in inside.iterdir())], check=True)


@pytest.mark.skipif(WINDOWS, reason="paths have another limit")
@pytest.mark.usefixtures("removed_by_rm")
def test_what_is_deeper_than_a_path_can_name_is_told_and_the_others_are_drawn(run: Run) -> None:
    write({f"{'b' * 250}/b.html": PAGE.format("B")})
    for _ in range(16):
        Path("site").rename("c" * 250)
        Path("site").mkdir()
        Path("c" * 250).rename(f"site/{'c' * 250}")
    write({"a.html": PAGE.format("A")})
    told = run("site", "--output", "out")
    assert (told["status"], told["drawn"], told["failed"] > 0) == (1, 1, True)


@pytest.mark.skipif(WINDOWS, reason="paths have another limit")
@pytest.mark.usefixtures("removed_by_rm")
def test_a_folder_may_be_deeper_than_python_calls(run: Run, inside: Path) -> None:
    write({"a.html": PAGE.format("A")})
    for _ in range(1100):
        Path("a").mkdir()
        os.chdir("a")
    write({"b.html": PAGE.format("B")}, ".")
    os.chdir(inside)
    Path("a").rename("site/a")
    told = run("site", "--output", "out")
    assert (told["status"], told["drawn"]) == (0, 2)
    assert run("site", "--output", "out")["unchanged"] == 2


@pytest.mark.skipif(WINDOWS, reason="links are followed there")
def test_a_page_that_became_a_link_since_it_was_read_is_told(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipe, for which it would wait, is not opened to be read either."""

    def drawn(*given: Any) -> Iterator[Any]:
        Path("site/a.html").rename("elsewhere.html")
        Path("site/a.html").symlink_to("../elsewhere.html")
        return draw(*given)

    write({"a.html": PAGE.format("A"), "b.html": PAGE.format("B")})
    draw = workers.draw
    monkeypatch.setattr(workers, "draw", drawn)
    told = run("site", "--output", "site/cards", "--write-tags", "--base-url", "https://x.example")
    assert (told["status"], told["tagged"], len(told["stderr"])) == (1, 1, 1)


def test_tags_are_written_once_and_name_each_card(run: Run) -> None:
    write(
        {
            "index.html": PAGE.format("Front"),
            "é #1/a.html": PAGE.format("A &amp; B").replace("\n", "\r\n"),
            "own.html": "<head><title>x | My site</title><meta property=og:image content=/own.png></head>",
            "no.html": "<head></head>",
        }
    )
    if not WINDOWS:
        Path("site/index.html").chmod(0o640)
    before = {path: path.read_bytes() for path in Path("site").rglob("*.html")}
    argv = ("site", "--output", "site/my cards", "--write-tags", "--base-url", "https://x.example/blog/")
    told = run(*argv)
    assert (told["status"], told["drawn"], told["tagged"], told["without_title"]) == (0, 3, 2, ["no.html"])
    tagged = Path("site/é #1/a.html").read_bytes().decode()
    assert (
        '\r\n<meta property="og:image" content="https://x.example/blog/my%20cards/%C3%A9%20%231/a.png">\r\n' in tagged
    )
    assert 'alt" content="A &amp; B">' in tagged
    for path, html in before.items():
        added = re.findall(rb'<meta (?:property="og:image|name="twitter:)[^\n]*\n', path.read_bytes())
        assert len(added) == (0 if path.name in ("own.html", "no.html") else 6)
        assert path.read_bytes().replace(b"".join(added), b"") == html
    if not WINDOWS:
        assert Path("site/index.html").stat().st_mode & 0o777 == 0o640
    after = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in Path("site").rglob("*") if path.is_file()}
    told = run(*argv)
    assert (told["drawn"], told["tagged"], told["unused"]) == (0, 0, [])
    assert after == {
        path: (path.read_bytes(), path.stat().st_mtime_ns) for path in Path("site").rglob("*") if path.is_file()
    }


def test_a_page_without_a_place_for_tags_is_told_and_stays(run: Run) -> None:
    write({"a.html": "<title>A</title><script>"})
    told = run("site", "--output", "site/cards", "--write-tags", "--base-url", "https://x.example")
    assert (told["status"], told["drawn"], told["tagged"], len(told["stderr"])) == (1, 1, 0, 1)
    assert Path("site/a.html").read_text() == "<title>A</title><script>"
    assert {path.name for path in Path("site").iterdir()} == {"a.html", "cards"}


def test_a_page_whose_tag_names_the_place_of_its_card_before_is_told(run: Run) -> None:
    tag = ("site", "--output", "site/cards", "--write-tags", "--base-url", "https://x.example")
    write({"a.html": PAGE.format("A"), "b.html": PAGE.format("B")}, "site")
    assert run(*tag)["tagged"] == 2
    write({"a/index.html": PAGE.format("Another"), "b.html": PAGE.format("B")}, "site")
    told = run(*tag, "--prune")
    assert (told["status"], told["tagged"], told["failed"]) == (1, 2, 1)
    (line,) = told["stderr"]
    assert "a.html names https://x.example/cards/a.png, but its card is a.html.png now" in line
    Path("site/a.html").write_text(PAGE.format("A"))
    assert run(*tag)["status"] == run(*tag)["status"] == 0
    Path("site/a/index.html").unlink()
    told = run(*tag, "--prune")
    assert (told["status"], told["removed"]) == (1, [])
    assert "but its card is a.png now" in told["stderr"][0]


def test_links_hidden_files_redirects_and_the_folder_of_cards_are_not_read(run: Run, inside: Path) -> None:
    write({"secret.html": PAGE.format("no")}, "elsewhere")
    write(
        {
            "a.html": PAGE.format("A"),
            ".hidden/b.html": PAGE.format("no"),
            ".c.html": PAGE.format("no"),
            "cards/d.html": PAGE.format("no"),
            "moved.html": "<title>x</title><meta http-equiv=refresh content='0; url=/a.html'>",
            "noindex.html": "<title>N</title><meta name=robots content=noindex>",
            "e.txt": PAGE.format("no"),
        }
    )
    if not WINDOWS:
        (inside / "site/link").symlink_to(inside / "elsewhere")
        (inside / "site/link.html").symlink_to(inside / "elsewhere/secret.html")
        (inside / "site/loop").symlink_to(inside / "site")
        os.mkfifo(inside / "site/pipe.html")
    told = run("site", "--output", "site/cards")
    assert (told["status"], told["redirects"]) == (0, 1)
    assert pngs("site/cards") == {"a.png", "noindex.png", "d.html"}


@pytest.mark.parametrize("source", ["none", "empty"])
def test_a_source_without_pages_is_one_line_and_status_1(run: Run, inside: Path, source: str) -> None:
    (inside / "empty").mkdir()
    told = run(source, "--output", "out")
    assert (told["status"], len(told["stderr"]), told["failed"]) == (1, 1, 1)
    assert not (inside / "out").exists()


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (("site",), "--output"),
        (("site", "--output", "out", "--theme", "pink"), "dark, light"),
        (("site", "--output", "site"), "of their own"),
        (("site", "--output", "."), "of their own"),
        (("site", "--output", "site/c", "--write-tags"), "--base-url"),
        (("site", "--output", "out", "--write-tags", "--base-url", "https://x.example"), "of their own"),
        (("list.jsonl", "--output", "out", "--write-tags", "--base-url", "https://x.example"), "folder"),
        (("site", "--output", "list.jsonl/x"), "can't write"),
    ],
)
def test_wrong_options_are_one_line_and_status_2(run: Run, argv: tuple[str, ...], words: str) -> None:
    write({"a.html": PAGE.format("A")})
    write_lines({"title": "A", "output": "a.png"})
    told = run(*argv)
    assert (told["status"], len(told["stderr"])) == (2, 1)
    assert words in told["stderr"][0]


@IN_USE
@pytest.mark.parametrize("source", [".", "site"])
def test_a_working_folder_that_is_gone_is_one_line_and_status_2(run: Run, inside: Path, source: str) -> None:
    write({"a.html": PAGE.format("A")})
    Path("gone").mkdir()
    os.chdir("gone")
    Path("../gone").rmdir()
    told = run(source if source == "." else str(inside / source), "--output", "out")
    assert (told["status"], told["stderr"]) == (
        2,
        ["cardbeat: can't find the working folder: No such file or directory"],
    )


def test_a_page_that_cannot_be_read_is_told_and_the_others_are_drawn(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    write({"a.html": PAGE.format("A"), "b.html": PAGE.format("B")})
    opened = os.open

    def refused(path: Any, *more: Any, **named: Any) -> int:
        if str(path).endswith("b.html"):
            raise PermissionError(13, "Permission denied")
        return opened(path, *more, **named)

    monkeypatch.setattr(os, "open", refused)
    told = run("site", "--output", "out")
    assert (told["status"], told["drawn"]) == (1, 1)
    assert [sentence.rpartition(": ")[2] for sentence in told["stderr"]] == ["Permission denied"]


def test_a_card_that_cannot_be_written_is_told_and_the_others_are_drawn(run: Run) -> None:
    write({"a.html": PAGE.format("A"), "b.html": PAGE.format("B")})
    Path("out/a.png/x").mkdir(parents=True)
    told = run("site", "--output", "out")
    assert (told["status"], told["drawn"], len(told["stderr"])) == (1, 1, 1)
    assert pngs() == {"b.png"}


def test_missing_glyphs_are_told_also_of_cards_that_are_there(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    write({"a.html": "<title>Hi \U0010fffe\U0010fffe</title>"})
    assert run("site", "--output", "out")["missing_glyphs"] == {"a.png": 2}
    assert run("site", "--output", "out")["missing_glyphs"] == {"a.png": 2}
    assert main(["cards", "site", "--output", "out"]) == 0
    assert capsys.readouterr().out == "0 drawn, 1 unchanged\n1 cards with characters that no font has: a.png\n"


def test_cards_that_are_not_shaped_are_told(
    run: Run, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write({"a.html": "<title>ټول ډېر</title>", "b.html": "<title>fine</title>"})
    monkeypatch.setattr(features, "check", lambda _: False)
    renderer = Renderer(Fonts(shaping=False))
    monkeypatch.setattr(workers, "_renderer", lambda _: renderer)
    assert run("site", "--output", "out")["missing_glyphs"] == {"a.png": 2}
    assert main(["cards", "site", "--output", "out"]) == 0
    assert capsys.readouterr().out.splitlines()[1] == (
        f"1 cards with characters that no font has, or that are not shaped ({UNSHAPED}): a.png"
    )


def test_many_are_drawn_by_processes_as_by_one(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    write({f"{n}.html": PAGE.format(f"Page {n}") for n in range(6)})
    monkeypatch.setattr(workers, "usable_cores", lambda: 3)
    assert run("site", "--output", "out")["drawn"] == 6
    monkeypatch.setattr(workers, "_started", lambda count: {})
    assert run("site", "--output", "threads")["drawn"] == 6
    monkeypatch.setattr(workers, "usable_cores", lambda: 1)
    assert run("site", "--output", "alone")["drawn"] == 6
    for name in pngs():
        assert Path("out", name).read_bytes() == Path("threads", name).read_bytes() == Path("alone", name).read_bytes()


def test_a_worker_that_is_killed_loses_one_card(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    write({f"{n}.html": PAGE.format(f"Page {n}") for n in range(5)})
    monkeypatch.setattr(workers, "usable_cores", lambda: 2)
    started = workers._started

    def with_one_killed(count: int) -> workers.Workers:
        made = started(count)
        next(iter(made.values())).kill()
        next(iter(made.values())).join()
        return made

    monkeypatch.setattr(workers, "_started", with_one_killed)
    told = run("site", "--output", "out")
    assert (told["status"], told["drawn"], told["failed"], len(told["stderr"])) == (1, 4, 1, 1)
    assert "killed" in told["stderr"][0]


def test_an_odd_text_that_cannot_be_drawn_is_told(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    write({f"{n}.html": PAGE.format(f"Page {n}") for n in range(3)})
    draw = workers.Renderer.render
    # New processes would have the renderer as it is.
    monkeypatch.setattr(workers, "_started", lambda count: {})
    monkeypatch.setattr(
        workers.Renderer, "render", lambda self, card: 1 / 0 if card.title == "Page 1" else draw(self, card)
    )
    told = run("site", "--output", "out")
    assert (told["status"], told["drawn"]) == (1, 2)
    assert "1.png: drawing failed" in told["stderr"][0]


@pytest.fixture
def started(inside: Path) -> Iterator[subprocess.Popen[str]]:
    """The command as a process, with 120 cards to draw, once it has drawn some."""
    write({f"{n}/index.html": PAGE.format(f"Page {n}") for n in range(120)})
    command = [sys.executable, "-m", "cardbeat", "cards", "site", "--output", "out"]
    environment = {**clean_environment(), "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True
    ) as process:
        wait_until(lambda: len(list(inside.glob("out/*.png"))) > 8)
        yield process
        process.kill()


def group_is_gone(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.skipif(WINDOWS, reason="no signals to a group")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_signal_ends_all_at_once_and_leaves_whole_files(
    started: subprocess.Popen[str], number: int, run: Run
) -> None:
    os.killpg(started.pid, number)
    began = time.monotonic()
    _, told = started.communicate(timeout=30)
    assert time.monotonic() - began < 10
    assert (started.returncode, told.count("\n")) == (2, 1)
    assert signal.Signals(number).name in told
    wait_until(lambda: group_is_gone(started.pid))
    drawn = pngs()
    assert 8 < len(drawn) < 120
    for name in drawn:
        assert name.endswith(".png")
        Image.open(io.BytesIO(Path("out", name).read_bytes())).load()
    assert run("site", "--output", "out")["unchanged"] == len(drawn)


@pytest.mark.skipif(WINDOWS, reason="no signals to a process")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_signal_ends_a_wait_for_lines(inside: Path, number: signal.Signals) -> None:
    os.mkfifo("lines")
    command = [sys.executable, "-m", "cardbeat", "cards", str(inside / "lines"), "--output", str(inside / "out")]
    with subprocess.Popen(command, cwd=ROOT, env=clean_environment(), stderr=subprocess.PIPE, text=True) as process:
        try:
            with open("lines", "wb"):  # returns once the command has opened it too
                process.send_signal(number)
                _, told = process.communicate(timeout=20)
        finally:
            process.kill()
    assert (process.returncode, told) == (2, f"cardbeat: stopped by {number.name}; nothing was drawn\n")


@pytest.mark.skipif(WINDOWS, reason="no signals to a process")
def test_a_stop_signal_ends_a_list_whose_line_does_not_end(inside: Path) -> None:
    command = [sys.executable, "-m", "cardbeat", "cards", "/dev/zero", "--output", str(inside / "out")]
    with subprocess.Popen(command, cwd=ROOT, env=clean_environment(), stderr=subprocess.PIPE) as process:
        wait_until(lambda: cpu_seconds(process.pid) > 1)
        process.terminate()
        try:
            assert process.wait(20) == 2
        finally:
            process.kill()


def cpu_seconds(process_id: int) -> float:
    with Path(f"/proc/{process_id}/stat").open() as file:
        return sum(map(int, file.read().rpartition(")")[2].split()[11:13])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.skipif(WINDOWS, reason="no signals to a group")
def test_workers_end_with_a_process_that_is_killed(started: subprocess.Popen[str]) -> None:
    started.kill()
    started.wait()
    wait_until(lambda: group_is_gone(started.pid))


def test_without_a_terminal_there_is_no_bar_and_with_one_it_goes_away(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write({"a.html": PAGE.format("A"), "b.html": PAGE.format("B")})
    assert run("site", "--output", "out")["stderr"] == []
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert main(["cards", "site", "--output", "again"]) == 0
    shown = capsys.readouterr().err
    assert f"[{'#' * 20}{' ' * 20}] 1 of 2\r" in shown
    assert shown.endswith(" \r")


def test_its_help_fits_a_screen() -> None:
    lines = cards.parser().format_help().splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80


def test_a_link_at_the_name_of_a_temporary_file_leads_nowhere(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    write({"a.html": PAGE.format("A")})
    Path("victim.txt").write_text("mine")
    Path("out").mkdir()
    monkeypatch.setattr("secrets.token_hex", lambda _: "known")
    Path("out/.cardbeat-known.tmp").symlink_to("../victim.txt")
    assert run("site", "--output", "out")["status"] in (1, 2)
    assert Path("victim.txt").read_text() == "mine"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="without named pipes")
def test_pipes_in_the_folder_of_cards_are_not_waited_for(run: Run) -> None:
    write({"a.html": PAGE.format("A")})
    Path("out").mkdir()
    os.mkfifo("out/.cardbeat.json")
    assert run("site", "--output", "out")["drawn"] == 1
    Path("out/.cardbeat.json").write_text('{"pipe.png": ["x", "y", 0], "a.png": ["x", "y", 1e999]}')
    os.mkfifo("out/pipe.png")
    assert run("site", "--output", "out", "--prune")["drawn"] == 1
    assert Path("out/pipe.png").is_fifo()


def test_a_page_with_an_endless_number_is_named_and_the_others_are_drawn(run: Run) -> None:
    write({"a.html": PAGE.format("A"), "b.html": PAGE.format("&#" + "9" * 5000 + ";")})
    ran = run("site", "--output", "out")
    assert (ran["status"], ran["drawn"], len(ran["stderr"])) == (1, 1, 1)


def test_a_file_without_a_line_removes_nothing(run: Run) -> None:
    Path("list.jsonl").write_text('{"title": "A", "output": "a.png"}\n')
    run("list.jsonl", "--output", "out")
    Path("list.jsonl").write_text("\n")
    assert run("list.jsonl", "--output", "out", "--prune")["status"] == 1
    assert Path("out/a.png").exists()


def test_a_card_does_not_take_the_place_of_the_manifest(run: Run) -> None:
    lines = ['{"title": "A", "output": ".cardbeat.json/a.png"}', '{"title": "B", "output": "b.png"}', "x" * 200_000]
    Path("list.jsonl").write_text("\n".join(lines))
    ran = run("list.jsonl", "--output", "out")
    assert (ran["status"], ran["drawn"], len(ran["stderr"])) == (1, 1, 2)
    assert run("list.jsonl", "--output", "out")["unchanged"] == 1
