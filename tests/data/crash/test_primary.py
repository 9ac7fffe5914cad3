"""Two nodes over a primary with a synchronous standby: the primary is killed, and the standby stops for a time."""

import contextlib
import sys
import time

import pytest

from cardbeat.database.postgresql.connection import COMMIT_SECONDS
from tests.data.crash.cluster import Node, Pair, folder_for_all
from tests.data.crash.load import Load, stored_pings
from tests.kit.client import ask, checks_key, new_check
from tests.kit.support import wait_until

CLIENTS = 4
PATIENCE_SECONDS = 2 * COMMIT_SECONDS
"""What does not wait for a commit is answered within this time, on a busy machine too."""


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


def refused_in_seconds(node, check):
    began = time.monotonic()
    assert ping(node, check) == 503
    return time.monotonic() - began


def waiting_commits(pair):
    """The sessions in which one waits for the standby."""
    sql = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep' ORDER BY pid"
    return [pid for (pid,) in pair.primary.execute(sql)]


def waiting_changes(pair, schema):
    """The number of transactions that have not ended and have changed a check."""
    sql = f"SELECT count(*) FROM pg_locks WHERE relation = '{schema}.checks'::regclass AND mode = 'RowExclusiveLock'"
    ((count,),) = pair.primary.execute(sql)
    return count


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


def require_no_other_wait(pair, nodes, checks):
    """While one commit waits for the standby nobody waits for what can't be, and no session is added."""
    waiting = waiting_commits(pair)
    assert (
        max(refused_in_seconds(nodes[0], check) for check in checks * 3)
        < PATIENCE_SECONDS
    )
    assert ask(nodes[0], "GET", "/healthz").status == 503
    assert set(waiting) <= set(waiting_commits(pair))
    assert 1 <= len(waiting_commits(pair)) <= len(nodes)


def test_a_commit_that_waits_for_the_standby_is_left_waiting_and_the_nodes_go_on(
    pair, nodes, schema
):
    pair.add_standby()
    node, key = nodes[0], checks_key(nodes[0])
    check, other = new_check(node, key), new_check(node, key)
    with pair.standby.suspended():
        assert (
            COMMIT_SECONDS
            <= refused_in_seconds(node, check)
            < COMMIT_SECONDS + PATIENCE_SECONDS
        )
        require_no_other_wait(pair, nodes, (check, other))
        assert (
            ask(node, "GET", f"/checks/{check['id']}", key=key).json["check"][
                "ping_count"
            ]
            == 0
        )
        # None if the standby stopped while a sweep's commit waited for it: the ping did not begin then.
        waiting_pings = waiting_changes(pair, schema)
        assert waiting_pings <= 1
    wait_until(
        lambda: (
            {ask(each, "GET", "/healthz").status for each in nodes} == {200}
        )
    )
    assert waiting_commits(pair) == []
    assert [ping(each, check) for each in nodes] == [200, 200]
    pair.fail_over()
    wait_until(lambda: ping(node, other) == 200)
    # The one whose commit waited was stored once the standby was back, though it was answered with 503. No other was.
    assert stored_pings(pair.primary, schema, check["id"]) == 2 + waiting_pings


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
