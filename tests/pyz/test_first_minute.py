"""The README's commands, as they stand there: from a fresh tree to a card and a test alert that has arrived."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request

import pytest

from tests.artifact import ROOT, clean_environment, free_port
from tests.documentation import blocks
from tests.receiver import Receiver
from tests.support import wait_until

SECONDS = 60
"""From the first command to the alert, on a machine that has a core left for it."""
BUSY_SECONDS = 300
"""The same where others keep all cores busy."""


@contextlib.contextmanager
def in_background(command, **options):
    """Runs a command of the shell, with all that it starts, until the end of the block."""
    with subprocess.Popen(["bash", "-c", command], start_new_session=True, **options) as process:
        try:
            yield
        finally:
            os.killpg(process.pid, signal.SIGKILL)


@pytest.fixture
def source(tmp_path):
    """A copy of what the first command needs of the tree, and an environment whose `python3` is this Python."""
    tree = tmp_path / "source"
    shutil.copytree(ROOT / "cardbeat", tree / "cardbeat", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("build_zipapp.py", "LICENSE"):
        shutil.copy(ROOT / name, tree)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3").symlink_to(sys.executable)
    return tree, {**clean_environment(), "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}


def answers(url):
    """Whether it is answered with a status below 400."""
    try:
        urllib.request.urlopen(url, timeout=10).close()
    except OSError:
        return False
    return True


def test_four_commands_lead_to_a_card_and_a_watched_job_whose_test_alert_has_arrived(source):
    tree, environment = source
    serve, _tests, card, key, check = blocks("README", "sh")
    (channel,) = re.findall(r"https://hooks\.slack\.com[\w/]+", check)
    port = free_port()
    serving = environment | {"CARDBEAT_PORT": str(port), "CARDBEAT_ALLOW_PRIVATE_WEBHOOKS": "1"}
    began = time.monotonic()
    with Receiver() as receiver, in_background(serve, cwd=tree, env=serving, stderr=subprocess.DEVNULL):
        wait_until(lambda: answers(f"http://127.0.0.1:{port}/healthz"), BUSY_SECONDS)
        # The README's own address is one of no channel; here a port that takes no connection stands for it.
        nowhere = check.replace(channel, f"http://127.0.0.1:{free_port()}/").rstrip()
        commands = f'{card}{key}{nowhere} || echo "status $?"\n{check.replace(channel, receiver.url)}'.replace(
            "8080", str(port)
        )
        asking = environment | {"CARDBEAT_URL": f"http://127.0.0.1:{port}"}
        ran = subprocess.run(
            ["bash", "-euc", commands], cwd=tree, env=asking, check=True, capture_output=True, text=True
        )
        seconds = time.monotonic() - began
        before, status, after = re.split(r"^status (\d)$", ran.stdout, flags=re.MULTILINE)
        assert (status, "not delivered: The connection was refused." in before) == ("1", True)
        assert ": delivered, the receiver answered 204\n" in after
        (ping_url,) = re.findall(r"^created Nightly backup: (http://\S+/ping/\w+)$", before, re.MULTILINE)
        assert answers(ping_url)
    assert (tree / "card.png").read_bytes().startswith(b"\x89PNG")
    assert {alert.json["type"] for alert in receiver.received} == {"check.test"}
    is_busy = os.getloadavg()[0] > (os.cpu_count() or 1)
    assert seconds < (BUSY_SECONDS if is_busy else SECONDS)
