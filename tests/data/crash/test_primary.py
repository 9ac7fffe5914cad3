"""Two nodes over a primary with a synchronous standby: the primary is killed, and the standby stops for a time."""

import contextlib
import sys

import pytest

from tests.data.crash.cluster import Node, Pair, folder_for_all
from tests.data.crash.load import Load, stored_pings
from tests.kit.client import ask, checks_key, new_check
from tests.kit.support import wait_until

CLIENTS = 4


@pytest.fixture(scope="module")
def pair(postgresql_programs):
    with (
        folder_for_all() as folder,
        contextlib.closing(Pair(folder, postgresql_programs)) as pair,
    ):
        yield pair


@pytest.fixture
def schema(pair):
    return pair.new_schema()


@pytest.fixture
def nodes(pair, schema, pyz, tmp_path):
    """Two of them, of which the first monitors."""
    command = (sys.executable, str(pyz))
    nodes = [
        Node(
            tmp_path / name,
            command,
            pair.url(schema),
            "--sweep-seconds",
            "0.5",
        )
        for name in ("first", "second")
    ]
    try:
        for node in nodes:
            node.start()
        yield nodes
    finally:
        for node in nodes:
            node.kill()


def ping(node, check):
    """The status of the answer."""
    return ask(node, "GET", f"/ping/{check['id']}").status


def test_what_was_acknowledged_outlives_the_primary_and_a_node(
    pair, nodes, schema
):
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


def test_nodes_follow_to_the_new_primary_while_the_old_one_hangs_in_a_commit(
    pair, nodes, schema
):
    pair.add_standby()
    check = new_check(nodes[0], checks_key(nodes[0]))
    with contextlib.ExitStack() as hanging:
        with pair.standby.suspended():
            assert ping(nodes[0], check) == 503
            hanging.enter_context(pair.primary.suspended())
        pair.hand_over()
        for node in nodes:
            wait_until(lambda node=node: ping(node, check) == 200)
        # It is the old one that must be gone before it goes on, as whoever promotes the other one sees to it.
        pair.standby.kill()
    assert stored_pings(pair.primary, schema, check["id"]) >= 2


def test_what_a_standby_does_not_have_yet_is_lost_where_no_commit_waits_for_it(
    pair, nodes, schema
):
    """So what the tests above find missing would be missing."""
    pair.add_standby(is_synchronous=False)
    with Load(nodes, CLIENTS) as load:
        load.wait()
        pair.standby.kill()
        # More than the few changes of which no answer came, and which may be stored later.
        for _ in range(20):
            load.wait()
        pair.primary.kill()
        pair.standby.start()
        pair.fail_over()
        load.wait()
        load.settle(pair.primary, schema)
        missing = load.missing(pair.primary, schema)
    assert [
        sentence
        for sentence in missing
        if sentence.startswith(("pings", "versions"))
    ]
