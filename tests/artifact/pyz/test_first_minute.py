"""The README's commands, as they stand there: from a new tree to a test alert that arrived."""

import contextlib
import os
import re
import signal
import subprocess
import sys

import pytest

from tests.artifact.pyz.proxies import answers
from tests.kit.artifact import clean_environment, copy_of_the_tree, shell
from tests.kit.documentation import blocks
from tests.kit.receiver import Receiver
from tests.kit.support import free_port, wait_until

BUSY_SECONDS = 300
"""A minute is promised, and was measured; this is for a machine whose cores are all busy."""


@contextlib.contextmanager
def in_background(command, **options):
    """Runs a command of the shell, with all that it starts, until the end of the block."""
    with subprocess.Popen(
        ["bash", "-c", command], start_new_session=True, **options
    ) as process:
        try:
            yield
        finally:
            os.killpg(process.pid, signal.SIGKILL)


@pytest.fixture
def variables(tmp_path):
    """Of a shell whose `python3` is this Python."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3").symlink_to(sys.executable)
    return {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}


@pytest.fixture
def tree(tmp_path):
    return copy_of_the_tree(tmp_path / "source")


@pytest.fixture
def asked(tree, variables):
    """Runs commands beside the server that the README's first command starts."""
    serve, *_ = blocks("README", "sh")
    port = free_port()
    serving = clean_environment(
        **variables,
        CARDBEAT_PORT=str(port),
        CARDBEAT_ALLOW_PRIVATE_WEBHOOKS="1",
    )
    url = f"http://127.0.0.1:{port}"
    with in_background(
        serve, cwd=tree, env=serving, stderr=subprocess.DEVNULL
    ):
        wait_until(lambda: answers(f"{url}/healthz"), BUSY_SECONDS)
        yield lambda text: shell(
            text.replace("8080", str(port)),
            tree,
            CARDBEAT_URL=url,
            **variables,
        )


def test_four_commands_lead_to_a_card_and_a_watched_job_with_a_test_alert(
    tree, asked
):
    _serve, card, key, check, _tests = blocks("README", "sh")
    (channel,) = re.findall(r"https://hooks\.slack\.com[\w/]+", check)
    # The README's own address is one of no channel. A port without a listener stands for it.
    nowhere = check.replace(
        channel, f"http://127.0.0.1:{free_port()}/"
    ).rstrip()
    with Receiver() as receiver:
        somewhere = check.replace(channel, receiver.url)
        printed = asked(
            f'{card}{key}{nowhere} || echo "status $?"\n{somewhere}'
        )
        assert {alert.json["type"] for alert in receiver.received} == {
            "check.test"
        }
    before, after = printed.split("status 1\n")
    assert "\nlast_error: The connection was refused.\n" in before
    assert "\nstate: delivered\n" in after
    created = r"^created +Nightly backup +(http://\S+/ping/\w+)$"
    (ping_url,) = re.findall(created, before, re.MULTILINE)
    assert answers(ping_url)
    assert (tree / "card.png").read_bytes().startswith(b"\x89PNG")
