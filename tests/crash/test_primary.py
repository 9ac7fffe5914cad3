"""Two nodes over a primary with a synchronous standby: the primary is killed, and the standby stops for a time."""

import contextlib
import os
import sys
import time

import pytest

from tests.crash.client import ask, checks_key, new_check
from tests.crash.cluster import Node, Pair, installed, seconds_until
from tests.crash.load import Load, stored_pings
from tests.support import wait_until

CLIENTS = 4


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    if (programs := installed()) is None:
        assert not os.environ.get("CI"), "PostgreSQL is not installed"
        pytest.skip("PostgreSQL is not installed")
    folder = tmp_path_factory.mktemp("pair")
    # PostgreSQL runs as another user, who must come to its data.
    for parent in (folder, folder.parent, folder.parent.parent):
        parent.chmod(0o755)
    pair = Pair(folder, programs)
    yield pair
    pair.close()


@pytest.fixture
def nodes(pair, pyz, tmp_path, request):
    """Two of them, with a schema of the test's own."""
    url = pair.url(request.node.name.split("[")[0])
    nodes = [
        Node(tmp_path / name, (sys.executable, str(pyz)), url, "--sweep-seconds", "0.5") for name in ("first", "second")
    ]
    try:
        for node in nodes:
            node.begin()
        for node in nodes:
            node.wait()
        yield nodes
    finally:
        for node in nodes:
            node.kill()


@pytest.fixture
def schema(request):
    return request.node.name.split("[")[0]


def test_what_was_acknowledged_outlives_the_primary_and_a_node(pair, nodes, schema):
    with Load(nodes, CLIENTS) as load:
        load.wait_for_outages(2)
        pair.fail_over()
        load.wait()
        load.wait_for_outages(2)
        nodes[0].kill()
        load.wait_for_outages(2)
        load.settle(pair.primary, schema)
        assert load.missing(pair.primary, schema) == []
        assert load.totals()["recoveries"] > 0
