"""The package as it is published: built, checked, and installed from the wheel into an empty environment."""

import json
import signal
import subprocess
import sys
import tarfile
import urllib.request
import zipfile

import pytest

from cardbeat import __version__
from tests.artifact import ROOT, clean_environment, starter


@pytest.fixture
def run(installed, tmp_path):
    def run_command(*argv, check=True):
        return subprocess.run(
            [installed, *argv], cwd=tmp_path, env=clean_environment(), capture_output=True, text=True, check=check
        )

    return run_command


def test_the_build_warns_of_nothing(built):
    assert "deprecat" not in built[0].lower()
    assert "Warning" not in built[0]


def test_twine_finds_nothing_wrong(built):
    files = sorted(built[1].iterdir())
    assert [file.suffix for file in files] == [".whl", ".gz"]
    command = [sys.executable, "-m", "twine", "check", "--strict", *files]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_the_wheel_holds_what_the_artifact_holds(wheel, pyz):
    names = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("cardbeat/")}
    found = {name for name in zipfile.ZipFile(pyz).namelist() if name.startswith("cardbeat/")}
    assert names == {name for name in found if not name.endswith(".pyc")}
    assert {
        "cardbeat/pages/builder/builder.html",
        "cardbeat/database/sqlite/007.sql",
        "cardbeat/fonts/index.json",
    } <= names


def test_the_source_archive_leaves_the_making_of_fonts_out_too(built):
    (archive,) = built[1].glob("*.tar.gz")
    with tarfile.open(archive) as files:
        names = files.getnames()
    assert f"cardbeat-{__version__}/LICENSE" in names
    assert not any(name.endswith("fonts/build.py") for name in names)


def test_each_way_to_start_it_gives_the_same_help(run, python, pyz, tmp_path):
    expected = run("--help").stdout
    assert expected.startswith("usage: cardbeat [serve]")
    for start in ([sys.executable, "-m", "cardbeat"], [python, pyz]):
        environment = {**clean_environment(), "PYTHONPATH": str(ROOT)}
        ran = subprocess.run(
            [*start, "--help"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
        )
        assert ran.stdout == expected


def test_it_tells_its_version_and_what_is_wrong(run):
    assert run("--version").stdout == f"cardbeat {__version__}\n"
    wrong = run("nonsense", check=False)
    assert (wrong.returncode, wrong.stderr.count("\n")) == (2, 1)


def test_it_draws_a_card(run, tmp_path):
    drawn = json.loads(run("card", "--title", "Hi \U0010fffe", "--output", "card.png", "--json").stdout)
    size = (tmp_path / "card.png").stat().st_size
    assert drawn == {"output": "card.png", "width": 1200, "height": 630, "bytes": size, "missing_glyphs": 1}


def test_it_serves_and_stops_with_0(installed, tmp_path):
    with starter(installed.with_name("python"), installed, tmp_path) as start:
        server = start()
        with urllib.request.urlopen(f"{server.url}/healthz") as answer:
            assert answer.status == 200
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(15) == 0
