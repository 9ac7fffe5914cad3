"""The command `card`: where the PNG goes."""

import json
from pathlib import Path

import pytest
from PIL import features

from cardbeat.host.system import UNSHAPED
from tests.kit.lists import each
from tests.kit.systems import LIMITS, LINKS
from tests.rules.commands.conftest import in_a_process

CARD = ("card", "--title", "A", "--output")
LITTLE_ROOM = (
    "import resource as r; r.setrlimit(r.RLIMIT_FSIZE, (9000, 9000))"
)


def test_the_card_goes_to_a_file_or_to_standard_output(run, tmp_path):
    assert run(*CARD, "a.PNG").status == 0
    card = (tmp_path / "a.PNG").read_bytes()
    assert in_a_process(tmp_path, *CARD, "-", text=False).stdout == card
    assert each(tmp_path.iterdir(), "name") == ["a.PNG"]
    told = json.loads(
        run(*CARD, "b.png", "--accent", "#16a34a", "--json").out
    )
    size = (tmp_path / "b.png").stat().st_size
    assert told == {"output": "b.png", "bytes": size, "missing_glyphs": 0}
    assert (tmp_path / "b.png").read_bytes() != card


def test_a_card_whose_text_is_not_shaped_says_so(run, monkeypatch):
    monkeypatch.setattr(features, "check", lambda _: False)
    for title, missing, told in (
        ("क्षत्रिय", 8, f"cardbeat: {UNSHAPED}\n"),
        ("Hello, عالم", 0, ""),
    ):
        ran = run(*CARD, "a.png", "--title", title, "--json")
        assert json.loads(ran.out)["missing_glyphs"] == missing
        assert ran.err == told


@LIMITS
def test_where_there_is_no_room_the_picture_before_stays(tmp_path):
    (tmp_path / "a.png").write_bytes(b"before")
    ran = in_a_process(tmp_path, *CARD, "a.png", code=LITTLE_ROOM)
    assert ran.returncode == 2
    assert ran.stderr == "cardbeat: can't write a.png: File too large\n"
    assert [*map(Path.read_bytes, tmp_path.iterdir())] == [b"before"]


@LINKS
def test_a_link_and_the_mode_of_a_picture_stay(run, tmp_path):
    old = tmp_path / "old.png"
    old.write_bytes(b"before")
    old.chmod(0o640)
    (tmp_path / "a.png").symlink_to(old.name)
    assert run(*CARD, "a.png").status == 0
    assert (tmp_path / "a.png").is_symlink()
    assert old.read_bytes()[:4] == b"\x89PNG"
    assert old.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(
    "wrong",
    [
        *(
            "none/a.png",
            "page.html",
            "- --accent red",
            "- --title ",
            "- --title \u200b",
            "- --theme x",
        ),
    ],
)
def test_what_can_not_be_drawn_is_one_line_and_status_2(
    wrong, run, tmp_path
):
    assert run(*CARD, *wrong.split(" ")).refused()
    assert not list(tmp_path.iterdir())
