"""What a start does without, and that it is loaded soon after."""

import subprocess
import sys

from tests.artifact import ROOT

NEVER = {"PIL.Image", "cardbeat.cards.drawing.render", "cardbeat.vendor.mistune.markdown"}
"""Modules that another process loads, or the first request for a page of the documentation."""

LATER = {
    "cardbeat.heartbeat.alerts.post",
    "cardbeat.heartbeat.alerts.receivers",
}
"""Modules that no first answer needs, and that a server loads after it."""

START = """
import sys
from pathlib import Path
from cardbeat.commands import serve
from cardbeat.config import Config
from cardbeat.host import pillow
from cardbeat.service import Service
from cardbeat.web.listener import Listener
from cardbeat.web.loop import Loop
pillow.require()
service = Service(Config(port=0, data=Path(sys.argv[1])), Listener("127.0.0.1", 0), Loop())
print(*sys.modules)
service.loading.function(*service.loading.args)
print(*sys.modules)
print(service.painter.start().poll())
service.close()
"""


def test_a_server_starts_without_what_no_first_answer_needs_and_then_loads_it(
    tmp_path,
):
    command = [sys.executable, "-c", START, tmp_path / "data"]
    first, then, ended = subprocess.run(
        command, cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.splitlines()
    assert (LATER | NEVER) & {*first.split()} == set()
    assert LATER - {*then.split()} == set()
    assert ended == "None"
    assert not [name for name in first.split() if name.startswith("cardbeat.typeset")]


def test_the_version_is_printed_without_a_parser():
    code = "import sys; from cardbeat.cli import main; main(['--version']); print('argparse' in sys.modules)"
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True
    )
    assert ran.stdout.splitlines()[1] == "False"


def test_a_card_is_drawn_without_what_makes_dataclasses(tmp_path):
    """Importing it and making a class with it take longer than drawing the card."""
    command = ["card", "--title", "x", "--output", str(tmp_path / "x.png")]
    code = f"import sys; from cardbeat.cli import main; main({command}); print('dataclasses' in sys.modules)"
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True
    )
    assert ran.stdout.strip() == "False"
