"""Two nodes on machines of which one has run for a day longer, so that their monotonic clocks are far apart."""

import subprocess
import sys

import pytest

from tests.crash.client import ask, checks_key, metric, new_check
from tests.crash.cluster import Node
from tests.nodes import HOURS_APART
from tests.receiver import Receiver
from tests.support import wait_until

APART = ("unshare", "--time", "--monotonic", str(HOURS_APART))


@pytest.fixture
def new_node(postgresql, pyz, tmp_path):
    url, nodes = postgresql.new_schema(), []

    def new_node(name, *within):
        nodes.append(Node(tmp_path / name, (*within, sys.executable, str(pyz)), url, "--sweep-seconds", "0.5"))
        nodes[-1].start()
        return nodes[-1]

    yield new_node
    for node in nodes:
        node.kill()


def monotonic(*within):
    shown = subprocess.run(
        [*within, sys.executable, "-c", "import time; print(time.monotonic())"], check=False, capture_output=True
    )
    if shown.returncode:
        pytest.skip(f"the system grants no time namespaces: {shown.stderr.decode().strip()}")
    return float(shown.stdout)


def has_swept(node):
    return metric(node, "cardbeat_sweep_duration_seconds") > 0


def test_machines_whose_monotonic_clocks_are_apart_credit_each_other_nothing(new_node):
    assert monotonic(*APART) > monotonic() + HOURS_APART - 1
    with Receiver() as receiver:
        node, other = new_node("node"), new_node("other", *APART)
        key = checks_key(node)
        kept, silent = (new_check(node, key, period_seconds=seconds, webhook_url=receiver.url) for seconds in (3600, 1))
        wait_until(lambda: has_swept(node))
        with node.suspended():
            wait_until(lambda: has_swept(other))
        wait_until(lambda: "another server sends alerts now" in node.log)
        assert ask(other, "GET", f"/ping/{silent['id']}").json["recovered"]
        # Who has the lease again has noted before what the other one's clock has nothing to do with.
        other.stop()
        wait_until(lambda: [received.json["type"] for received in receiver.received].count("check.overdue") == 2)
        assert "the deadlines of checks" not in node.log + other.log
        assert ask(node, "GET", f"/checks/{kept['id']}", key=key).json["check"]["deadline_at"] == kept["deadline_at"]
    assert {received.json["data"]["check"]["id"] for received in receiver.received} == {silent["id"]}
