"""What a start does without, and that it is loaded soon after."""

import subprocess
import sys

import pytest

from tests.kit.artifact import ROOT

NEVER = {
    "PIL.Image",
    "cardbeat.cards.drawing.render",
    "cardbeat.vendor.mistune.markdown",
}
"""Modules that another process loads, or the first request for a page of the documentation."""

LATER = {"cardbeat.heartbeat.alerts.post"}
"""Modules that no first answer needs, and that a server loads after it."""

START = """
import sys, time
from pathlib import Path
from cardbeat.commands import serve
from cardbeat.config import Config
from cardbeat.host import surroundings
from cardbeat.service import Service
from cardbeat.web.server import listen
from cardbeat.web.loop import Loop
surroundings.require_pillow()
old = Path(sys.argv[1], "cards", "000000000000-raqm")
old.mkdir(parents=True)
service = Service(Config(port=0, data=Path(sys.argv[1])), listen("127.0.0.1", 0), Loop())
print(*sys.modules)
service.loading.function(*service.loading.args)
print(*sys.modules)
print(service.painter.start().poll())
# The stored cards of another version are removed.
while old.exists():
    time.sleep(0.01)
service.close()
"""


def printed(code, *arguments):
    """The lines that a program prints."""
    command = [sys.executable, "-c", code, *arguments]
    ran = subprocess.run(
        command,
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return ran.stdout.splitlines()


def test_a_server_starts_without_what_no_first_answer_needs_and_then_loads_it(
    tmp_path,
):
    first, then, ended = printed(START, tmp_path / "data")
    assert (LATER | NEVER) & {*first.split()} == set()
    assert LATER - {*then.split()} == set()
    assert ended == "None"
    assert "cardbeat.typeset" not in first


COMMANDS = {
    "argparse": ["--version"],
    "dataclasses": ["card", "--title", "x", "--output", "x.png"],
}
"""What is left out takes longer to import, for classes to be made, than the command itself."""


@pytest.mark.parametrize(("module", "command"), COMMANDS.items())
def test_a_command_runs_without_what_it_does_not_need(
    tmp_path, module, command
):
    code = (
        "import os, sys; from cardbeat.cli import main; os.chdir(sys.argv[1]);"
        f"print(main({command}), {module!r} in sys.modules)"
    )
    assert printed(code, tmp_path)[-1] == "0 False"
