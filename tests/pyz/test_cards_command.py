"""The command `cards` of the artifact and of the installed package, with both ways to start its processes."""

import json
import subprocess

import pytest

from tests.artifact import clean_environment

WITH_A_THREAD = """
import pathlib, sys, threading
threading.Thread(target=threading.Event().wait, daemon=True).start()
if "--multiprocessing-fork" in sys.orig_argv:
    pathlib.Path("spawned").touch()
"""
"""A `sitecustomize` with which a process may not be copied, as on macOS and Windows; it notes new processes."""


@pytest.fixture
def drawn(tmp_path):
    """Draws the cards of a site with a command; gives the bytes of each."""
    for number in range(12):
        page = tmp_path / "site" / f"{number}.html"
        page.parent.mkdir(exist_ok=True)
        page.write_text(f"<title>Page {number}</title>")

    def draw(*command, output, **environment):
        ran = subprocess.run(
            [*command, "cards", "site", "--output", output, "--json"],
            cwd=tmp_path,
            env={**clean_environment(), **environment},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert (ran.returncode, ran.stderr) == (0, "")
        assert json.loads(ran.stdout)["drawn"] == 12
        return {path.name: path.read_bytes() for path in (tmp_path / output).glob("*.png")}

    return draw


def test_it_draws_the_same_in_copied_and_in_new_processes(drawn, python, pyz, installed, tmp_path):
    (tmp_path / "path").mkdir()
    (tmp_path / "path/sitecustomize.py").write_text(WITH_A_THREAD)
    copied = drawn(python, pyz, output="copied")
    assert len(copied) == 12
    for number, command in enumerate([[python, pyz], [installed]]):
        assert drawn(*command, output=f"spawned-{number}", PYTHONPATH=str(tmp_path / "path")) == copied
        (tmp_path / "spawned").unlink()
