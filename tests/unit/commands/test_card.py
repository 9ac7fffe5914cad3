"""The command `card`: where the PNG goes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cardbeat.cli import main
from cardbeat.host.system import UNSHAPED
from cardbeat.typeset.faces import files
from tests.artifact import ROOT, clean_environment
from tests.support import full_disk, gone_reader
from tests.systems import FULL_DISK, LIMITS, LINKS, PIPES

ENVIRONMENT = {**clean_environment(), "PYTHONPATH": str(ROOT)}
COMMAND = [sys.executable, "-m", "cardbeat", "card", "--title", "A", "--output", "-"]


def test_the_card_goes_to_standard_output(tmp_path: Path) -> None:
    assert main(["card", "--title", "A", "--output", str(tmp_path / "a.PNG")]) == 0
    ran = subprocess.run(COMMAND, env=ENVIRONMENT, cwd=tmp_path, capture_output=True, check=True)
    assert (ran.stdout, ran.stderr) == ((tmp_path / "a.PNG").read_bytes(), b"")
    assert [path.name for path in tmp_path.iterdir()] == ["a.PNG"]


def test_an_accent_changes_the_card_and_a_bad_one_is_one_line_and_status_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def drawn(*accent: str) -> int:
        return main(["card", "--title", "A", "--output", str(tmp_path / f"{len(accent)}.png"), *accent])

    assert (drawn(), drawn("--accent", "#16a34a")) == (0, 0)
    assert (tmp_path / "0.png").read_bytes() != (tmp_path / "2.png").read_bytes()
    assert drawn("--accent", "green") == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_card_whose_text_is_not_shaped_says_so(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def told(title: str) -> tuple[int, str]:
        assert main(["card", "--title", title, "--output", str(tmp_path / "a.png"), "--json"]) == 0
        printed = capsys.readouterr()
        return json.loads(printed.out)["missing_glyphs"], printed.err

    monkeypatch.setattr(files.features, "check", lambda _: False)
    assert told("क्षत्रिय") == (2, f"cardbeat: {UNSHAPED}\n")
    assert told("Hello, عالم") == (0, "")
    monkeypatch.setattr(files.features, "check", lambda _: True)
    assert told("क्षत्रिय") == (0, "")


@LIMITS
def test_where_there_is_no_room_the_picture_before_stays(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"before")
    small = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (9000, 9000)); from cardbeat.cli import main"
    )
    command = [sys.executable, "-B", "-c", f"{small}; sys.exit(main())", *COMMAND[3:-1], "a.png"]
    ran = subprocess.run(command, env=ENVIRONMENT, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (2, "cardbeat: can't write a.png: File too large\n")
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"before"]


@LINKS
def test_a_link_and_the_mode_of_a_picture_stay(tmp_path: Path) -> None:
    (tmp_path / "old.png").write_bytes(b"before")
    (tmp_path / "old.png").chmod(0o640)
    (tmp_path / "a.png").symlink_to("old.png")
    assert main(["card", "--title", "A", "--output", str(tmp_path / "a.png")]) == 0
    assert (tmp_path / "a.png").is_symlink()
    assert (tmp_path / "old.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "old.png").stat().st_mode & 0o777 == 0o640


@PIPES
def test_a_pipe_gets_the_card_and_stays(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.png")
    with open(os.open(tmp_path / "a.png", os.O_RDONLY | os.O_NONBLOCK), "rb") as reading:
        assert main(["card", "--title", "A", "--output", str(tmp_path / "a.png")]) == 0
        assert reading.read().startswith(b"\x89PNG")
    assert (tmp_path / "a.png").is_fifo()


@FULL_DISK
def test_a_standard_output_that_is_full_is_one_line_and_status_2() -> None:
    with full_disk() as stdout:
        ran = subprocess.run(COMMAND, env=ENVIRONMENT, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (2, "cardbeat: can't print: No space left on device\n")


def test_a_reader_that_is_gone_is_no_error() -> None:
    with gone_reader() as stdout:
        ran = subprocess.run(COMMAND, env=ENVIRONMENT, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.parametrize("output", ["a", "a.jpg", "a.png.txt", ".png", "png"])
def test_an_output_that_is_no_png_is_one_line_and_status_2(
    output: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["card", "--title", "A", "--output", output]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_json_and_the_card_cannot_both_go_to_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["card", "--title", "A", "--output", "-", "--json"]) == 2
    assert "--json" in capsys.readouterr().err


@pytest.mark.parametrize("title", ["", " ", "\u200b"])
def test_an_empty_title_is_told_by_the_name_of_its_option(title: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["card", "--title", title, "--output", "-"]) == 2
    assert capsys.readouterr().err == "cardbeat: --title is empty\n"
